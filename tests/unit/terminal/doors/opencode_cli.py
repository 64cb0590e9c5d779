"""The other end of opencode's door, as recorded of version 1.18.33: its server, its sessions, its events, its terminal.

Answers and events have the shapes of the real program's, without the fields nobody reads. As there, a prompt is accepted
before it is stored; a turn runs as long as the last message has no answer, and each request to the model holds everything
that was stored before. `is_held` keeps the model from answering, which makes the agent busy.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agent_relay.private_files import replace_private
from agent_relay.terminal.doors.door import DoorMessage
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.opencode.server import OpencodeServer
from agent_relay.terminal.doors.opencode.sessions import view_path
from tests.unit.terminal.doors.heard import Heard

PASSWORD = "a password"
VERSION = "1.18.33"
Json = dict[str, Any]


def message(number: int, text: str = "") -> DoorMessage:
    body = text or f"message {number}"
    uuid = f"00000000-0000-4000-8000-{number:012d}"
    return DoorMessage(f"msg-{number}", uuid, "Alice", body, f"Relay message from Alice [{number:08x}]: {body}")


class OpencodeCli:
    """The program, with its terminal's view in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions: dict[str, Json] = {}
        self.messages: dict[str, list[Json]] = {}  # by session
        self.permissions: dict[str, Json] = {}
        self.questions: dict[str, Json] = {}
        self.replies: list[tuple[str, Json]] = []
        self.prompts: list[Json] = []  # bodies, as they came
        self.requests: list[list[str]] = []  # what the model was given, for each answer
        self.paths: list[str] = []
        self.answers: dict[str, tuple[int, bytes]] = {}  # by path: said instead of the right thing
        self.say = "Noted."
        self.is_held = False
        self.fails_to_store = False
        self.follows_selection = True
        self.ignores = 0  # so many requests are never answered
        self.events_served = 0
        self._busy: set[str] = set()
        self._streams: list[asyncio.StreamWriter] = []
        self._connections: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0
        self._server: asyncio.Server | None = None
        self._gate = asyncio.Event()
        self.port = 0

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """As a program that is killed: connections end in the middle."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._connections):
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def facts(self) -> dict[str, str]:
        return {
            "port": str(self.port), "username": "opencode", "password": PASSWORD, "secret": "s", "since_ms": "0", "view": "1",
            "session": "",
        }  # fmt: skip

    def door(self, heard: Heard, **facts: str) -> OpencodeServer:
        return OpencodeServer(AgentPlace("Bob", str(self.folder), "p"), {**self.facts(), **facts}, heard)

    # --- the terminal ------------------------------------------------------------------------------------------------

    def show(self, session: str = "") -> None:
        view = {"name": "session" if session else "home", "session": session}
        replace_private(view_path(str(self.folder)), json.dumps(view).encode())

    def new_session(self, parent: str = "", **more: Any) -> str:
        info = {"id": f"ses_{self._next()}", "title": "t", "time": {"created": _ms(), "updated": _ms()}, **more}
        if parent:
            info["parentID"] = parent
        self.sessions[info["id"]] = info
        self.messages[info["id"]] = []
        self.tell("session.created", {"sessionID": info["id"], "info": info})
        return str(info["id"])

    def person_types(self, session: str, text: str) -> None:
        self._store(session, {"parts": [{"type": "text", "text": text}]})

    def release(self) -> None:
        self.is_held = False
        self._gate.set()

    def ask_permission(self, session: str, command: str) -> str:
        id_ = f"per_{self._next()}"
        asked = {
            "id": id_, "sessionID": session, "permission": "bash", "patterns": [command], "metadata": {"command": command},
            "always": ["rm *"], "tool": {"messageID": "msg_x", "callID": "call_x"},
        }  # fmt: skip
        self.permissions[id_] = asked
        self.tell("permission.asked", asked)
        return id_

    def ask_question(self, session: str, *questions: str) -> str:
        id_ = f"que_{self._next()}"
        options = [{"label": "Yes", "description": "y"}, {"label": "No", "description": "n"}]
        asked = {
            "id": id_, "sessionID": session,
            "questions": [{"question": question, "header": "H", "options": options} for question in questions],
        }  # fmt: skip
        self.questions[id_] = asked
        self.tell("question.asked", asked)
        return id_

    def reply(self, id_: str, reply: str) -> bool:
        """A permission's, by whoever is first; False for the others."""
        asked = self.permissions.pop(id_, None)
        if asked is None:
            return False
        self.tell("permission.replied", {"sessionID": asked["sessionID"], "requestID": id_, "reply": reply})
        if reply == "reject":
            for other in [one for one in self.permissions.values() if one["sessionID"] == asked["sessionID"]]:
                self.reply(other["id"], "reject")
        return True

    def answer_question(self, id_: str, answers: list[list[str]] | None) -> bool:
        asked = self.questions.pop(id_, None)
        if asked is None:
            return False
        fields = {"sessionID": asked["sessionID"], "requestID": id_}
        self.tell("question.replied" if answers is not None else "question.rejected", fields)
        return True

    # --- the agent ---------------------------------------------------------------------------------------------------

    def status(self, session: str, type_: str) -> None:
        if type_ == "idle":
            self._busy.discard(session)
        else:
            self._busy.add(session)
        self.tell("session.status", {"sessionID": session, "status": {"type": type_}})
        if type_ == "idle":
            self.tell("session.idle", {"sessionID": session})

    def begin_answer(self, session: str, parent: str, **more: Any) -> Json:
        id_ = f"msg_{self._next()}"
        info = {
            "id": id_, "role": "assistant", "sessionID": session, "parentID": parent, "time": {"created": _ms()}, **more
        }  # fmt: skip
        self.messages[session].append({"info": info, "parts": []})
        self.tell("message.updated", {"sessionID": session, "info": info})
        return info

    def put_part(self, answer: Json, type_: str, **more: Any) -> str:
        part = {
            "id": f"prt_{self._next()}", "messageID": answer["id"], "sessionID": answer["sessionID"], "type": type_, **more
        }  # fmt: skip
        entry = next(one for one in self.messages[answer["sessionID"]] if one["info"]["id"] == answer["id"])
        entry["parts"].append(part)
        self.tell("message.part.updated", {"sessionID": answer["sessionID"], "part": part})
        return str(part["id"])

    def put_text(self, answer: Json, text: str) -> str:
        return self.put_part(answer, "text", text=text, time={"start": _ms(), "end": _ms()})

    def complete(self, answer: Json, error: str = "") -> None:
        answer["time"]["completed"] = _ms()
        if error:
            answer["error"] = {"name": error, "data": {"message": error}}
        self.tell("message.updated", {"sessionID": answer["sessionID"], "info": answer})

    async def _turn(self, session: str) -> None:
        if session in self._busy:
            return
        self.status(session, "busy")
        while True:
            users = [one["info"]["id"] for one in self.messages[session] if one["info"]["role"] == "user"]
            last = self.messages[session][-1]["info"]
            if last.get("parentID") == users[-1]:
                break
            answer = self.begin_answer(session, users[-1])
            if self.is_held:
                self._gate.clear()
                await self._gate.wait()
            self.requests.append([part["text"] for one in self.messages[session] for part in one["parts"] if "text" in part])
            self.put_part(answer, "step-start")
            self.put_text(answer, self.say)
            self.put_part(answer, "step-finish", reason="stop")
            self.complete(answer)
        self.status(session, "idle")

    def _store(self, session: str, body: Json) -> None:
        info = {"id": body.get("messageID") or f"msg_{self._next()}", "role": "user", "sessionID": session}
        info |= {"time": {"created": _ms()}, "agent": "build"}
        parts = [{"id": f"prt_{self._next()}", **part, "messageID": info["id"]} for part in body["parts"]]
        self.messages[session] = [one for one in self.messages[session] if one["info"]["id"] != info["id"]]
        self.messages[session].append({"info": info, "parts": parts})
        self.tell("message.updated", {"sessionID": session, "info": info})
        for part in parts:
            self.tell("message.part.updated", {"sessionID": session, "part": part})
        self._do(self._turn(session))

    async def _prompt(self, session: str, body: Json) -> None:
        await asyncio.sleep(0)
        if self.fails_to_store:
            error = {"name": "UnknownError", "data": {"message": "Agent not found"}}
            self.tell("session.error", {"sessionID": session, "error": error})
        else:
            self._store(session, body)

    # --- the server --------------------------------------------------------------------------------------------------

    def tell(self, type_: str, properties: Json) -> None:
        self.tell_raw(json.dumps({"id": f"evt_{self._next()}", "type": type_, "properties": properties}).encode())

    def tell_raw(self, data: bytes) -> None:
        for writer in self._streams:
            _chunk(writer, b"data: " + data + b"\n\n")

    def break_streams(self) -> None:
        for writer in self._streams:
            writer.transport.abort()
        self._streams.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._answer(reader, writer)
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        given = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))) or b"{}")
        wanted = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode().lower()
        self.paths.append(f"{method} {path}")
        if self.ignores:
            self.ignores -= 1
            await reader.read()
        elif headers.get("authorization") != f"basic {wanted}":
            _send(writer, 401, b"")
        elif path in self.answers:
            _send(writer, *self.answers[path])
        elif path == "/event":
            await self._stream(reader, writer)
        else:
            status, found = self._reply_to(method, path, given)
            _send(writer, status, b"" if found is None else json.dumps(found).encode())
        await writer.drain()

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        _chunk(writer, b'data: {"id":"evt_0","type":"server.connected","properties":{}}\n\n')
        self._streams.append(writer)
        self.events_served += 1
        await reader.read()  # until the other end is gone
        with contextlib.suppress(ValueError):
            self._streams.remove(writer)

    def _reply_to(self, method: str, path: str, body: Json) -> tuple[int, Any]:
        path, _, query = path.partition("?")
        limit = int(match[1]) if (match := re.search(r"limit=(\d+)", query)) else 0
        words = path.strip("/").split("/")
        match [method, *words]:
            case ["GET", "global", "health"]:
                return 200, {"healthy": True, "version": VERSION}
            case ["GET", "session", "status"]:
                return 200, {session: {"type": "busy"} for session in self._busy}
            case ["GET", "permission"]:
                return 200, list(self.permissions.values())
            case ["GET", "question"]:
                return 200, list(self.questions.values())
            case ["GET", "session"]:
                return 200, list(self.sessions.values())
            case ["POST", "session"]:
                return 200, self.sessions[self.new_session()]
            case ["POST", "tui", "select-session"]:
                if self.follows_selection:
                    self.show(body["sessionID"])
                return 200, True
            case ["POST", "permission", id_, "reply"]:
                self.replies.append((id_, body))
                return (200, True) if self.reply(id_, body["reply"]) else (404, {"_tag": "PermissionNotFoundError"})
            case ["POST", "question", id_, "reply" | "reject"]:
                self.replies.append((id_, body))
                return (200, True) if self.answer_question(id_, body.get("answers")) else (404, {"_tag": "QuestionNotFoundError"})
            case [_, "session", session, *_] if session not in self.sessions:
                return 404, {"name": "NotFoundError"}
            case ["GET", "session", session]:
                return 200, self.sessions[session]
            case ["GET", "session", session, "message"]:
                return 200, self.messages[session][-limit:] if limit else self.messages[session]
            case ["GET", "session", session, "message", id_]:
                found = [one for one in self.messages[session] if one["info"]["id"] == id_]
                return (200, found[0]) if found else (404, {"name": "NotFoundError"})
            case ["POST", "session", session, "prompt_async"]:
                self.prompts.append(body)
                self._do(self._prompt(session, body))
                return 204, None
        return 404, None

    def given(self, session: str) -> list[str]:
        """The texts of the messages in a session, in the order the agent sees them."""
        users = [one for one in self.messages[session] if one["info"]["role"] == "user"]
        return [part["text"] for one in users for part in one["parts"]]

    def _do(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _next(self) -> str:
        self._count += 1
        return f"{self._count:012x}"


def _ms() -> int:
    return time.time_ns() // 1_000_000


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _send(writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
    length = b"" if status == 204 else f"Content-Length: {len(body)}\r\n".encode()
    writer.write(f"HTTP/1.1 {status} X\r\nConnection: close\r\n".encode() + length + b"\r\n" + body)


def play(folder: Path, scene: Callable[[OpencodeCli, Heard, OpencodeServer], Awaitable[None]], **facts: str) -> Heard:
    """Runs a scene with an open door into a program that shows its home screen."""
    heard = Heard()

    async def run() -> None:
        cli = OpencodeCli(folder)
        await cli.start()
        cli.show()
        door = cli.door(heard, **facts)
        try:
            await door.open()
            await scene(cli, heard, door)
        finally:
            await door.close()
            await cli.stop()

    asyncio.run(run())
    return heard
