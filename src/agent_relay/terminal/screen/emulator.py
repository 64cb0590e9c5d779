"""A terminal emulation over raw bytes: pyte, with what it lacks.

Added: the alternate screen, an absolute count of lines with those that scrolled off between two readings, scrolling
by control sequence, characters of no width, and colours by column. Feed it as bytes come; read it when they pause,
for reading costs a thousand times what a byte does.
"""

from __future__ import annotations

import codecs
import inspect
import re
import unicodedata
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import pyte
from pyte.screens import Cursor as PyteCursor
from pyte.screens import Margins
from wcwidth import wcwidth

from agent_relay.terminal.screen.contents import Cursor, Ink, Line, Screen
from agent_relay.terminal.screen.drawing import BEGINNING, ENTER_ALTERNATE, Cells, draw_rows

_STRING_SEQUENCE = r"\x1b[P_X^][^\x1b\x07\x9c]*(?:\x1b\\|\x07|\x9c)"
_MARKED_SEQUENCE = r"\x1b\[[<=>][0-9;:]*[ -/]*[@-~]"
_INTERMEDIATE_SEQUENCE = r"\x1b\[[0-9;?]*[!\"#%&'()*+,./-][ -/]*[@-~]"
_COLON_SEQUENCE = r"\x1b\[[0-9;]*:[0-9;:]*m"
_ODD_SEQUENCE = re.compile("|".join((_STRING_SEQUENCE, _MARKED_SEQUENCE, _INTERMEDIATE_SEQUENCE, _COLON_SEQUENCE)))
_BEGUN_SEQUENCE = re.compile(r"\x1b(?:[P_X^][^\x1b\x07\x9c]*\x1b?|\[[0-9;:<=>?]*[ -/]*)?$")
_MAX_STRING = 65_536  # longer than any real one; beyond it the string is let through rather than kept for ever
MAX_UNREAD_LINES = 10_000  # between two readings; a CLI that prints more in a fraction of a second is not talking
_ALTERNATE_MODES = {47 << 5, 1047 << 5, 1049 << 5}  # pyte's spelling of private modes
_ZERO_WIDTH_JOINER = "\u200d"


class Emulator:
    """Bytes in, `Screen` out."""

    def __init__(self, columns: int = 120, rows: int = 40) -> None:
        self._grid = _Grid(columns, rows)
        self._stream = _Stream(self._grid)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._controls = ControlFilter()

    @property
    def columns(self) -> int:
        return int(self._grid.columns)

    def feed(self, data: bytes) -> None:
        text = self._controls.clean(self._decoder.decode(data))
        if text:
            self._stream.feed(text)

    def resize(self, columns: int, rows: int) -> None:
        self._grid.resize(rows, columns)

    def draw(self) -> str:
        """Text that makes another terminal of this size show the same."""
        grid = self._grid
        below = grid.below
        parts = [BEGINNING, *([draw_rows(below, grid.lines), ENTER_ALTERNATE] if below is not None else [])]
        parts.append(draw_rows(grid.buffer, grid.lines))
        if grid.margins is not None:
            parts.append(f"\x1b[{grid.margins.top + 1};{grid.margins.bottom + 1}r")
        parts.append(f"\x1b[{grid.cursor.y + 1};{min(grid.cursor.x, grid.columns - 1) + 1}H")
        parts.append("\x1b[?25l" if grid.cursor.hidden else "\x1b[?25h")
        return "".join(parts)

    def read(self) -> Screen:
        """Reads what is visible, and before it what scrolled off since the last reading."""
        grid = self._grid
        first = grid.scrolled
        unread = [_line(position, cells) for position, cells in grid.unread]
        grid.unread.clear()
        visible = [_line(first + row, grid.buffer[row]) for row in range(grid.lines)]
        return Screen(
            lines=(*unread, *visible),
            columns=grid.columns,
            first_visible=first,
            cursor=Cursor(first + grid.cursor.y, min(grid.cursor.x, grid.columns - 1)),
            title=grid.title or None,
            is_alternate=grid.is_alternate,
        )


def _line(position: int, cells: Cells) -> Line:
    # A row is a dictionary of the cells that were written to; the others are blank.
    if not cells:
        return Line(position, "")
    text = "".join([cells[column].data for column in range(max(cells) + 1)]).rstrip()
    return Line(position, text, _ink_reader(cells), getattr(cells, "is_wrapped", False))


