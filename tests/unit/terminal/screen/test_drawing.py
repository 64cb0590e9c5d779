"""A screen drawn for another terminal: it shows the same, and goes on the same."""

from __future__ import annotations

import pytest

from agent_relay.terminal.screen.contents import Screen
from agent_relay.terminal.screen.emulator import Emulator

COLUMNS, ROWS = 24, 6


def feed(*parts: str) -> Emulator:
    emulator = Emulator(COLUMNS, ROWS)
    for part in parts:
        emulator.feed(part.encode())
    return emulator


def look(screen: Screen) -> list[object]:
    """Everything that can be seen."""
    cells = [
        [line.ink_at(column) if line.ink_at is not None else None for column in range(len(line.text))] for line in screen.visible
    ]
    cursor = screen.cursor
    assert cursor is not None
    place = (cursor.position - screen.first_visible, cursor.column)
    return [[line.text for line in screen.visible], cells, place, screen.is_alternate]


SHOWN = {
    "plain": "one\r\ntwo",
    "colours": "\x1b[31mred \x1b[92mlime\x1b[0m \x1b[44mon blue\x1b[0m \x1b[38;5;208mmany\x1b[48;2;1;2;3mmore",
    "wide": "世界 and e\u0301",
    "full rows": "x" * (COLUMNS * 2) + "end",
    "scrolled": "\r\n".join(f"line {number}" for number in range(20)),
    "a region": "top\r\n\x1b[2;4rin it",
    "the other screen": "below\x1b[?1049h\x1b[3;3Habove",
    "nothing": "",
}


@pytest.mark.parametrize("text", SHOWN.values(), ids=SHOWN.keys())
def test_another_terminal_shows_the_same_and_goes_on_the_same(text: str) -> None:
    here = feed(text)
    there = feed("what was there before\x1b[?1049h\x1b[5;1Hrest\x1b[31", here.draw())
    assert look(there.read())[:3] == look(here.read())[:3]
    for emulator in (here, there):
        emulator.feed(b"\x1b[?1049l+\r\nlater")
    assert look(there.read())[0] == look(here.read())[0]


def test_how_letters_look_is_kept() -> None:
    drawn = feed("\x1b[1;3;4;7;9mall\x1b[0m plain").draw()
    assert "\x1b[0;1;3;4;7;9mall\x1b[0m plain" in drawn


def test_a_hidden_cursor_stays_hidden() -> None:
    assert feed("x\x1b[?25l").draw().endswith("\x1b[?25l")
    assert feed("x").draw().endswith("\x1b[?25h")
