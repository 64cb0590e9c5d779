"""Recording a program that already runs in tmux: another listener at its pane, which nobody else notices.

The recording begins with the screen as it is, drawn anew by `draw`, and goes on with what the program writes. tmux answers a
question in its place among the output, so nothing is written twice or missed between the two. When the size changes, or
output was lost because this process could not keep up, the screen is drawn again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from agent_relay.terminal.backends.tmux_client import ClientOwner, ControlClient
from agent_relay.terminal.backends.tmux_control import Event, Notice
from agent_relay.terminal.backends.tmux_drawing import PaneView, ask_view, draw
from agent_relay.terminal.backends.tmux_launch import EndMarkFinder
from agent_relay.terminal.backends.tmux_program import TmuxFailed, TmuxGone
from agent_relay.terminal.backends.tmux_server import TmuxServer
from agent_relay.terminal.recordings.recorder import TerminalRecorder
from agent_relay.terminal.screen.drawing import BEGUN, KEPT_BYTES

_SIZE = re.compile(rb"(?<!\d)(\d{1,9})x(\d{1,9}),\d{1,9},\d{1,9},(\d{1,9})(?![\dx])")  # of one pane, in a layout


class End(Enum):
    STOPPED = 1  # we were asked to, or the time is over
    PROGRAM = 2
    TMUX = 3  # the session is gone, and perhaps its last words with it


MakeRecorder: TypeAlias = Callable[[PaneView], TerminalRecorder]
_Piece: TypeAlias = bytes | tuple[int, int]


class _Ear(ControlClient):
    """Also tells of sizes, at their place among the output."""

    def __init__(self, server: TmuxServer, owner: ClientOwner, resized: Callable[[int, int], None]) -> None:
        super().__init__(server, owner)
        self._resized = resized

    def _handle(self, event: Event) -> None:
        match event:
            case Notice(b"layout-change", rest):
                sizes = (match.groups() for match in _SIZE.finditer(rest))
                number = self.pane.removeprefix("%").encode()
                size = next(((int(columns), int(rows)) for columns, rows, pane in sizes if pane == number), None)
                if size is not None:
                    self._resized(*size)
            case _:
                super()._handle(event)


class PaneRecording:
    def __init__(self, server: TmuxServer, pane: str) -> None:
        self._client = _Ear(server, self, self._pane_resized)
        self._pane = pane
        self._mark = EndMarkFinder()
        self._recorder: TerminalRecorder | None = None
        self._tail = b""  # the end of what came
        self._held: list[tuple[float, _Piece]] | None = None  # what comes while a drawing is being made
        self._is_due = asyncio.Event()  # the screen must be drawn again
        self._end: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    async def run(self, make: MakeRecorder, stopping: asyncio.Event, seconds: float | None) -> End:
        """Until the program ends, `stopping` is set or the time is over. Raises TmuxGone when there is nothing to record."""
        await self._client.open(self._pane, dict(os.environ))
        try:
            await self._draw(make)
            drawing = asyncio.create_task(self._draw_when_due(make))
            try:
                await self._until_the_end(stopping, seconds)
            finally:
                drawing.cancel()
                await asyncio.gather(drawing, return_exceptions=True)
                self._let_go()
        finally:
            await self._client.close()
        return self._end.result()

    async def _until_the_end(self, stopping: asyncio.Event, seconds: float | None) -> None:
        stop = asyncio.create_task(stopping.wait())
        stop.add_done_callback(lambda _: self._finish(End.STOPPED))
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._end)
        except TimeoutError:
            self._finish(End.STOPPED)
        finally:
            stop.cancel()

    # --- what the client tells -----------------------------------------------------------------------------------------

    def pane_wrote(self, data: bytes) -> None:
        data, is_over = self._mark.feed(data)
        self._tail = (self._tail + data)[-KEPT_BYTES:]
        if data and (self._recorder is not None or self._held is not None):
            self._put(data)
        if is_over:
            self._finish(End.PROGRAM)

    def pane_output_lost(self) -> None:
        if self._recorder is not None:
            self._recorder.mark("output is missing here", self._now)
        self._is_due.set()

    def subscription_changed(self, name: bytes, value: bytes) -> None:
        """None was asked for."""

    def client_gone(self) -> None:
        self._finish(End.TMUX)

    def _pane_resized(self, columns: int, rows: int) -> None:
        if self._recorder is not None or self._held is not None:
            self._put((columns, rows))
        self._is_due.set()

    def _finish(self, end: End) -> None:
        if not self._end.done():
            self._end.set_result(end)

    # --- writing ---------------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _put(self, piece: _Piece) -> None:
        if self._held is not None:
            self._held.append((self._now, piece))
        else:
            self._write(self._now, piece)

    def _write(self, t: float, piece: _Piece) -> None:
        assert self._recorder is not None
        if isinstance(piece, bytes):
            self._recorder.output(piece, t)
        else:
            self._recorder.resize(*piece, t)

    def _let_go(self) -> None:
        """Everything that was held is written, in its order."""
        held, self._held = self._held or [], None
        if self._recorder is not None:
            for t, piece in held:
                self._write(t, piece)

    async def _draw_when_due(self, make: MakeRecorder) -> None:
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            with contextlib.suppress(TmuxFailed, TmuxGone):
                await self._draw(make)

    async def _draw(self, make: MakeRecorder) -> None:
        sight = await ask_view(self._client, self._pane, self._hold)
        if self._recorder is None:
            self._recorder = make(sight)
        t = self._held[0][0] if self._held else self._now
        self._recorder.resize(sight.columns, sight.rows, t)
        self._recorder.output(draw(sight).encode(), t)
        self._let_go()

    def _hold(self) -> None:
        begun = BEGUN.search(self._tail)
        self._held = [(self._now, begun[0])] if begun else []
