"""A pane of tmux as a drawing: what makes any terminal of that size show the same.

tmux answers a question in its place among the output, so whoever holds back what comes after the answer misses nothing and
writes nothing twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct
from pyte import charsets

from agent_relay.terminal.backends.tmux_client import ControlClient, Lines
from agent_relay.terminal.screen.drawing import BEGINNING, ENTER_ALTERNATE

_NUMBERS = (
    "pane_width", "pane_height", "cursor_x", "cursor_y", "alternate_on", "cursor_flag", "wrap_flag", "insert_flag",
    "scroll_region_upper", "scroll_region_lower",
)  # fmt: skip
_FACTS = " ".join(f"#{{{name}}}" for name in (*_NUMBERS, "default-terminal", "pane_title"))  # the title may hold spaces
_DRAWN = re.compile(r"\x0e([^\x0f]*)\x0f?")
_LINE_DRAWING = {number: charsets.VT100_MAP[number] for number in range(0x5F, 0x7F)}
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)))


class PaneView(Struct, frozen=True):
    """A pane as tmux tells of it: the facts that decide how further output is drawn, and the rows."""

    columns: int
    rows: int
    cursor: tuple[int, int]  # column, row
    is_alternate: bool
    has_cursor: bool
    wraps: bool
    inserts: bool
    region: tuple[int, int]  # the rows that scroll
    term: str
    title: str
    shown: Lines
    below: Lines = ()  # of the normal screen, while the alternate one is shown


async def ask_view(client: ControlClient, pane: str, at_answer: Callable[[], None]) -> PaneView:
    """`at_answer` is called where the sight has its place among the output."""
    capture = ("capture-pane", "-p", "-e", "-t", pane)
    said, shown, below = await client.ask(
        ("display-message", "-p", "-t", pane, _FACTS), capture, (*capture, "-a", "-q"), at_answer=at_answer
    )
    return _parse(said, shown, below)


def _parse(said: Lines, shown: Lines, below: Lines) -> PaneView:
    words = b"\n".join(said).decode("utf-8", "replace").split(" ", len(_NUMBERS) + 1)
    columns, rows, x, y, alternate, cursor, wrap, insert, upper, lower = (int(word or "0") for word in words[: len(_NUMBERS)])
    return PaneView(
        columns, rows, (min(x, columns - 1), y), bool(alternate), bool(cursor), bool(wrap), bool(insert), (upper, lower),
        term=words[len(_NUMBERS)], title=words[len(_NUMBERS) + 1] if len(words) > len(_NUMBERS) + 1 else "",
        shown=shown, below=below if alternate else (),
    )  # fmt: skip


def draw(sight: PaneView) -> str:
    """Text that makes any terminal of that size show this, whatever it showed before."""
    parts = [BEGINNING]
    if sight.is_alternate:
        parts += [_draw_rows(sight.below), ENTER_ALTERNATE]
    parts.append(_draw_rows(sight.shown))
    if sight.region != (0, sight.rows - 1):
        parts.append(f"\x1b[{sight.region[0] + 1};{sight.region[1] + 1}r")
    parts.append(f"\x1b[{sight.cursor[1] + 1};{sight.cursor[0] + 1}H")
    parts.append("\x1b[?25h" if sight.has_cursor else "\x1b[?25l")
    parts += ["\x1b[4h"] * sight.inserts + ["\x1b[?7l"] * (not sight.wraps)
    parts.append(f"\x1b]0;{sight.title.translate(_CONTROLS)}\x07")
    return "".join(parts)


def _draw_rows(rows: Lines) -> str:
    """Each at its place, since a row that fills the width would wrap. Colours go on from row to row, as tmux prints them."""
    texts = [_DRAWN.sub(lambda match: match[1].translate(_LINE_DRAWING), row.decode("utf-8", "replace")) for row in rows]
    return "\x1b[0m\x1b[H\x1b[2J" + "".join(f"\x1b[{at};1H{text}" for at, text in enumerate(texts, 1) if text) + "\x1b[0m"
