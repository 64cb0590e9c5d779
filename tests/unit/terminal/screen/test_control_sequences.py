"""What the emulator would draw as text is taken out, also when it comes in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.screen.control_sequences import ControlFilter

CASES = {
    "device control string": ("a\x1bP+q4d73\x1b\\b", "ab"),
    "application string, ended by a bell": ("a\x1b_Gf=1;AAAA\x07b", "ab"),
    "keyboard protocol": ("a\x1b[>7ub\x1b[<uc\x1b[=1;1ud", "abcd"),
    "modify other keys": ("a\x1b[>4;2mb", "ab"),
    "soft reset": ("a\x1b[!pb", "ab"),
    "cursor shape": ("a\x1b[2 qb", "a\x1b[2 qb"),
    "colours with colons": ("\x1b[38:2::1:2:3;4:3mx", "\x1b[38;2;1;2;3;4mx"),
    "palette with colons": ("\x1b[48:5:7mx", "\x1b[48;5;7mx"),
    "underline off": ("\x1b[4:0mx", "\x1b[24mx"),
    "ordinary colours": ("\x1b[38;5;7mx\x1b[0m", "\x1b[38;5;7mx\x1b[0m"),
    "title": ("\x1b]0;t\x07x", "\x1b]0;t\x07x"),
    "private mode": ("\x1b[?2026hx\x1b[?25l", "\x1b[?2026hx\x1b[?25l"),
    "save and restore": ("\x1b7\x1b8", "\x1b7\x1b8"),
    "plain": ("plain", "plain"),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_whole_and_character_by_character(text: str, expected: str) -> None:
    assert ControlFilter().clean(text) == expected
    control = ControlFilter()
    assert "".join(control.clean(character) for character in text) == expected


@given(st.lists(st.sampled_from([text for text, _ in CASES.values()]), max_size=6), st.integers(1, 9))
def test_any_chunking_gives_the_same(parts: list[str], size: int) -> None:
    text = "".join(parts) + "end"
    control = ControlFilter()
    assert "".join(control.clean(text[at : at + size]) for at in range(0, len(text), size)) == ControlFilter().clean(text)


def test_a_string_that_never_ends_is_not_kept_for_ever() -> None:
    control = ControlFilter()
    control.clean("\x1bP" + "x" * 70_000)
    assert "later" in control.clean("later")
