"""The other end of Claude Code's doors, as recorded of version 2.1.325: its record, its inbox, its session file, its hooks.

The records are those of the real program, without the fields nobody reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.doors import hooks
from agent_relay.terminal.doors.claude import session as claude_session
from agent_relay.terminal.doors.claude.launch import ClaudeLauncher
from agent_relay.terminal.doors.door import Door
from agent_relay.terminal.doors.launch import AgentPlace, PreparedStart, Program
from tests.unit.terminal.doors import heard
from tests.unit.terminal.doors.heard import message, play_on, short_folder, until

__all__ = ["FakeClaude", "Heard", "Looks", "Stage", "message", "play", "short_folder", "until"]

DEADLINE_S = 60.0
_BODY = re.compile(r"<cross-session-message[^>]*>\n(.*)\n</cross-session-message>", re.DOTALL)


class Heard(heard.Heard):
    """One whose entries are whole, also those of a single value."""

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        return [entry[1:] for entry in self.all if entry[0] == kind]

    async def until(self, kind: str, count: int = 1) -> list[tuple[Any, ...]]:
        await until(lambda: len(self.of(kind)) >= count, f"{count} × {kind} of {self.all}")
        return self.of(kind)


class FakeClaude:
    def __init__(self, folder: Path) -> None:
        self.home, self.cwd = folder / "claude", folder / "project"
        self.pid, self.started_at = os.getpid(), 1_794_740_926_712
        self.session_id = ""
        self.inbox = folder / "cc-socks" / "1.sock"
        self.frames: list[dict[str, Any]] = []
        self.reads = True  # what it gets it gives to the agent at once
        self.closes = True
        self.keeps_file = True
        self._server: asyncio.Server | None = None
        self._open: list[asyncio.StreamWriter] = []
        self.inbox.parent.mkdir(mode=0o700)
        (self.home / "sessions").mkdir(parents=True)
        self.cwd.mkdir()

    # --- its files -------------------------------------------------------------------------------------------------------

    @property
    def record_path(self) -> Path:
        return self.home / "sessions" / f"{self.pid}.json"

    @property
    def transcript(self) -> Path:
        return self.home / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(self.cwd)) / f"{self.session_id}.jsonl"

    def be(self, status: str, **more: Any) -> None:
        record = {
            "pid": self.pid, "sessionId": self.session_id, "cwd": str(self.cwd), "startedAt": self.started_at,
            "version": "2.1.325", "peerProtocol": 1, "kind": "interactive", "messagingSocketPath": str(self.inbox),
            "name": "project-db", "status": status, "statusUpdatedAt": 1_794_740_926_352, **more,
        }  # fmt: skip
        self.record_path.write_text(json.dumps(record))

    def write(self, *records: dict[str, Any]) -> None:
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a") as file:
            for record in records:
                common = {"uuid": str(uuid.uuid4()), "timestamp": "2026-11-15T11:08:49.173Z", "sessionId": self.session_id}
                file.write(json.dumps({**common, **record}) + "\n")

    # --- its inbox -------------------------------------------------------------------------------------------------------

    async def start(self, session_id: str) -> None:
        self.session_id = session_id
        self._server = await asyncio.start_unix_server(self._serve, str(self.inbox), limit=4_194_304)
        self.be("idle")

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                self.frames.append(json.loads(line))
                self._take(self.frames[-1])
        if self.closes:
            writer.close()

    def _take(self, frame: dict[str, Any]) -> None:
        if self.keeps_file:
            self.write({"type": "queue-operation", "operation": "enqueue", "content": frame["message"]["content"]})
        if self.reads and self.keeps_file:
            self.give(frame)

    def give(self, frame: dict[str, Any]) -> None:
        """To the agent, at the beginning of a turn."""
        content = frame["message"]["content"]
        notice = f"Another Claude session sent a message:\n{content}\n\nThis came from another Claude session"
        self.write(
            {"type": "queue-operation", "operation": "dequeue"},
            {"type": "user", "isMeta": True, "message": {"role": "user", "content": notice}, "origin": _origin(frame)},
        )

    def give_in_turn(self, frame: dict[str, Any]) -> None:
        """To the agent, after a tool."""
        content = frame["message"]["content"]
        queued = {"type": "queued_command", "prompt": content, "commandMode": "prompt", "origin": _origin(frame)}
        self.write(
            {"type": "queue-operation", "operation": "remove", "content": content, "reason": "absorbed_mid_turn"},
            {"type": "attachment", "attachment": queued},
        )

    def call(self, tool: str, given: dict[str, Any]) -> str:
        id_ = f"toolu_{uuid.uuid4().hex[:20]}"
        part = {"type": "tool_use", "id": id_, "name": tool, "input": given}
        self.write({"type": "assistant", "message": {"id": f"msg_{id_}", "role": "assistant", "content": [part]}})
        return id_

    def end_call(self, id_: str, *, source: str = "user_temporary", denial: str = "") -> None:
        output = "Denied by Ann: no" if source == "hook" else "The user doesn't want to proceed with this tool use."
        part = {"type": "tool_result", "tool_use_id": id_, "content": output if denial else "done", "is_error": bool(denial)}
        more: dict[str, Any] = {"toolDenialKind": denial} if denial else {}
        if source:
            more["permissionDecision"] = {"decision": "reject" if denial else "accept", "source": source}
        self.write({"type": "user", "message": {"role": "user", "content": [part]}, **more})

    # --- what it says ----------------------------------------------------------------------------------------------------

    def tell(self, frame: dict[str, Any], status: str, **more: str) -> None:
        """A receipt, to the address the message came with."""
        receipt = {"type": "control", "action": "peer_message_status", "status": status, "orig_msg_id": frame["msg_id"]}
        self.say(frame["from"], json.dumps({**receipt, **more, "msgV": 1}).encode() + b"\n")

    def say(self, address: str, line: bytes) -> bytes:
        """What comes back until the other side closes."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(DEADLINE_S)
            connection.connect(address.removeprefix("uds:"))
            connection.sendall(line)
            return connection.recv(1)

    async def run_hook(self, settings: Path, event: str, **given: Any) -> str:
        """As the program runs them: each a line for the shell, with JSON on its standard input. What they say, together."""
        (entry,) = json.loads(settings.read_text())["hooks"][event]
        common = {"session_id": self.session_id, "transcript_path": str(self.transcript), "hook_event_name": event}
        said = ""
        for hook in entry["hooks"]:
            process = await asyncio.create_subprocess_shell(
                hook["command"], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            output, _ = await process.communicate(json.dumps({**common, **given}).encode())
            assert process.returncode == 0
            said += output.decode()
        return said


def _origin(frame: dict[str, Any]) -> dict[str, Any]:
    body = _BODY.fullmatch(frame["message"]["content"])
    assert body is not None, frame
    return {"kind": "peer", "from": frame["from"], "msg_id": frame["msg_id"], "name": "Alice", "body": body[1]}


class Looks:
    """Counts the looks at what Claude Code keeps about its session, so that a test can wait for a whole one."""

    def __init__(self, patch: pytest.MonkeyPatch, name: str) -> None:
        look = getattr(claude_session, name)
        self._count = 0

        def counted(*given: Any) -> Any:
            found = look(*given)
            self._count += 1
            return found

        patch.setattr(claude_session, name, counted)
        patch.setattr(hooks, "LOOK_S", 0.05)

    async def pass_by(self) -> None:
        """One that began after this has ended, with all that follows from it: they take turns, and the next is there."""
        enough = self._count + 3
        await until(lambda: self._count >= enough, "it is looked at")


class Stage:
    """A program that was prepared, its fake, and a listener. `doors` makes new ones, as a later wrapper would."""

    def __init__(self, folder: Path) -> None:
        self.place = AgentPlace("Bob", str(folder / "team"), "0123456789ab")
        os.mkdir(self.place.folder, 0o700)
        self.cli = FakeClaude(folder)
        self.launcher = ClaudeLauncher()
        environment = {"CLAUDE_CONFIG_DIR": str(self.cli.home)}
        self.prepared: PreparedStart = self.launcher.prepare(Program(("claude",), str(self.cli.cwd), environment), self.place, "")
        self.heard = Heard()
        self.hooks: list[asyncio.Task[str]] = []  # that run meanwhile
        self._made: list[Door] = []

    @property
    def settings(self) -> Path:
        return Path(self.place.folder) / "claude-settings.json"

    def doors(self, heard: Heard | None = None) -> list[Door]:
        doors = self.launcher.doors(self.prepared.program, self.place, self.prepared.facts, heard or self.heard)
        self._made += doors
        return doors

    async def start(self) -> None:
        await self.cli.start(self.prepared.session_id or "")

    async def open_inbox(self) -> Door:
        """Of a program that has started."""
        inbox, _ = self.doors()
        await self.start()
        await inbox.open()
        return inbox

    async def open_stop(self) -> Door:
        """Of one that has started and works."""
        _, stop = self.doors()
        await self.start()
        self.cli.be("busy")
        await stop.open()
        return stop

    def begin_hook(self, event: str, **given: Any) -> asyncio.Task[str]:
        self.hooks.append(asyncio.create_task(self.cli.run_hook(self.settings, event, **given)))
        return self.hooks[-1]

    async def close(self) -> None:
        for door in self._made:
            await door.close()
        await asyncio.gather(*self.hooks, return_exceptions=True)
        self.cli.stop()


def play(scene: Callable[[Stage], Awaitable[None]]) -> Stage:
    return play_on(Stage, scene)
