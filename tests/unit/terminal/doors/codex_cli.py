"""Codex's end of its door, as it was recorded of 0.166.0: the app-server, its conversations and their files."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, unix_serve
from websockets.exceptions import ConnectionClosed

from agent_relay.protocol.short_ids import short_id
from agent_relay.terminal.doors.codex.server import CodexServer
from agent_relay.terminal.doors.door import DoorMessage
from agent_relay.terminal.doors.launch import AgentPlace
from tests.unit.terminal.doors.heard import Heard

Json = dict[str, Any]
VERSION = "0.166.0"


def message(number: int) -> DoorMessage:
    id_ = f"msg-{number}"
    text = f"Relay message from Alice [{short_id(id_)}]: body {number}"
    return DoorMessage(id_, str(uuid.uuid5(uuid.NAMESPACE_URL, id_)), "Alice", f"body {number}", text)


class Thread:
    def __init__(self, folder: Path, source: str = "user") -> None:
        self.id = str(uuid.uuid4())
        self.source = source
        self.path = folder / f"rollout-2026-11-15T11-28-11-{self.id}.jsonl"
        self.flags: list[str] | None = None  # None: idle
        self.queue: list[Json] = []
        self.is_paused = False
        self.given: list[str] = []
        self.turn = ""

    @property
    def status(self) -> Json:
        return {"type": "idle"} if self.flags is None else {"type": "active", "activeFlags": self.flags}

    @property
    def shown(self) -> Json:
        is_persons = self.source == "user"
        return {
            "id": self.id, "sessionId": self.id, "parentThreadId": None, "ephemeral": not is_persons, "status": self.status,
            "path": str(self.path) if is_persons else None, "cliVersion": VERSION, "originator": "codex-tui",
            "threadSource": self.source, "createdAt": 1794742092, "recencyAt": 1794742092, "turns": [],
        }  # fmt: skip


class CodexCli:
    """`is_working`: a turn that has begun goes on until `finish`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "codex.sock"
        self.threads: dict[str, Thread] = {}
        self.version = VERSION
        self.answers_otherwise: dict[str, Json] = {}  # by method: results of another shape
        self.refuses: dict[str, str] = {}
        self.ignores: set[str] = set()
        self.loses: set[str] = set()  # methods at which the server dies before it answers, having done what was asked
        self.is_working = False
        self.calls: list[str] = []
        self.answers: list[Json] = []
        self._server: Server | None = None
        self._clients: dict[ServerConnection, set[str]] = {}
        self._terminal: asyncio.StreamWriter | None = None
        self._asked = 0
        self._works: set[asyncio.Task[None]] = set()

    # --- its life --------------------------------------------------------------------------------------------------------

    async def start(self, *, has_terminal: bool = True) -> None:
        self._server = await unix_serve(self._serve, str(self.socket), compression=None, open_timeout=None)
        if has_terminal:
            await self.connect_terminal()

    async def connect_terminal(self) -> None:
        _, self._terminal = await asyncio.open_unix_connection(str(self.socket))

    async def crash(self) -> None:
        assert self._server is not None
        for client in list(self._clients):
            client.transport.abort()
        if self._terminal is not None:
            self._terminal.close()
        self._server.close(close_connections=False)
        self.socket.unlink(missing_ok=True)

    async def close(self) -> None:
        await self.crash()
        for task in self._works:
            task.cancel()

    # --- what a person does ----------------------------------------------------------------------------------------------

    def begin(self, source: str = "user") -> Thread:
        """`/new`, or a conversation that Codex has with itself."""
        thread = Thread(self.folder, source)
        self.threads[thread.id] = thread
        self._tell(None, "thread/started", {"thread": thread.shown})
        return thread

    def interrupt(self, thread: Thread) -> None:
        thread.is_paused = True
        self._end_turn(thread, "interrupted")

    def finish(self, thread: Thread) -> None:
        self._end_turn(thread, "completed")
        self._go_on(thread)

    # --- turns -----------------------------------------------------------------------------------------------------------

    def _go_on(self, thread: Thread) -> None:
        if thread.queue and thread.flags is None and not thread.is_paused:
            self._start_turn(thread, thread.queue.pop(0))

    def _start_turn(self, thread: Thread, entry: Json) -> None:
        thread.turn = str(uuid.uuid4())
        self.set_flags(thread, [])
        text = entry["input"][0]["text"]
        item = {
            "type": "userMessage",
            "id": str(uuid.uuid4()),
            "clientId": entry["clientUserMessageId"],
            "content": entry["input"],
        }
        self._write(thread, {**item, "type": "UserMessage", "client_id": item["clientId"]})
        thread.given.append(text)
        for method in ("item/started", "item/completed"):
            self._tell(thread, method, {"threadId": thread.id, "turnId": thread.turn, "item": item})
        if not self.is_working:
            self.finish(thread)

    def _end_turn(self, thread: Thread, status: str) -> None:
        self.set_flags(thread, None)
        self._tell(thread, "turn/completed", {"threadId": thread.id, "turn": {"id": thread.turn, "status": status}})

    def set_flags(self, thread: Thread, flags: list[str] | None) -> None:
        thread.flags = flags
        self._tell(None, "thread/status/changed", {"threadId": thread.id, "status": thread.status})

    def _write(self, thread: Thread, item: Json) -> None:
        payload = {"type": "item_completed", "thread_id": thread.id, "turn_id": thread.turn, "item": item}
        with thread.path.open("a") as file:
            file.write(json.dumps({"timestamp": "2026-11-15T11:50:08.290Z", "type": "event_msg", "payload": payload}) + "\n")

    # --- requests --------------------------------------------------------------------------------------------------------

    def ask(self, thread: Thread, method: str = "item/commandExecution/requestApproval", **params: Any) -> Json:
        """To everybody who is subscribed; the terminal among them, which is not played here."""
        request = {"method": method, "id": self._asked, "params": {
            "threadId": thread.id, "turnId": thread.turn, "itemId": f"call_{self._asked}", "reason": "May I run this?",
            "command": "/bin/bash -lc 'rm -rf build'", "cwd": "/project", "availableDecisions": ["accept", {}, "cancel"],
            **params,
        }}  # fmt: skip
        self._asked += 1
        self.set_flags(thread, ["waitingOnApproval"])
        self._send(thread, request)
        return request

    def resolve(self, thread: Thread, request: Json, status: str = "completed", kind: str = "commandExecution") -> None:
        """Somebody has answered, and this is what becomes of the tool; `""`: it runs for long."""
        self._tell(thread, "serverRequest/resolved", {"threadId": thread.id, "requestId": request["id"]})
        self.set_flags(thread, [])
        if status:
            item = {"type": kind, "id": request["params"]["itemId"], "status": status}
            self._tell(thread, "item/completed", {"threadId": thread.id, "turnId": thread.turn, "item": item})

    # --- the protocol ----------------------------------------------------------------------------------------------------

    def _tell(self, thread: Thread | None, method: str, params: Json) -> None:
        self._send(thread, {"method": method, "params": params})

    def _send(self, thread: Thread | None, data: Json) -> None:
        """To those who follow this conversation, or to all."""
        for client, follows in self._clients.items():
            if thread is None or thread.id in follows:
                self._do(client, json.dumps(data))

    def say(self, text: str | bytes) -> None:
        """Anything, to all."""
        for client in self._clients:
            self._do(client, text)

    def _do(self, client: ServerConnection, text: str | bytes) -> None:
        async def send() -> None:
            try:
                await client.send(text)
            except ConnectionClosed:
                return

        task = asyncio.ensure_future(send())
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    async def _serve(self, client: ServerConnection) -> None:
        self._clients[client] = set()
        try:
            async for data in client:
                asked = json.loads(data)
                if "method" not in asked:
                    self.answers.append(asked)
                elif "id" in asked:
                    self.calls.append(asked["method"])
                    await self._answer(client, asked)
        except ConnectionClosed:
            return
        finally:
            self._clients.pop(client, None)

    async def _answer(self, client: ServerConnection, asked: Json) -> None:
        method, params = asked["method"], asked["params"]
        if method in self.ignores:
            return
        error, result = self.refuses.get(method, ""), {}
        if not error:
            error, result = self._do_call(client, method, params)
            result = self.answers_otherwise.get(method, result)
        if method in self.loses:
            self.loses.discard(method)
            client.transport.abort()
            return
        answer = {"error": {"code": -32600, "message": error}} if error else {"result": result}
        self._do(client, json.dumps({"id": asked["id"], **answer}))
        if method == "thread/queue/add" and not error:
            self._go_on(self.threads[params["threadId"]])

    def _do_call(self, client: ServerConnection, method: str, params: Json) -> tuple[str, Json]:
        if method == "initialize":
            return "", {"userAgent": f"codex-tui/{self.version} (Debian 12.0.0; x86_64) xterm (agent-relay; 1)"}
        if method == "thread/loaded/list":
            return "", {"data": list(self.threads), "nextCursor": None}
        thread = self.threads.get(params["threadId"])
        if thread is None:
            return f"no rollout found for thread id {params['threadId']}", {}
        match method:
            case "thread/read":
                return "", {"thread": thread.shown}
            case "thread/resume":
                if not thread.path.exists():
                    return f"no rollout found for thread id {thread.id}", {}
                self._clients[client].add(thread.id)
                return "", {"thread": thread.shown}
            case "thread/queue/add":
                entry = {"id": str(uuid.uuid4()), "input": params["input"], "clientUserMessageId": params["clientUserMessageId"]}
                thread.queue.append(entry)
                return "", {"queuedSubmission": entry}
            case "thread/queue/list":
                return "", {"data": thread.queue, "nextCursor": None}
            case "thread/queue/delete":
                before = len(thread.queue)
                thread.queue = [entry for entry in thread.queue if entry["id"] != params["queuedSubmissionId"]]
                return "", {"deleted": len(thread.queue) < before}
            case "thread/queue/start":
                entry = next(entry for entry in thread.queue if entry["id"] == params["queuedSubmissionId"])
                thread.queue.remove(entry)
                thread.is_paused = False
                self._start_turn(thread, entry)
                return "", {"turn": {"id": thread.turn}}
            case _:
                return f"Invalid request: unknown variant `{method}`", {}


Scene = Callable[[CodexCli, Heard, CodexServer], Awaitable[None]]


def place(folder: Path) -> AgentPlace:
    return AgentPlace("Bob", str(folder), "0123456789ab")


def play(folder: Path, scene: Scene, *, begins: bool = True) -> Heard:
    """A running Codex with one conversation, and the door open."""

    async def run() -> Heard:
        cli, heard = CodexCli(folder), Heard()
        door = CodexServer(str(cli.socket), place(folder), heard)
        await cli.start()
        if begins:
            cli.begin()
        try:
            async with asyncio.timeout(120):
                if begins:
                    await door.open()
                await scene(cli, heard, door)
        finally:
            await door.close()
            await cli.close()
        return heard

    return asyncio.run(run())


def only(cli: CodexCli) -> Thread:
    return next(thread for thread in cli.threads.values() if thread.source == "user")
