"""The emulator behind a PTY, fed in small steps: it is slow, and neither a person's keys nor a flood may wait for it.

What is not drawn yet waits here. When far more came than anybody could read, the middle of it is dropped, whole lines
at a time; the alternate screen is kept track of, and the owner is told. Queries of the program are answered in their
place, where nobody else answers them: some CLIs ask where the cursor is before they draw, and give up when nobody answers. With
a person's terminal behind the PTY that one answers; without, we do, as a plain colour terminal would.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from agent_relay.terminal.backends.modes import ModeTracker
from agent_relay.terminal.backends.terminal import Drawing
from agent_relay.terminal.screen.contents import Line, Screen
from agent_relay.terminal.screen.emulator import MAX_UNREAD_LINES, Emulator

_QUERY = re.compile(
    rb"\x1b\[(?P<status>\??[56])n"
    rb"|\x1b\[(?P<attributes>[>=]?)0?c"
    rb"|\x1b\[\?(?P<mode>[0-9]{1,5})\$p"
    rb"|\x1b\[(?P<size>1[48])t"
    rb"|\x1b\](?P<colour>1[012]);\?(?:\x07|\x1b\\)"
)
_BEGUN = re.compile(rb"\x1b(?:\[[?>=]?[0-9]{0,5}\$?|\](?:1(?:[012](?:;\??\x1b?)?)?)?)?$")
_COLOURS = {b"10": b"e5e5/e5e5/e5e5", b"11": b"0000/0000/0000", b"12": b"e5e5/e5e5/e5e5"}
_CELL_PIXELS = (8, 16)  # of nothing in particular; programs want a ratio
_STEP_BYTES = 2048  # about 5 to 10 ms of drawing
MAX_WAITING_BYTES = 1024 * 1024
_KEPT_BYTES = 256 * 1024  # of what waits, when it is too much; several screens


class Emulation:
    """`reply` sends to the program; None when the person's own terminal answers. `lost`: output was dropped."""

    def __init__(self, columns: int, rows: int, *, reply: Callable[[bytes], None] | None, lost: Callable[[], None]) -> None:
        self._emulator = Emulator(columns, rows)
        self._rows = rows
        self._reply = reply
        self._lost = lost
        self._finder = QueryFinder()
        self._drawn = ModeTracker()
        self._waiting: deque[bytes | Query] = deque()
        self._waiting_bytes = 0
        self._is_scheduled = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._carried: deque[Line] = deque(maxlen=MAX_UNREAD_LINES)

    def put(self, data: bytes) -> None:
        parts = self._finder.split(data) if self._reply is not None else [data]
        self._waiting.extend(parts)
        self._waiting_bytes += sum(len(part) for part in parts if isinstance(part, bytes))
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self._drop()
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._idle.clear()
            asyncio.get_running_loop().call_soon(self._step)

    def resize(self, columns: int, rows: int) -> None:
        self._rows = rows
        self._emulator.resize(columns, rows)

    async def read(self) -> Screen:
        await self._idle.wait()
        screen = self._emulator.read()
        carried = tuple(line for line in self._carried if line.position < screen.lines[0].position)
        self._carried.clear()
        if not carried:
            return screen
        return Screen(
            lines=(*carried, *screen.lines),
            columns=screen.columns,
            first_visible=screen.first_visible,
            cursor=screen.cursor,
            title=screen.title,
            is_alternate=screen.is_alternate,
        )

    async def draw(self, at: Callable[[], None]) -> Drawing:
        await self._idle.wait()
        at()
        return Drawing(self._emulator.columns, self._rows, self._emulator.draw().encode("utf-8", "replace"))

    def _step(self) -> None:
        part = self._waiting.popleft()
        if isinstance(part, Query):
            self._answer(part)
        else:
            head, rest = part[:_STEP_BYTES], part[_STEP_BYTES:]
            self._drawn.feed(head)
            self._emulator.feed(head)
            self._waiting_bytes -= len(head)
            if rest:
                self._waiting.appendleft(rest)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._step)
        else:
            self._is_scheduled = False
            self._idle.set()

    def _answer(self, query: Query) -> None:
        if self._reply is None:
            return
        cursor = (0, 0)
        if query.needs is Place.CURSOR:
            screen = self._emulator.read()
            # Reading takes the lines that scrolled off; they are kept for whoever reads next.
            self._carried.extend(line for line in screen.lines if line.position < screen.first_visible)
            if screen.cursor is not None:
                cursor = (screen.cursor.position - screen.first_visible, screen.cursor.column)
        self._reply(answer(query, columns=self._emulator.columns, rows=self._rows, cursor=cursor))

    def _drop(self) -> None:
        """Keeps the end of what waits, from the beginning of a line on, and every query."""
        queries = [part for part in self._waiting if isinstance(part, Query)]
        data = b"".join(part for part in self._waiting if isinstance(part, bytes))
        cut = data.find(b"\n", len(data) - _KEPT_BYTES) + 1 or len(data) - _KEPT_BYTES
        dropped, kept = data[:cut], data[cut:]
        self._drawn.feed(dropped)
        kept = self._drawn.redo_alternate() + kept
        self._waiting = deque([*queries, kept])
        self._waiting_bytes = len(kept)
        self._lost()


class Place(Enum):
    """Place on the screen that has to be known to answer."""

    NOWHERE = 0
    CURSOR = 1


class Query(Struct, frozen=True):
    kind: str
    value: bytes
    needs: Place = Place.NOWHERE


class QueryFinder:
    def __init__(self) -> None:
        self._kept = b""

    def split(self, data: bytes) -> list[bytes | Query]:
        """The output with the queries in their places; what is shown before a query is drawn before it is answered."""
        data, self._kept = self._kept + data, b""
        begun = _BEGUN.search(data, max(0, len(data) - 16))
        if begun:
            data, self._kept = data[: begun.start()], data[begun.start() :]
        parts: list[bytes | Query] = []
        start = 0
        for match in _QUERY.finditer(data):
            kind = match.lastgroup or ""
            value = match[kind]
            parts.append(data[start : match.end()])
            needs = Place.CURSOR if kind == "status" and value.endswith(b"6") else Place.NOWHERE
            parts.append(Query(kind, value, needs))
            start = match.end()
        if start < len(data):
            parts.append(data[start:])
        return parts


def answer(query: Query, *, columns: int, rows: int, cursor: tuple[int, int] = (0, 0)) -> bytes:
    """`cursor` is (row, column) from 0; needed only where the query says so."""
    value = query.value
    match query.kind:
        case "status":
            if value.endswith(b"5"):
                return b"\x1b[0n"
            mark = b"?" if value.startswith(b"?") else b""
            return b"\x1b[%s%d;%dR" % (mark, cursor[0] + 1, cursor[1] + 1)
        case "attributes":
            return {b"": b"\x1b[?62;22c", b">": b"\x1b[>0;10;1c"}.get(value, b"")
        case "mode":
            return b"\x1b[?%s;0$y" % value  # not recognised
        case "size" if value == b"18":
            return b"\x1b[8;%d;%dt" % (rows, columns)
        case "size":
            return b"\x1b[4;%d;%dt" % (rows * _CELL_PIXELS[1], columns * _CELL_PIXELS[0])
        case "colour":
            return b"\x1b]%s;rgb:%s\x1b\\" % (value, _COLOURS[value])
        case _:
            return b""
