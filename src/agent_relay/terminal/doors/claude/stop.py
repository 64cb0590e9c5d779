"""Claude Code's hooks as a way in: what waits is given to the agent with the end of a tool or of its turn.

It reaches only an agent that works. Messages wait here until a hook asks for them, several go at once, and those that are
still here when the agent has become idle are given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_relay.terminal.doors.claude.session import ClaudeSession, RecordWait
from agent_relay.terminal.doors.door import DoorListener, DoorMessage, DoorShut, DoorState, NotTaken, Probe, Whereabouts
from agent_relay.terminal.doors.hooks import marker_path
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.ledger import Handed
from agent_relay.terminal.doors.spool import MAX_BYTES, Spool, size_of
from agent_relay.terminal.output.observations import Observation


class ClaudeStopHook(ClaudeSession):
    name = "claude stop hook"
    can_start_turns = False

    def __init__(
        self, home: Path, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation],
        wait: RecordWait | None = None,
    ) -> None:  # fmt: skip
        super().__init__(home, place, facts, listener, wait)
        self._spool = Spool(marker_path(place.folder, "claude"))

    async def open(self) -> Probe:
        record = await self._begin()
        self._spool.mark()
        await self.look()
        return Probe(record.version)

    async def close(self) -> None:
        await super().close()
        self._spool.take_all()

    async def deliver(self, message: DoorMessage) -> str:
        if self.is_over or self._record is None:
            raise DoorShut("The hooks of Claude Code are not open.")
        if self._record.state is DoorState.IDLE:
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
            self._hand(message).is_taken = True
        output = {"hookEventName": event, "additionalContext": "\n\n".join(message.text for message in messages)}
        return msgspec.json.encode({"hookSpecificOutput": output}).decode()

    def _heed(self, state: DoorState) -> None:
        if state is DoorState.IDLE:
            for message in self._spool.take_all():
                self._refuse(message, "The turn ended before a hook asked for it.")

    def _miss(self, handed: Handed) -> None:
        self._handed.drop(handed.message.uuid)
        self._refuse(handed.message, "A hook gave it to Claude Code, but the agent did not get it.", was_given=True)

    def _refuse(self, message: DoorMessage, reason: str, *, was_given: bool = False) -> None:
        if not self.is_over:
            self._listener.door_refused(message.id, reason, was_given=was_given)

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        if message in self._spool:
            return Whereabouts.NOWHERE if self.is_over else Whereabouts.HELD
        return await super().look_up(message)
