"""A pane of tmux as a `Screen`: what it shows, and before it what scrolled off since the last reading.

`Captured` reads what `tmux capture-pane -e` prints, as lines with their colours. These are looked at only when somebody asks for
one: most readers want the text alone. They are named as the emulator names them, so that a reader need not know where a line
came from. `Positions` says where a captured pane stands in all that the program ever showed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from pyte import charsets, graphics
from wcwidth import wcwidth

from agent_relay.terminal.backends.tmux_client import ControlClient, Lines
from agent_relay.terminal.screen.contents import Cursor, Ink, Line, Screen

_SEQUENCE = re.compile(r"\x1b\[([0-9;:]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|([\x0e\x0f])|\x1b\[[0-9;:?]*[@-~]")
_DEFAULT = Ink()
_LINE_DRAWING = {number: charsets.VT100_MAP[number] for number in range(0x5F, 0x7F)}
_CLEARS_HISTORY = re.compile(rb"\x1b\[3J")
_BEGUN = re.compile(rb"\x1b(?:\[3?)?$")
MAX_UNREAD_LINES = 10_000  # as the emulator keeps between two readings
BASE_OPTION = "@agent-relay-base"  # kept in tmux, so that positions go on when somebody else re-attaches
_MARGIN_LINES = 200  # what may scroll off between two questions without a third being needed
_TRIES = 3

_NUMBERS = ("history_size", "history_limit", "pane_width", "pane_height", "cursor_x", "cursor_y", "alternate_on")
_FACTS = " ".join(f"#{{{name}}}" for name in (*_NUMBERS, "pane_title"))  # the title last: it may hold spaces


class _Look(NamedTuple):
    facts: PaneFacts
    is_alternate: bool
    title: str
    first_visible: int
    unread: int  # lines above the visible ones that were not read yet
    above: int  # lines above the visible ones that are in `rows`
    rows: Lines
    joined: Lines  # the same with the breaks of the terminal undone


class PaneReader:
    def __init__(self, client: ControlClient) -> None:
        self._client = client
        self._positions = Positions()
        self._watch = ScrollWatch()
        self._stored_base = 0
        self._turn = asyncio.Lock()

    def fed(self, data: bytes) -> None:
        self._watch.feed(data)

    async def adopt(self) -> None:
        """For a pane that somebody else has been reading: its positions go on, and what scrolled off counts as read."""
        said, facts = await self._client.ask(("show-options", "-qv", "-t", self._client.pane, BASE_OPTION), self._ask_facts())
        text = b"".join(said).decode("ascii", "replace").strip()
        self._stored_base = int(text) if text.lstrip("-").isdigit() else 0
        self._positions = Positions(self._stored_base)
        self._positions.adopt(_parse_facts(facts)[0])

    async def read(self) -> Screen:
        async with self._turn:
            read_until = self._positions.first_unread
            # The line feeds say how many lines may have scrolled off; captured with the rest, one question is enough.
            look = await self._look(min(self._watch.line_feeds, MAX_UNREAD_LINES), read_until)
            for _ in range(_TRIES):
                if look.unread <= look.above:
                    break
                # Lines longer than the screen is wide scroll it too.
                look = await self._look(look.unread + _MARGIN_LINES, read_until)
            await self._remember_base()
        unread = min(look.unread, look.above)
        rows = [row.decode("utf-8", "replace") for row in look.rows]
        joined = [row.decode("utf-8", "replace") for row in look.joined]
        captured = Captured(rows, joined, look.above - unread)
        facts = look.facts
        return Screen(
            lines=captured.lines(look.first_visible - unread),
            columns=facts.columns,
            first_visible=look.first_visible,
            cursor=Cursor(look.first_visible + facts.cursor_row, min(facts.cursor_column, facts.columns - 1)),
            title=look.title or None,
            is_alternate=look.is_alternate,
        )

    async def _look(self, above: int, read_until: int) -> _Look:
        taken: list[Scrolled] = []
        said, rows, joined = await self._client.ask(
            self._ask_facts(),
            ("capture-pane", "-p", "-e", "-t", self._client.pane, "-S", str(-above)),
            ("capture-pane", "-p", "-J", "-t", self._client.pane, "-S", str(-above)),
            at_answer=lambda: taken.append(self._watch.take()),
        )
        facts, is_alternate, title = _parse_facts(said)
        first_visible = self._positions.advance(facts, taken[0])
        unread = min(max(0, first_visible - read_until), facts.history, MAX_UNREAD_LINES)
        return _Look(facts, is_alternate, title, first_visible, unread, min(above, facts.history), rows, joined)

    def _ask_facts(self) -> tuple[str, ...]:
        return ("display-message", "-p", "-t", self._client.pane, _FACTS)

    async def _remember_base(self) -> None:
        """Seldom: only when tmux has thrown lines away."""
        if self._positions.base != self._stored_base:
            self._stored_base = self._positions.base
            await self._client.ask(("set-option", "-t", self._client.pane, BASE_OPTION, str(self._stored_base)))


def _parse_facts(lines: Lines) -> tuple[PaneFacts, bool, str]:
    words = b"\n".join(lines).split(b" ", len(_NUMBERS))
    history, limit, columns, rows, cursor_column, cursor_row, alternate = (int(word or b"0") for word in words[: len(_NUMBERS)])
    title = words[len(_NUMBERS)].decode("utf-8", "replace") if len(words) > len(_NUMBERS) else ""
    return PaneFacts(history, limit, columns, rows, cursor_column, cursor_row), alternate == 1, title


class PaneFacts(Struct, frozen=True):
    """Numbers that tmux tells of a pane at the moment of a capture."""

    history: int
    history_limit: int
    columns: int
    rows: int
    cursor_column: int
    cursor_row: int


class Scrolled(Struct, frozen=True):
    """Output since the last reading, as far as it had to do with scrolling."""

    line_feeds: int = 0
    is_cleared: bool = False


class ScrollWatch:
    def __init__(self) -> None:
        self.line_feeds = 0
        self.is_cleared = False
        self._kept = b""

    def take(self) -> Scrolled:
        """Everything since it was last taken."""
        scrolled = Scrolled(self.line_feeds, self.is_cleared)
        self.line_feeds, self.is_cleared = 0, False
        return scrolled

    def feed(self, data: bytes) -> None:
        self.line_feeds += data.count(b"\n")
        if b"\x1b" in data or self._kept:
            data = self._kept + data
            self.is_cleared = self.is_cleared or _CLEARS_HISTORY.search(data) is not None
            begun = _BEGUN.search(data)
            self._kept = data[begun.start() :] if begun else b""


class Positions:
    """`base` is the number of lines that tmux does not have any more.

    tmux counts the lines that scrolled off (`history_size`), but not those it has thrown away since: the oldest tenth when the
    history is full, all of them when the program clears it, and a change of width breaks lines anew. What is missing is added
    here, so that a line keeps its number for as long as it is where it is.
    """

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self._last: PaneFacts | None = None

    @property
    def first_unread(self) -> int:
        """The position up to which lines that scrolled off have been read."""
        return 0 if self._last is None else self.base + self._last.history

    def adopt(self, facts: PaneFacts) -> None:
        """Counts what has scrolled off by now as read."""
        self._last = facts

    def advance(self, facts: PaneFacts, scrolled: Scrolled) -> int:
        """The position of the top row."""
        if self._last is not None:
            self.base += _thrown_away(self._last, facts, scrolled)
        self._last = facts
        return self.base + facts.history


def _thrown_away(last: PaneFacts, facts: PaneFacts, scrolled: Scrolled) -> int:
    if scrolled.is_cleared:
        return last.history  # what is there now was all written since
    if facts.columns != last.columns:
        # Every line was broken anew. The cursor stays with its text, so its line keeps its number.
        return (last.history + last.cursor_row) - (facts.history + facts.cursor_row)
    step = max(1, facts.history_limit // 10)
    growth = facts.history - last.history
    if growth >= 0 and last.history + scrolled.line_feeds < facts.history_limit:
        return 0
    if growth < 0 and last.history + scrolled.line_feeds < facts.history_limit and last.history < facts.history_limit - step:
        return _shrunk(last, facts)
    # Full: a tenth went, perhaps several times. The line feeds tell how often, nearly enough.
    fewest = max(0, -(growth // step))
    likely = round((scrolled.line_feeds - growth) / step)
    return max(fewest, likely) * step


def _shrunk(last: PaneFacts, facts: PaneFacts) -> int:
    """Fewer lines than before, though it was not full: a taller window took some back, or `clear-history` was called."""
    return 0 if facts.rows - last.rows >= last.history - facts.history else last.history


class Captured:
    """One capture. Attributes go on from line to line, so the colours of all lines are read at once, at the first call."""

    def __init__(self, rows: Sequence[str], joined: Sequence[str] = (), first: int = 0) -> None:
        """`joined`: the same rows as `capture-pane -J` prints them. `first`: the rows before it are left out."""
        self._rows = rows
        self._joined = joined
        self._first = first
        self._inks: list[list[Ink]] | None = None

    def lines(self, first_position: int) -> tuple[Line, ...]:
        """`first_position` is that of the first row that is not left out."""
        drawing = False
        texts = []
        for row in self._rows:
            if "\x1b" in row or "\x0e" in row or "\x0f" in row or drawing:
                text, drawing = _plain(row, drawing=drawing)
            else:
                text = row
            texts.append(text.rstrip())
        wrapped = find_wrapped(texts, self._joined)
        return tuple(
            Line(first_position + index - self._first, texts[index], _InkReader(self, index), index in wrapped)
            for index in range(self._first, len(texts))
        )

    def ink(self, row: int, column: int) -> Ink:
        if self._inks is None:
            self._inks = _read_inks(self._rows)
        inks = self._inks[row]
        return inks[column] if column < len(inks) else _DEFAULT


def find_wrapped(rows: Sequence[str], joined: Sequence[str]) -> set[int]:
    """The rows that go on in the next one. `joined` holds the same text, with such rows put together."""
    wrapped: set[int] = set()
    index = 0
    for line in joined:
        rest = _plain(line, drawing=False)[0] if "\x0e" in line else line
        while index < len(rows):
            if not rest.startswith(rows[index]):
                return wrapped  # not the same rows: something was written in between
            rest = rest[len(rows[index]) :]
            index += 1
            if not rest.strip():
                break
            if index < len(rows) and not rest.startswith(rows[index]):
                rest = rest.lstrip()  # blanks at the end of the row before
            wrapped.add(index - 1)
    return wrapped


class _InkReader:
    __slots__ = ("_capture", "_row")

    def __init__(self, capture: Captured, row: int) -> None:
        self._capture = capture
        self._row = row

    def __call__(self, column: int) -> Ink:
        return self._capture.ink(self._row, column)


def _plain(row: str, *, drawing: bool) -> tuple[str, bool]:
    """Without its sequences; what stands between SO and SI are the characters that boxes are drawn with."""
    parts = []
    start = 0
    for match in _SEQUENCE.finditer(row):
        parts.append(_translate(row[start : match.start()], drawing=drawing))
        start = match.end()
        if match[2]:
            drawing = match[2] == "\x0e"
    parts.append(_translate(row[start:], drawing=drawing))
    return "".join(parts), drawing


def _translate(text: str, *, drawing: bool) -> str:
    return text.translate(_LINE_DRAWING) if drawing else text


def _read_inks(rows: Sequence[str]) -> list[list[Ink]]:
    """The colours by column; a wide character has two."""
    ink, inks = _DEFAULT, []
    for row in rows:
        columns: list[Ink] = []
        start = 0
        for match in _SEQUENCE.finditer(row):
            columns += [ink] * _width(row[start : match.start()])
            start = match.end()
            if match[1] is not None:
                ink = apply_colours(ink, match[1])
        columns += [ink] * _width(row[start:])
        inks.append(columns)
    return inks


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(max(0, wcwidth(character)) for character in text)


def apply_colours(ink: Ink, parameters: str) -> Ink:
    """The colours after an SGR sequence with these parameters."""
    numbers = [int(number) if number else 0 for number in re.split("[;:]", parameters)]
    index = 0
    while index < len(numbers):
        number = numbers[index]
        index += 1
        if number == 0:
            ink = _DEFAULT
        elif number in {38, 48}:
            colour, index = _extended(numbers, index)
            ink = ink._replace(**{"foreground" if number == 38 else "background": colour})
        elif number in graphics.FG_ANSI or number in graphics.FG_AIXTERM:
            ink = ink._replace(foreground={**graphics.FG_ANSI, **graphics.FG_AIXTERM}[number])
        elif number in graphics.BG_ANSI or number in graphics.BG_AIXTERM:
            ink = ink._replace(background={**graphics.BG_ANSI, **graphics.BG_AIXTERM}[number])
    return ink


def _extended(numbers: list[int], index: int) -> tuple[str, int]:
    """`5;N` or `2;R;G;B` after 38 or 48; what is cut short or out of range is the default."""
    kind, rest = numbers[index : index + 1], numbers[index + 1 :]
    if kind == [5] and rest and rest[0] < len(graphics.FG_BG_256):
        return graphics.FG_BG_256[rest[0]], index + 2
    if kind == [2] and len(rest) >= 3 and max(rest[:3]) < 256:
        return f"{rest[0]:02x}{rest[1]:02x}{rest[2]:02x}", index + 4
    return "default", len(numbers)
