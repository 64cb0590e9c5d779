"""The reader of an agent's terminal: passes on what it writes, and reads its screen when there is something to read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from agent_relay.terminal.agent.setup import AgentSetup
from agent_relay.terminal.backends.terminal import TerminalEnded
from agent_relay.terminal.delivery.consoles import waits_for_line
from agent_relay.terminal.delivery.prompt_view import PromptView
from agent_relay.terminal.output.watcher import Event, Watcher
from agent_relay.terminal.recordings.live_screen import LiveScreen
from agent_relay.terminal.recordings.screen_log import ScreenLog


class ScreenReader:
    """It makes the terminal and listens to it. `handle` is given what the watcher makes of each reading."""

    def __init__(
        self, setup: AgentSetup, log: ScreenLog, watcher: Watcher, view: PromptView, handle: Callable[[Sequence[Event]], None]
    ) -> None:  # fmt: skip
        self._watcher = watcher
        self._view = view
        self._handle = handle
        self._recorder = setup.recorder
        self._log = log
        self._woken = asyncio.Event()
        self._reading = asyncio.Lock()
        self.rows: tuple[str, ...] = ()  # on the screen, when it was last read
        self.terminal = setup.make_terminal(self)
        self.live = LiveScreen(setup.home.team, self.terminal.draw)

    # --- what the terminal tells -------------------------------------------------------------------------------------

    def output(self, data: bytes) -> None:
        if self._recorder is not None:
            self._recorder.output(data, _now())
        self.live.output(data)
        self._note_output()

    def output_lost(self) -> None:
        if self._recorder is not None:
            self._recorder.mark("output is missing here", _now())
        self.live.output_lost()
        self._note_output()

    def _note_output(self) -> None:
        t = _now()
        self._watcher.note_output(t)
        self._view.note_output(t)
        self._woken.set()

    def person_typed(self) -> None:
        self._watcher.note_person()
        self._view.note_person(_now())

    # --- reading -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            due = self._watcher.due_at
            self._woken.clear()
            if due is not None and due <= _now():
                await self.read()
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._woken.wait()

    async def read(self, late_s: float = 0.0) -> None:
        """`late_s`: as if that much time had passed."""
        async with self._reading:
            if self._watcher.asks_for_reader:
                self._watcher.is_waiting = await self._waits_for_line()
            screen = await self.terminal.screen()
            if self._recorder is not None:
                self._recorder.resize(screen.columns, len(screen.visible), _now())
            self.live.resized(screen.columns, len(screen.visible))
            t = _now() + late_s
            events = self._watcher.saw(screen, t)
            self.rows = tuple(line.text for line in screen.visible)
            self._view.note_screen(screen, t)
            self._log.note(screen, t)
        self._handle(events)

    async def adopt(self) -> list[Event]:
        """Takes what stands on the screen of a program that is taken up as said before we came."""
        events = self._watcher.saw(await self.terminal.screen(), _now())
        self._watcher.adopt()
        return events

    async def _waits_for_line(self) -> bool:
        try:
            reader = await self.terminal.foreground()
        except TerminalEnded:
            return False
        return reader is not None and waits_for_line(reader)


def _now() -> float:
    return asyncio.get_running_loop().time()
