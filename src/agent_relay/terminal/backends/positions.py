"""Where a captured pane stands in all that the program ever showed.

tmux counts the lines that scrolled off (`history_size`), but not those it has thrown away since: the oldest tenth when
the history is full, all of them when the program clears it, and a change of width breaks lines anew. `Positions` adds
what is missing, so that a line keeps its number for as long as it is where it is.
"""

from __future__ import annotations

import re

from msgspec import Struct

_CLEARS_HISTORY = re.compile(rb"\x1b\[3J")
_BEGUN = re.compile(rb"\x1b(?:\[3?)?$")


class PaneFacts(Struct, frozen=True):
    """What tmux says of a pane at the moment of a capture."""

    history: int
    history_limit: int
    columns: int
    rows: int
    cursor_column: int
    cursor_row: int


class Scrolled(Struct, frozen=True):
    """What of the output since the last reading had to do with scrolling."""

    line_feeds: int = 0
    is_cleared: bool = False


class ScrollWatch:
    def __init__(self) -> None:
        self.line_feeds = 0
        self.is_cleared = False
        self._kept = b""

    def take(self) -> Scrolled:
        """What came since it was last taken."""
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
    """`base` is the number of lines that tmux does not have any more."""

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self._last: PaneFacts | None = None

    @property
    def first_unread(self) -> int:
        """The position up to which lines that scrolled off have been read."""
        return 0 if self._last is None else self.base + self._last.history

    def adopt(self, facts: PaneFacts) -> None:
        """What has scrolled off by now counts as read."""
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
