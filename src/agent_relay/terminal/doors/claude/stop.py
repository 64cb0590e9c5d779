"""Claude Code's hooks as a way in: what waits is given to the agent with the end of a tool or of its turn.

It reaches only an agent that works. Messages wait here until a hook asks for them, several go at once, and those that are
still here when the agent has become idle are given back.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_relay.terminal.doors.claude.session import ClaudeSession, RecordWait
from agent_relay.terminal.doors.door import Decision, DoorListener, DoorMessage, DoorShut, DoorState, NotTaken, Probe, Whereabouts
from agent_relay.terminal.doors.hook_door import MAX_BYTES, Spool, size_of
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.ledger import Handed
from agent_relay.terminal.output.observations import Observation


def marker_path(folder: str) -> str:
    return os.path.join(folder, "claude-waiting")


class ClaudeStopHook:
    name = "claude stop hook"
    can_start_turns = False

    def __init__(
        self, home: Path, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation],
        wait: RecordWait | None = None,
    ) -> None:  # fmt: skip
        self._listener = listener
        self._spool = Spool(marker_path(place.folder))
        self._session = ClaudeSession(home, place, facts, listener, self._miss, wait, self._give, self._heed)

    async def open(self) -> Probe:
        record = await self._session.open()
        self._spool.mark()
        await self._session.look()
        return Probe(record.version)

    async def close(self) -> None:
        await self._session.close()
        self._spool.take_all()

    async def deliver(self, message: DoorMessage) -> str:
        if self._session.is_over or self._session.record is None:
            raise DoorShut("The hooks of Claude Code are not open.")
        if self._session.record.state is DoorState.IDLE:
            raise NotTaken("The agent is idle, and its hooks run only while it works.")
        if size_of(message) > MAX_BYTES:
            asyncio.get_running_loop().call_soon(self._refuse, message, "It is too long for a hook of Claude Code.")
            return "refused"
        self._spool.add(message)
        return "waits for the next tool or the end of the turn"

    def _give(self, event: str, given: dict[str, Any]) -> str | None:
        if given.get("agent_id"):
            return None  # a helper's tool: what it says would reach the helper
        messages = self._spool.take(MAX_BYTES)
        if not messages:
            return None
        for message in messages:
            self._session.hand(message).is_taken = True
        output = {"hookEventName": event, "additionalContext": "\n\n".join(message.text for message in messages)}
        return msgspec.json.encode({"hookSpecificOutput": output}).decode()

    def _heed(self, state: DoorState) -> None:
        if state is DoorState.IDLE:
            for message in self._spool.take_all():
                self._refuse(message, "The turn ended before a hook asked for it.")

    def _miss(self, handed: Handed) -> None:
        self._session.handed.drop(handed.message.uuid)
        self._refuse(handed.message, "A hook gave it to Claude Code, but the agent did not get it.", was_given=True)

    def _refuse(self, message: DoorMessage, reason: str, *, was_given: bool = False) -> None:
        if not self._session.is_over:
            self._listener.door_refused(message.id, reason, was_given=was_given)

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        if message in self._spool:
            return Whereabouts.NOWHERE if self._session.is_over else Whereabouts.HELD
        return await self._session.look_up(message)

    async def answer(self, request_id: str, decision: Decision) -> None:
        if not self._session.is_over and self._session.record is not None:
            await self._session.look()
        self._session.requests.answer(request_id, decision)
