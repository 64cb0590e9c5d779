"""Codex's stop hook as a way in: what waits is given to the agent when its turn would end, and the turn goes on with it.

It reaches only an agent that works; an idle one is typed to. Messages wait here until the hook asks for them, and several go
at once. With a tool's result Codex would take one as well, but gives it to the agent as a word of its developer, which a
colleague's is not.
"""

from __future__ import annotations

import contextlib
import os

import msgspec

from agent_relay.terminal.doors.codex.hooks import FLAG, are_trusted, marker_path
from agent_relay.terminal.doors.codex.queue import Codex, read_version
from agent_relay.terminal.doors.codex.record import Given, TurnEnded, find_message
from agent_relay.terminal.doors.codex.session import HookedSession
from agent_relay.terminal.doors.door import Decision, DoorListener, DoorMessage, DoorShut, NotTaken, Probe, Whereabouts
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.marks import is_in
from agent_relay.terminal.files.private_files import replace_private
from agent_relay.terminal.output.observations import Observation

MAX_BYTES = 9_000  # of more than about 10,000 Codex leaves out the middle, and puts the whole into a file
_REWRITTEN = frozenset("<>&")


class CodexStopHook:
    name = "codex stop hook"
    can_start_turns = False

    def __init__(self, codex: Codex, socket: str, place: AgentPlace, listener: DoorListener[Observation]) -> None:
        self._codex = codex
        self._folder = place.folder
        self._listener = listener
        self._session = HookedSession(socket, place, listener)
        self._session.give = self._give
        self._session.heed = self._heed
        self._session.is_awaited = lambda: bool(self._waiting or self._handed)
        self._waiting: list[DoorMessage] = []
        self._handed: list[DoorMessage] = []  # given to Codex, and not seen in the session file so far
        self._is_open = False

    async def open(self) -> Probe:
        if not are_trusted(self._codex.home):
            how = f"Start it with `wrap {FLAG}`, and choose “Trust all and continue”."
            raise DoorShut("Codex was not told to trust the relay's hooks.", how)
        try:
            await self._session.open()
        except OSError as error:
            raise DoorShut(f"The hooks cannot be listened to ({error.strerror or type(error).__name__}).") from None
        self._is_open = True
        self._mark()
        note = "" if self._session.thread else "it is heard of with the agent's first turn"
        return Probe(await read_version(self._codex), note)

    async def close(self) -> None:
        self._is_open = False
        await self._session.close()
        self._waiting.clear()
        self._mark()

    # --- messages --------------------------------------------------------------------------------------------------------

    async def deliver(self, message: DoorMessage) -> str:
        if not self._is_open:
            raise DoorShut("The hooks of Codex are not open.")
        await self._session.look()
        if not self._session.is_working:
            raise NotTaken("The agent is idle, and the hook runs only at the end of a turn.")
        if _size(message) > MAX_BYTES:
            raise NotTaken("It is too long for a Codex hook.")
        if _REWRITTEN & set(message.text):
            raise NotTaken("Codex would escape its angle brackets and ampersands.")
        self._waiting.append(message)
        self._mark()
        self._session.hurry()
        return "waits for the end of the turn"

    def _give(self) -> str | None:
        room, count = MAX_BYTES, 0
        for message in self._waiting:
            room -= _size(message)
            count += room >= 0
        given, self._waiting = self._waiting[:count], self._waiting[count:]
        self._handed += given
        self._mark()
        reason = "\n\n".join(message.text for message in given)
        return msgspec.json.encode({"decision": "block", "reason": reason}).decode() if given else None

    def _heed(self, signal: Given | TurnEnded) -> None:
        match signal:
            case Given(text):
                for message in [message for message in self._handed if is_in(message, text)]:
                    self._handed.remove(message)
                    self._listener.door_read(message.id, "transcript")
            case TurnEnded():
                handed, unread = self._handed, [*self._handed, *self._waiting]
                self._handed, self._waiting = [], []
                self._mark()
                for message in unread:
                    self._listener.door_refused(message.id, "The turn ended before it was read.", was_given=message in handed)

    def _mark(self) -> None:
        if self._waiting:
            replace_private(marker_path(self._folder), b"")
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(marker_path(self._folder))

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        found = await find_message(self._folder, self._codex.home, message)
        is_held = self._is_open and message in (*self._waiting, *self._handed)
        return Whereabouts.HELD if is_held and found is not Whereabouts.READ else found

    async def answer(self, request_id: str, decision: Decision) -> None:
        if self._is_open:
            await self._session.look()
        self._session.requests.answer(request_id, decision)


def _size(message: DoorMessage) -> int:
    return len(f"{message.text}\n\n".encode())
