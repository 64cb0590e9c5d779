"""Recording a program for a profile of its own: in the person's terminal or in none, with a mark wherever it waits for input."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from agent_relay.terminal.backends.person_terminal import PersonTerminal
from agent_relay.terminal.backends.pty import PtyTerminal
from agent_relay.terminal.backends.terminal import DEFAULT_COLUMNS, DEFAULT_ROWS, TerminalEnded
from agent_relay.terminal.recordings.profile_proposal import WAITS
from agent_relay.terminal.recordings.recorder import TerminalRecorder

_LOOK_S = 0.1
_QUIET_S = 0.4  # what is still being drawn is not finished
_STOP_GRACE_S = 2.0


class ProgramRecording:
    """`words` are typed one after the other, each once the program waits. It ends with the program, or after so many seconds."""

    def __init__(self, argv: Sequence[str], path: str, *, words: Sequence[str] = (), seconds: float | None = None) -> None:
        self._argv = argv
        self._words = list(words)
        self._seconds = seconds
        person = PersonTerminal.find()
        columns, rows = person.size if person is not None else (DEFAULT_COLUMNS, DEFAULT_ROWS)
        self._recorder = TerminalRecorder(path, columns, rows, title=os.path.basename(argv[0]), is_replacing=True)
        self._terminal = PtyTerminal(self, person)
        self._last_output = 0.0
        self._is_marked = False

    # --- what the terminal tells -----------------------------------------------------------------------------------------

    def output(self, data: bytes) -> None:
        self._last_output = self._now
        self._is_marked = False
        self._recorder.output(data, self._now)

    def output_lost(self) -> None:
        self._recorder.mark("output is missing here", self._now)

    def person_typed(self) -> None:
        pass

    # --- the whole -------------------------------------------------------------------------------------------------------

    async def run(self, cwd: str, environment: Mapping[str, str]) -> None:
        """Raises TerminalError when the program cannot be started."""
        self._last_output = self._now
        await self._terminal.start(self._argv, cwd=cwd, environment=environment)
        ending = asyncio.create_task(self._terminal.wait())
        try:
            end = None if self._seconds is None else self._now + self._seconds
            while not ending.done() and (end is None or self._now < end):
                await asyncio.wait([ending], timeout=_LOOK_S)
                await self._look()
        finally:
            ending.cancel()
            await self._terminal.stop(_STOP_GRACE_S)
            self._recorder.close()

    async def _look(self) -> None:
        if self._is_marked or self._now - self._last_output < _QUIET_S:
            return
        try:
            reader = await self._terminal.foreground()
        except TerminalEnded:
            return
        if reader is None or not reader.is_reading:
            return
        self._recorder.mark(WAITS, self._now)
        self._is_marked = True
        if self._words:
            await self._terminal.write(self._words.pop(0).encode() + b"\r")

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()
