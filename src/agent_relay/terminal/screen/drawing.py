"""Cells of the emulation as the text that draws them: every row at its place, with the colours and the looks its cells have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyte import graphics
from pyte.screens import Char

Cells = dict[int, Char]

# At first an end to whatever sequence was begun; then what a terminal is like when it is new.
BEGINNING = "\x18\x1b\\\x1b[?1049l\x1b[r\x1b[4l\x1b[?7h"
ENTER_ALTERNATE = "\x1b[?1049h"
# A sequence or a character that is not whole at the end of the output: it was taken in, and is not drawn yet.
BEGUN = re.compile(
    rb"(?:\x1b(?:\[[0-?]*[ -/]*|[\]P_^][^\x07\x1b]*|[ -/]+)?|[\xc0-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf7][\x80-\xbf]{0,2})$"
)
KEPT_BYTES = 256  # of the output, to look for one in; longer than any sequence that matters here
_FOREGROUND = {name: str(number) for number, name in {**graphics.FG_ANSI, **graphics.FG_AIXTERM}.items()}
_BACKGROUND = {name: str(number) for number, name in {**graphics.BG_ANSI, **graphics.BG_AIXTERM}.items()}
_LOOKS = (("bold", "1"), ("italics", "3"), ("underscore", "4"), ("blink", "5"), ("reverse", "7"), ("strikethrough", "9"))
_HEX_DIGITS = 6


def draw_rows(rows: Mapping[int, Cells], count: int) -> str:
    drawn = (f"\x1b[{row + 1};1H{_draw_row(rows[row])}" for row in range(count) if rows.get(row))
    return "\x1b[0m\x1b[H\x1b[2J" + "".join(drawn) + "\x1b[0m"


def _draw_row(cells: Cells) -> str:
    parts: list[str] = []
    look = ""
    for column in range(max(cells) + 1):
        cell = cells[column]
        found = _look(cell)
        if found != look:
            parts.append(f"\x1b[0{found}m")
            look = found
        parts.append(cell.data)  # empty: the second half of a wide character
    return "".join(parts) + ("\x1b[0m" if look else "")


def _look(cell: Char) -> str:
    """The parameters after a reset; empty for a plain cell."""
    numbers = [number for name, number in _LOOKS if getattr(cell, name)]
    numbers += _colour(cell.fg, _FOREGROUND, "38") + _colour(cell.bg, _BACKGROUND, "48")
    return "".join(f";{number}" for number in numbers)


def _colour(name: str, numbers: Mapping[str, str], extended: str) -> list[str]:
    if name == "default":
        return []
    if name in numbers:
        return [numbers[name]]
    if len(name) != _HEX_DIGITS:
        return []
    return [extended, "2", *(str(int(name[at : at + 2], 16)) for at in (0, 2, 4))]
