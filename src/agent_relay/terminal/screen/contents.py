"""A terminal's contents at one moment, however they were obtained: from the emulator here, from tmux, from a file.

Positions are absolute: they go on counting as lines scroll off, so that a line keeps its number for as long as it is
where it is. What a terminal cannot know is None: a captured text has no cursor, no title, no colours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct


class Ink(NamedTuple):
    """The colours of a cell; `default` is what the terminal uses when nothing was asked for."""

    foreground: str = "default"
    background: str = "default"


InkAt = Callable[[int], Ink]


class Line(Struct, frozen=True):
    position: int
    text: str  # without spaces at its end
    ink_at: InkAt | None = None  # by column; good until the terminal is fed again
    is_wrapped: bool = False  # the terminal broke it, and it goes on in the next one


class Cursor(NamedTuple):
    position: int
    column: int


class Screen(Struct, frozen=True):
    lines: tuple[Line, ...]  # those that scrolled off since the last reading, then the visible ones
    columns: int
    first_visible: int  # position of the top line
    cursor: Cursor | None = None
    title: str | None = None
    is_alternate: bool | None = None

    @property
    def visible(self) -> tuple[Line, ...]:
        hidden = sum(1 for line in self.lines if line.position < self.first_visible)
        return self.lines[hidden:]


def screen_of_text(text: str, columns: int = 120, title: str | None = None, cursor: Cursor | None = None) -> Screen:
    """A captured text, such as `tmux capture-pane -p` prints; everything in it counts as visible."""
    rows = [row.rstrip() for row in text.rstrip("\n").split("\n")]
    lines = tuple(Line(position, row) for position, row in enumerate(rows))
    return Screen(lines=lines, columns=columns, first_visible=0, cursor=cursor, title=title)
