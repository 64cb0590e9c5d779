"""Reading a pane of tmux as a `Screen`: what it shows, and before it what scrolled off since the last reading."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from agent_relay.terminal.backends.capture import Captured
from agent_relay.terminal.backends.positions import PaneFacts, Positions, Scrolled, ScrollWatch
from agent_relay.terminal.backends.tmux_client import ControlClient, Lines
from agent_relay.terminal.screen.contents import Cursor, Screen

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
    def __init__(self, pane: str, client: ControlClient) -> None:
        self._pane = pane
        self._client = client
        self._positions = Positions()
        self._watch = ScrollWatch()
        self._stored_base = 0
        self._turn = asyncio.Lock()

    def fed(self, data: bytes) -> None:
        self._watch.feed(data)

    async def adopt(self) -> None:
        """For a pane that somebody else has been reading: its positions go on, and what scrolled off counts as read."""
        said, facts = await self._client.ask(("show-options", "-qv", "-t", self._pane, BASE_OPTION), self._ask_facts())
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
            ("capture-pane", "-p", "-e", "-t", self._pane, "-S", str(-above)),
            ("capture-pane", "-p", "-J", "-t", self._pane, "-S", str(-above)),
            at_answer=lambda: taken.append(self._watch.take()),
        )
        facts, is_alternate, title = _parse_facts(said)
        first_visible = self._positions.advance(facts, taken[0])
        unread = min(max(0, first_visible - read_until), facts.history, MAX_UNREAD_LINES)
        return _Look(facts, is_alternate, title, first_visible, unread, min(above, facts.history), rows, joined)

    def _ask_facts(self) -> tuple[str, ...]:
        return ("display-message", "-p", "-t", self._pane, _FACTS)

    async def _remember_base(self) -> None:
        """Seldom: only when tmux has thrown lines away."""
        if self._positions.base != self._stored_base:
            self._stored_base = self._positions.base
            await self._client.ask(("set-option", "-t", self._pane, BASE_OPTION, str(self._stored_base)))


def _parse_facts(lines: Lines) -> tuple[PaneFacts, bool, str]:
    words = b"\n".join(lines).split(b" ", len(_NUMBERS))
    history, limit, columns, rows, cursor_column, cursor_row, alternate = (int(word or b"0") for word in words[: len(_NUMBERS)])
    title = words[len(_NUMBERS)].decode("utf-8", "replace") if len(words) > len(_NUMBERS) else ""
    return PaneFacts(history, limit, columns, rows, cursor_column, cursor_row), alternate == 1, title
