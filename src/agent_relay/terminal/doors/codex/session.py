"""The conversation of one Codex whose hooks reach us: which it is, whether a turn runs, what is asked, what the agent was given.

A hook says which conversation it is, with the first prompt of each, and what is asked. Everything else stands in the session
file, as soon as a hook could tell it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_relay.terminal.doors.codex.hooks import PERMISSION, STOP
from agent_relay.terminal.doors.codex.record import (
    Decided,
    Given,
    Signal,
    SignalReader,
    Thread,
    TurnBegan,
    TurnEnded,
    load_known,
    remember,
)
from agent_relay.terminal.doors.codex.requests import HookRequests
from agent_relay.terminal.doors.door import DoorListener
from agent_relay.terminal.doors.hooks import HookServer
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.output.transcripts.records import as_text
from agent_relay.terminal.output.transcripts.tail import TranscriptTail

LOOK_S = 1.0
BUSY_LOOK_S = 0.1  # while something is on its way
_log = logging.getLogger("agent_relay.terminal")


class HookedSession:
    """`give` says what the agent goes on with at the end of a turn, if with anything; `heed` is told what the agent was given,
    and that a turn has ended; `is_awaited`: there is something to look for."""

    def __init__(self, socket: str, place: AgentPlace, listener: DoorListener[Observation]) -> None:
        self._folder = place.folder
        self._listener = listener
        self._server = HookServer(socket, self._take_hook)
        self._reader = SignalReader()
        self._tail: TranscriptTail | None = None
        self._is_new = False  # nothing of its file was read so far
        self._looking = asyncio.Lock()
        self._due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.requests = HookRequests(listener)
        self.thread: Thread | None = None
        self.is_working = False
        self.is_over = False
        self.give: Callable[[], str | None] = lambda: None
        self.heed: Callable[[Given | TurnEnded], None] = lambda _: None
        self.is_awaited: Callable[[], bool] = lambda: False

    async def open(self) -> None:
        """Raises OSError where the hooks cannot be listened to."""
        await self._server.open()
        known = load_known(self._folder)
        if known:  # the conversation went on under a wrapper, or a door, before this one
            self._follow(known[-1])
            await self.look()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        self.is_over = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.requests.close()
        await self._server.close()

    def hurry(self) -> None:
        """Something is to be looked for from now on."""
        self._due.set()

    # --- hooks -----------------------------------------------------------------------------------------------------------

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
        return self.give() if event == STOP and not is_helpers else None

    def _meet(self, given: dict[str, Any]) -> None:
        """Remembers the conversation, which is another one after `/new`."""
        thread = Thread(as_text(given.get("session_id")), as_text(given.get("transcript_path")))
        if thread.id and thread.path.endswith(".jsonl") and thread != self.thread:
            remember(self._folder, thread)
            self._follow(thread)
            self._listener.door_session(thread.id)

    def _follow(self, thread: Thread) -> None:
        self.thread, self._is_new = thread, True
        self._reader = SignalReader()
        self._tail = TranscriptTail(Path(thread.path), self._reader) if thread.path else None

    # --- the session file ------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            is_busy = self.requests.is_open or self.is_awaited()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BUSY_LOOK_S if is_busy else LOOK_S):
                    await self._due.wait()
            self._due.clear()
            try:
                await self.look()
            except Exception:  # noqa: BLE001 - what cannot be read now may be later, and nothing counts as read meanwhile
                _log.exception("the session file of Codex cannot be read")

    async def look(self) -> None:
        """Reads what is new, and tells it."""
        async with self._looking:
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
                self.heed(signal)
            case Given():
                self.heed(signal)
            case Decided():
                self.requests.note_decided(signal)


def _latest(signals: list[Signal]) -> list[Signal]:
    """Of a conversation that went on before we came: what the agent was given, and whether a turn runs."""
    turns = [signal for signal in signals if isinstance(signal, TurnBegan | TurnEnded)]
    return [*(signal for signal in signals if isinstance(signal, Given)), *turns[-1:]]
