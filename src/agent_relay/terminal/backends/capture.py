"""What `tmux capture-pane -e` prints, as lines with their colours.

The colours are looked at only when somebody asks for one: most readers want the text alone. They are named as the
emulator names them, so that a reader need not know where a line came from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyte import charsets, graphics
from wcwidth import wcwidth

from agent_relay.terminal.screen.contents import Ink, Line

_SEQUENCE = re.compile(r"\x1b\[([0-9;:]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|([\x0e\x0f])|\x1b\[[0-9;:?]*[@-~]")
_DEFAULT = Ink()
_LINE_DRAWING = {number: charsets.VT100_MAP[number] for number in range(0x5F, 0x7F)}


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
