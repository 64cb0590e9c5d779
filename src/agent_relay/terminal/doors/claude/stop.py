"""Claude Code's hooks as a way in: what waits is given to the agent with the end of a tool or of its turn.

It reaches only an agent that works. Messages wait here until a hook asks for them, several go at once, and those that are
still here when the agent has become idle are given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_relay.terminal.doors.claude.session import ClaudeSession, Handed, RecordWait
from agent_relay.terminal.doors.door import Decision, DoorListener, DoorMessage, DoorShut, DoorState, NotTaken, Probe, Whereabouts
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.files.private_files import replace_private
from agent_relay.terminal.output.observations import Observation

MARKER_FILE = "claude-waiting"  # hooks ask only while it is there, so that they cost next to nothing else
MAX_BYTES = 9_000  # of more than 10,000 Claude Code shows the agent the beginning, and puts the rest into a file


def marker_path(folder: str) -> str:
    return os.path.join(folder, MARKER_FILE)


class ClaudeStopHook:
    name = "claude stop hook"
    can_start_turns = False

    def __init__(
        self, home: Path, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation],
        wait: RecordWait | None = None,
    ) -> None:  # fmt: skip
        self._marker = marker_path(place.folder)
        self._listener = listener
        self._session = ClaudeSession(home, place, facts, listener, listener.door_lost, self._miss, wait)
        self._session.give = self._give
        self._session.heed = self._heed
        self._waiting: list[DoorMessage] = []

    async def open(self) -> Probe:
        record = await self._session.open()
        self._mark()
        await self._session.look()
        return Probe(record.version)

    async def close(self) -> None:
        await self._session.close()
        self._waiting.clear()
        self._mark()

    async def deliver(self, message: DoorMessage) -> str:
        if self._session.is_over or self._session.record is None:
            raise DoorShut("The hooks of Claude Code are not open.")
        if self._session.record.state is DoorState.IDLE:
            raise NotTaken("The agent is idle, and its hooks run only while it works.")
        if _size(message) > MAX_BYTES:
            asyncio.get_running_loop().call_soon(self._refuse, message, "It is too long for a hook of Claude Code.")
            return "refused"
        self._waiting.append(message)
        self._mark()
        return "waits for the next tool or the end of the turn"

    def _give(self, event: str, given: dict[str, Any]) -> str | None:
        if given.get("agent_id"):
            return None  # a helper's tool: what it says would reach the helper
        texts: list[str] = []
        room = MAX_BYTES
        while self._waiting and room >= _size(self._waiting[0]):
            message = self._waiting.pop(0)
            room -= _size(message)
            self._session.hand(message).is_taken = True
            texts.append(message.text)
        self._mark()
        if not texts:
            return None
        output = {"hookEventName": event, "additionalContext": "\n\n".join(texts)}
        return msgspec.json.encode({"hookSpecificOutput": output}).decode()

    def _heed(self, state: DoorState) -> None:
        if state is DoorState.IDLE:
            for message in self._waiting:
                self._refuse(message, "The turn ended before a hook asked for it.")
            self._waiting.clear()
            self._mark()

    def _miss(self, handed: Handed) -> None:
        self._session.handed.pop(handed.message.uuid, None)
        self._refuse(handed.message, "A hook gave it to Claude Code, but the agent did not get it.", was_given=True)

    def _refuse(self, message: DoorMessage, reason: str, *, was_given: bool = False) -> None:
        if not self._session.is_over:
            self._listener.door_refused(message.id, reason, was_given=was_given)

    def _mark(self) -> None:
        if self._waiting:
            replace_private(self._marker, b"")
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._marker)

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        if message in self._waiting:
            return Whereabouts.NOWHERE if self._session.is_over else Whereabouts.HELD
        return await self._session.look_up(message)

    async def answer(self, request_id: str, decision: Decision) -> None:
        if not self._session.is_over and self._session.record is not None:
            await self._session.look()
        self._session.requests.answer(request_id, decision)


def _size(message: DoorMessage) -> int:
    return len(f"{message.text}\n\n".encode())