def _ink_reader(cells: Cells) -> Callable[[int], Ink]:
    def ink_at(column: int) -> Ink:
        cell = cells[column]
        return Ink(cell.fg, cell.bg)

    return ink_at


class _Stream(pyte.Stream):
    csi = {**pyte.Stream.csi, "S": "scroll_up", "T": "scroll_down"}  # noqa: RUF012 - pyte declares it so


@lru_cache(maxsize=4096)
def _width(character: str) -> int:
    return int(wcwidth(character))


class _Grid(pyte.Screen):
    """pyte's screen. Its own names stay: they are what the stream calls."""

    def __init__(self, columns: int, lines: int) -> None:
        self.scrolled = 0
        self.unread: deque[tuple[int, Cells]] = deque(maxlen=MAX_UNREAD_LINES)
        self.is_alternate = False
        self._is_drawing = False
        self._main: tuple[Any, PyteCursor, Margins | None] | None = None
        super().__init__(columns, lines)
        for name in set(_Stream.csi.values()):
            setattr(self, name, _checked(getattr(self, name)))

    @property
    def below(self) -> Mapping[int, Cells] | None:
        """The normal screen, while the alternate one is shown."""
        return None if self._main is None else self._main[0]

    # --- scrolling -----------------------------------------------------------------------------------------------

    def index(self) -> None:
        top, bottom = self.margins or Margins(0, self.lines - 1)
        if self.cursor.y == bottom and top == 0 and not self.is_alternate:
            # Only what leaves at the very top leaves the screen for good; a region below it just moves.
            self.unread.append((self.scrolled, self.buffer[0]))
            self.scrolled += 1
        super().index()

    def scroll_up(self, count: int | None = None) -> None:
        self._scroll(count, at_bottom=True)

    def scroll_down(self, count: int | None = None) -> None:
        self._scroll(count, at_bottom=False)

    def _scroll(self, count: int | None, *, at_bottom: bool) -> None:
        top, bottom = self.margins or Margins(0, self.lines - 1)
        row = self.cursor.y
        self.cursor.y = bottom if at_bottom else top
        for _ in range(min(count or 1, self.lines)):
            if at_bottom:
                self.index()
            else:
                self.reverse_index()
        self.cursor.y = row

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        if how > 3:
            return
        if how == 3:
            # The scrollback is thrown away, and a CLI that does so prints everything anew: what was not read yet
            # will be read then, and would otherwise be read twice.
            self.unread.clear()
            return
        super().erase_in_display(how, *args, **kwargs)

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        if how <= 2:
            super().erase_in_line(how, private)
            if how != 1:
                self._mark_wrapped(False)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Rows that do not fit any more scroll off at the top, as far as the cursor allows, and are counted."""
        lines = lines or self.lines
        surplus = min(self.lines - lines, self.cursor.y - lines + 1)
        if surplus > 0 and not self.is_alternate:
            for row in range(surplus):
                self.unread.append((self.scrolled + row, self.buffer[row]))
            self.scrolled += surplus
        for row in range(max(surplus, 0), self.lines if surplus > 0 else 0):
            self.buffer[row - surplus] = self.buffer[row]
        if surplus > 0:
            self.cursor.y -= surplus
        for row in [row for row in self.buffer if row >= lines]:
            del self.buffer[row]
        self.margins = None
        if columns and columns < self.columns:
            for cells in self.buffer.values():
                for column in [column for column in cells if column >= columns]:
                    del cells[column]
        self.lines, self.columns = lines, columns or self.columns
        self.cursor.x = min(self.cursor.x, self.columns - 1)
        self.cursor.y = min(self.cursor.y, self.lines - 1)

    # --- the alternate screen --------------------------------------------------------------------------------------

    def set_mode(self, *modes: int, **kwargs: Any) -> None:
        if kwargs.get("private") and _ALTERNATE_MODES & {mode << 5 for mode in modes} and not self.is_alternate:
            self._main = (dict(self.buffer), self.cursor, self.margins)
            self._enter(alternate=True)
        super().set_mode(*modes, **kwargs)

    def reset_mode(self, *modes: int, **kwargs: Any) -> None:
        super().reset_mode(*modes, **kwargs)
        if kwargs.get("private") and _ALTERNATE_MODES & {mode << 5 for mode in modes} and self._main is not None:
            buffer, cursor, margins = self._main
            self._enter(alternate=False)
            self.buffer.update(buffer)
            self.cursor, self.margins, self._main = cursor, margins, None
            self.cursor.y = min(self.cursor.y, self.lines - 1)

    def _enter(self, *, alternate: bool) -> None:
        self.is_alternate = alternate
        self.buffer.clear()
        self.cursor = PyteCursor(self.cursor.x, self.cursor.y)
        self.dirty.update(range(self.lines))

    def reset(self) -> None:
        super().reset()
        self.is_alternate, self._main = False, None

    # --- lines that the terminal breaks --------------------------------------------------------------------------------

    def linefeed(self) -> None:
        if self._is_drawing:  # nobody asked for it: the row is full
            self._mark_wrapped(True)
        super().linefeed()

    def _mark_wrapped(self, is_wrapped: bool) -> None:
        cells: Any = self.buffer[self.cursor.y]
        if is_wrapped or getattr(cells, "is_wrapped", False):
            cells.is_wrapped = is_wrapped

    # --- characters ------------------------------------------------------------------------------------------------

    def draw(self, data: str) -> None:
        """pyte stops at the first character without width; here it joins the one before it, as an emoji after a joiner does."""
        self._is_drawing = True
        try:
            self._draw(data)
        finally:
            self._is_drawing = False

    def _draw(self, data: str) -> None:
        if data.isascii():
            super().draw(data)
            return
        joined = self._ends_with_joiner()
        start = 0
        for index, character in enumerate(data):
            width = _width(character)
            if width == 1 or (width == 2 and not joined):
                joined = False
                continue
            if start < index:
                super().draw(data[start:index])
            start = index + 1
            if width >= 0:
                self._join(character)
            joined = character == _ZERO_WIDTH_JOINER
        if start < len(data):
            super().draw(data[start:])

    def _ends_with_joiner(self) -> bool:
        cells, column = self.buffer[self.cursor.y], self.cursor.x - 1
        return column >= 0 and any(cells[at].data.endswith(_ZERO_WIDTH_JOINER) for at in (column, column - 1) if at in cells)

    def _join(self, character: str) -> None:
        cells, column = self.buffer[self.cursor.y], self.cursor.x - 1
        while column > 0 and not cells[column].data:
            column -= 1  # the second half of a wide character
        if column >= 0 and column in cells:
            cell = cells[column]
            cells[column] = cell._replace(data=unicodedata.normalize("NFC", cell.data + character))
            self.dirty.add(self.cursor.y)


def _checked(method: Callable[..., Any]) -> Callable[..., None]:
    """With no more numbers than it takes. A private sequence is another command that happens to end with the same letter: it
    is not obeyed where the method does not know of it."""
    parameters = inspect.signature(method).parameters.values()
    kinds = {parameter.kind for parameter in parameters}
    takes_private = any(parameter.name == "private" for parameter in parameters) or inspect.Parameter.VAR_KEYWORD in kinds
    plain = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD and each.name != "private"]
    limit = None if inspect.Parameter.VAR_POSITIONAL in kinds else len(plain)

    def call(*given: int, private: bool = False) -> None:
        if not private:
            method(*given[:limit])
        elif takes_private:
            method(*given[:limit], private=True)

    return call


class ControlFilter:
    """Takes out or respells control sequences that pyte 0.8.2 would draw as text: strings (DCS, APC, PM, SOS), private markers
    `<` `=` `>`, intermediate bytes, and parameters separated by colons. Sequences come cut anywhere, so what may be the beginning
    of one is kept until the rest arrives."""

    def __init__(self) -> None:
        self._kept = ""

    def clean(self, text: str) -> str:
        if self._kept:
            text, self._kept = self._kept + text, ""
        escape = text.rfind("\x1b")
        if escape < 0:
            return text
        begun = _BEGUN_SEQUENCE.search(text, max(text.rfind("\x1b", 0, escape), 0))
        if begun and len(text) - begun.start() <= _MAX_STRING:
            text, self._kept = text[: begun.start()], text[begun.start() :]
        return _ODD_SEQUENCE.sub(_respell_sequence, text)


def _respell_sequence(match: re.Match[str]) -> str:
    sequence = match[0]
    if not (sequence.endswith("m") and ":" in sequence):
        return ""
    parameters = []
    for parameter in sequence[2:-1].split(";"):
        parts = parameter.split(":")
        if parts[0] in {"38", "48"}:
            # 38:2::r:g:b has an empty colour space where 38;2;r;g;b has nothing.
            if len(parts) == 6 and parts[1] == "2":
                del parts[2]
            parameters.append(";".join(parts))
        else:
            parameters.append("24" if parts == ["4", "0"] else parts[0])
    return f"\x1b[{';'.join(parameters)}m"
