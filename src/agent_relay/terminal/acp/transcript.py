"""The transcript of an ACP agent on a terminal: what was said and done, in lines that scroll, and the person's draft below them.

The last rows are drawn again and again: the line that the agent is writing, what it is doing, and the prompt. All else is written
once. So a terminal keeps it all, `logs` and the page show it, and nothing but the prompt row is ever a prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from wcwidth import wcwidth

PROMPT = "› "
WORKING = "… "
_LIVE_ROWS = 3  # of a long line that is being written
_MAX_DIFF_LINES = 40
_ERASE_BELOW = "\r\x1b[J"


class Look(StrEnum):
    AGENT = ""
    THOUGHT = "2;3"
    TOOL = "2"
    GIVEN = "36"
    ASKED = "1;33"
    NOTE = "2;33"


_DIFF = {"+": "32", "-": "31", "@": "36"}


class Transcript:
    """`write` puts text on the terminal, `columns` says how wide it is. Texts must be clean."""

    def __init__(self, write: Callable[[str], None], columns: Callable[[], int]) -> None:
        self._write = write
        self._columns = columns
        self._partial = ""  # the line that is being written
        self._look = Look.AGENT
        self._doing = ""
        self._draft: str | None = None  # None: there is no prompt yet
        self._foot_rows = 0

    # --- what stays ------------------------------------------------------------------------------------------------------

    def say(self, text: str, look: Look = Look.AGENT) -> None:
        """Whole lines."""
        self.end_stream()
        self._draw([_paint(line, look) for line in text.split("\n")])

    def diff(self, text: str) -> None:
        lines = text.split("\n") if text else []
        shown = [_paint(f"  {line}", _DIFF.get(line[:1], Look.TOOL)) for line in lines[:_MAX_DIFF_LINES]]
        if len(lines) > _MAX_DIFF_LINES:
            shown.append(_paint(f"  … {len(lines) - _MAX_DIFF_LINES} more lines", Look.TOOL))
        self._draw(shown)

    def stream(self, text: str, look: Look = Look.AGENT) -> None:
        """A piece of text that goes on."""
        if look is not self._look:
            self.end_stream()
            self._look = look
        *whole, self._partial = (self._partial + text).split("\n")
        self._draw([_paint(line, look) for line in whole])

    def end_stream(self) -> None:
        if self._partial:
            line, self._partial = self._partial, ""
            self._draw([_paint(line, self._look)])

    # --- what is drawn again ---------------------------------------------------------------------------------------------

    def show_doing(self, text: str) -> None:
        """Shows what the agent is doing; empty: nothing."""
        if text != self._doing:
            self._doing = text
            self._draw([])

    def show_draft(self, draft: str | None) -> None:
        self._draft = draft
        self._draw([])

    def redraw(self) -> None:
        self._foot_rows = 0  # the terminal has broken the rows anew: what was drawn stays above
        self._draw([])

    def close(self) -> None:
        """Leaves the terminal with nothing that is drawn again."""
        self.end_stream()
        self._doing, self._draft = "", None
        self._draw([])

    def _draw(self, lines: list[str]) -> None:
        up = f"\x1b[{self._foot_rows - 1}A" if self._foot_rows > 1 else ""
        foot = self._foot()
        body = "".join(f"{line}\r\n" for line in lines)
        self._write(f"{up}{_ERASE_BELOW}{body}{foot}")
        self._foot_rows = foot.count("\r\n") + 1 if foot else 0

    def _foot(self) -> str:
        width = max(10, self._columns() - 1)
        rows = (
            [_paint(row, self._look) for row in _break(self._partial.expandtabs(4), width)[-_LIVE_ROWS:]] if self._partial else []
        )
        if self._doing:
            rows.append(_paint(WORKING + _fit(self._doing, width - len(WORKING)), Look.NOTE))
        if self._draft is not None:
            # No longer than the row, and its end, where the cursor stands.
            rows.append(PROMPT + _tail(self._draft.replace("\n", "⏎").expandtabs(4), width - len(PROMPT)))
        return "\r\n".join(rows)


def _paint(text: str, look: str) -> str:
    return f"\x1b[{look}m{text}\x1b[0m" if look and text else text


def _width(character: str) -> int:
    return max(0, wcwidth(character))


def _break(text: str, columns: int) -> list[str]:
    rows, row, used = [], "", 0
    for character in text:
        width = _width(character)
        if used + width > columns:
            rows.append(row)
            row, used = "", 0
        row += character
        used += width
    return [*rows, row]


def _fit(text: str, columns: int) -> str:
    return _break(text, columns)[0]


def _tail(text: str, columns: int) -> str:
    used = 0
    for index in range(len(text) - 1, -1, -1):
        used += _width(text[index])
        if used > columns:
            return text[index + 1 :]
    return text
