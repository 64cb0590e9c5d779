"""The live screen of a terminal, as a file: a drawing of the screen, and then what the program writes.

`live.cast` in the agent's folder is an asciicast as a recording is, but it stays small: when it has grown, when the size has
changed or output was lost, another one takes its place, with a new drawing. So whoever comes at any time shows it from its
beginning, and whoever fell behind finds a new file and has lost nothing that is still to be seen.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable

from agent_relay.terminal.backends.terminal import Drawing
from agent_relay.terminal.recordings.recorder import TerminalRecorder
from agent_relay.terminal.screen.drawing import BEGUN, KEPT_BYTES

LIVE_FILE = "live.cast"
ENDED = "the program has ended"
MAX_BYTES = 262_144  # after the drawing: what somebody who comes has to be sent at most
_GATHER_S = 0.04  # a frame of a CLI comes in several pieces
_BETWEEN_S = 0.25  # two drawings; a flood would ask for one after the other
_RETRY_S = 5.0

Draw = Callable[[Callable[[], None]], Awaitable[Drawing]]


class LiveScreen:
    def __init__(self, folder: str, draw: Draw) -> None:
        self._path = os.path.join(folder, LIVE_FILE)
        self._draw = draw
        self._recorder: TerminalRecorder | None = None
        self._size = (0, 0)
        self._drawn_bytes = 0
        self._gathered = bytearray()  # not written yet
        self._is_gathering = False
        self._is_drawing = False  # what is gathered belongs behind the drawing that is being made
        self._tail = b""
        self._is_due = asyncio.Event()
        self._is_due.set()

    # --- what the terminal tells -------------------------------------------------------------------------------------

    def output(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-KEPT_BYTES:]
        self._gathered += data
        if not self._is_gathering:
            self._is_gathering = True
            asyncio.get_running_loop().call_later(_GATHER_S, self._write)

    def output_lost(self) -> None:
        self._is_due.set()

    def resized(self, columns: int, rows: int) -> None:
        """May be told again and again."""
        if self._recorder is not None and (columns, rows) != self._size:
            self._is_due.set()

    # --- writing -----------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        self._is_gathering = False
        written = 0 if self._recorder is None or self._is_drawing else self._recorder.size_bytes - self._drawn_bytes
        if len(self._gathered) + written > MAX_BYTES:
            self._gathered.clear()  # the next drawing has it
            self._is_due.set()
        elif not self._is_drawing:
            self._put()

    def _put(self) -> None:
        if self._recorder is not None and self._gathered:
            self._recorder.output(bytes(self._gathered), self._now)
        self._gathered.clear()

    async def run(self) -> None:
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            pause_s = _BETWEEN_S
            try:
                await self._begin()
            except OSError:  # a full disk, perhaps; whoever watches waits
                self._is_due.set()
                pause_s = _RETRY_S
            except BaseException:
                self._is_due.set()
                raise
            finally:
                self._is_drawing = False
            await asyncio.sleep(pause_s)

    async def _begin(self) -> None:
        drawing = await self._draw(self._hold)
        # The title tells this file from every other: the numbers that the system gives to files come again.
        recorder = TerminalRecorder(self._path, drawing.columns, drawing.rows, title=secrets.token_hex(8), is_replacing=True)
        recorder.output(drawing.data, self._now)
        if self._recorder is not None:
            self._recorder.close()
        self._recorder, self._size, self._drawn_bytes = recorder, (drawing.columns, drawing.rows), recorder.size_bytes
        self._put()

    def _hold(self) -> None:
        self._put()
        self._is_drawing = True
        if begun := BEGUN.search(self._tail):
            self._gathered += begun[0]

    def close(self) -> None:
        """The program has ended."""
        if self._recorder is not None:
            self._put()
            self._recorder.mark(ENDED, self._now)
            self._recorder.close()
            self._recorder = None

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()
