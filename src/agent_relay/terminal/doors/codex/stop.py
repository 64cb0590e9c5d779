"""Codex's stop hook as a way in: what waits is given to the agent when its turn would end, and the turn goes on with it.

It reaches only an agent that works; an idle one is typed to. Messages wait here until the hook asks for them, and several go
at once. With a tool's result Codex would take one as well, but gives it to the agent as a word of its developer, which a
colleague's is not.

A hook says which conversation it is, with the first prompt of each, and what is asked. Everything else stands in the session
file, as soon as a hook could tell it: whether a turn runs, and what the agent was given.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from agent_relay.terminal.doors.codex.hooks import FLAG, PERMISSION, STOP, are_trusted, marker_path
from agent_relay.terminal.doors.codex.record import KNOWN, Codex, CodexSignals, find_message, remember
from agent_relay.terminal.doors.codex.requests import CodexHookRequests
from agent_relay.terminal.doors.door import DoorListener, DoorMessage, DoorShut, NotTaken, Probe, Whereabouts
from agent_relay.terminal.doors.hook_door import MAX_BYTES, HookedSession, Spool, size_of
from agent_relay.terminal.doors.known import KnownSession
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.ledger import Handed, HandoverLedger
from agent_relay.terminal.doors.signals import Decided, Given, Signal, TurnBegan, TurnEnded
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.output.transcripts.records import as_text
from agent_relay.terminal.output.transcripts.tail import TranscriptTail

_REWRITTEN = frozenset("<>&")


class HookedConversation(HookedSession[CodexHookRequests]):
    """The conversation of one Codex whose hooks reach us at `socket`: which it is, whether a turn runs, what is asked."""

    def __init__(self, socket: str, place: AgentPlace, listener: DoorListener[Observation]) -> None:
        super().__init__("Codex", socket, CodexHookRequests(listener))
        self._folder = place.folder
        self._listener = listener
        self._reader = CodexSignals()
        self._tail: TranscriptTail | None = None
        self._is_new = False  # nothing of its file was read so far
        self.thread: KnownSession | None = None
        self.is_working = False

    async def begin(self) -> None:
        """Raises OSError where the hooks cannot be listened to."""
        await self.listen()
        known = KNOWN.load(self._folder)
        if known:  # the conversation went on under a wrapper, or a door, before this one
            self._follow(known[-1])
            await self.look()
        self.watch()

    async def _take_hook(self, event: str, given: dict[str, Any]) -> str | None:
        if self.is_over:
            return None
        is_helpers = bool(given.get("agent_id"))  # a helper of the agent's own, in a conversation of its own
        if not is_helpers:
            self._meet(given)
        await self.look()
        if event == PERMISSION:
            self.requests.ask(given)
            self.hurry()
        return self._give() if event == STOP and not is_helpers else None

    def _meet(self, given: dict[str, Any]) -> None:
        """Remembers the conversation, which is another one after `/new`."""
        thread = KnownSession(as_text(given.get("session_id")), as_text(given.get("transcript_path")))
        if thread.id and thread.path.endswith(".jsonl") and thread != self.thread:
            remember(self._folder, thread)
            self._follow(thread)
            self._listener.door_session(thread.id)

    def _follow(self, thread: KnownSession) -> None:
        self.thread, self._is_new = thread, True
        self._reader = CodexSignals()
        self._tail = TranscriptTail(Path(thread.path), self._reader) if thread.path else None

    async def _look(self) -> None:
        if self._tail is not None:
            await asyncio.to_thread(self._tail.poll)
        signals = self._reader.take()
        if self._is_new and signals:
            self._is_new = False
            signals = _latest(signals)
        for signal in signals:
            if not self.is_over:
                self._note(signal)

    def _note(self, signal: Signal) -> None:
        match signal:
            case TurnBegan():
                self.is_working = True
            case TurnEnded(is_broken_off):
                self.is_working = False
                self.requests.note_turn_over(is_broken_off=is_broken_off)
            case Decided():
                self.requests.note_decided(signal)
            case _:
                pass

    def _give(self) -> str | None:
        """The answer at the end of a turn, with which the agent goes on; None where it does not."""
        return None


def _latest(signals: list[Signal]) -> list[Signal]:
    """Of a conversation that went on before we came: what the agent was given, and whether a turn runs."""
    turns = [signal for signal in signals if isinstance(signal, TurnBegan | TurnEnded)]
    return [*(signal for signal in signals if isinstance(signal, Given)), *turns[-1:]]


class CodexStopHook(HookedConversation):
    name = "codex stop hook"
    can_start_turns = False

    def __init__(self, codex: Codex, socket: str, place: AgentPlace, listener: DoorListener[Observation]) -> None:
        super().__init__(socket, place, listener)
        self._codex = codex
        self._spool = Spool(marker_path(place.folder))
        self._handed: HandoverLedger[Handed] = HandoverLedger(listener)

    async def open(self) -> Probe:
        if not are_trusted(self._codex.home):
            how = f"Start it with `wrap {FLAG}`, and choose “Trust all and continue”."
            raise DoorShut("Codex was not told to trust the relay's hooks.", how)
        try:
            await self.begin()
        except OSError as error:
            raise DoorShut(f"The hooks cannot be listened to ({error.strerror or type(error).__name__}).") from None
        self._spool.mark()
        note = "" if self.thread else "it is heard of with the agent's first turn"
        return Probe(await self._codex.version(), note)

    async def close(self) -> None:
        await super().close()
        self._spool.take_all()

    async def deliver(self, message: DoorMessage) -> str:
        if not self.is_open:
            raise DoorShut("The hooks of Codex are not open.")
        await self.look()
        if not self.is_working:
            raise NotTaken("The agent is idle, and the hook runs only at the end of a turn.")
        if size_of(message) > MAX_BYTES:
            raise NotTaken("It is too long for a Codex hook.")
        if _REWRITTEN & set(message.text):
            raise NotTaken("Codex would escape its angle brackets and ampersands.")
        self._spool.add(message)
        self.hurry()
        return "waits for the end of the turn"

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        found = await find_message(self._folder, self._codex.home, message)
        is_held = self.is_open and (message in self._spool or message.uuid in self._handed)
        return Whereabouts.HELD if is_held and found is not Whereabouts.READ else found

    @property
    def _is_busy(self) -> bool:
        return bool(self._spool or self._handed) or super()._is_busy

    def _give(self) -> str | None:
        messages = self._spool.take(MAX_BYTES)
        for message in messages:
            self._handed.add(Handed(message))
        reason = "\n\n".join(message.text for message in messages)
        return msgspec.json.encode({"decision": "block", "reason": reason}).decode() if messages else None

    def _note(self, signal: Signal) -> None:
        super()._note(signal)
        match signal:
            case Given(text):
                for handed in self._handed.find(text):
                    self._handed.read(handed.message.uuid, "transcript")
            case TurnEnded():
                given, waiting = self._handed.take_all(), self._spool.take_all()
                for message in [*given, *waiting]:
                    self._listener.door_refused(message.id, "The turn ended before it was read.", was_given=message in given)
            case _:
                pass
