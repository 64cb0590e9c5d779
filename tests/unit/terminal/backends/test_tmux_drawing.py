from __future__ import annotations

import pytest

from agent_relay.terminal.backends.tmux_drawing import PaneView, draw
from agent_relay.terminal.screen.contents import Cursor, Ink
from agent_relay.terminal.screen.drawing import BEGUN
from agent_relay.terminal.screen.emulator import Emulator

PLAIN = PaneView(
    10, 4, cursor=(2, 1), is_alternate=False, has_cursor=True, wraps=True, inserts=False, region=(0, 3), term="screen",
    title="a title", shown=(b"0123456789", b"\x1b[31mred", b"", b"\x1b[39m\x0elqk\x0f x"),
)  # fmt: skip


def drawn(sight: PaneView, before: bytes = b"", after: bytes = b"") -> tuple[list[str], Emulator]:
    emulator = Emulator(sight.columns, sight.rows)
    emulator.feed(before + draw(sight).encode() + after)
    return [line.text for line in emulator.read().visible], emulator


@pytest.mark.parametrize(
    "before", [b"", b"other text\r\n" * 9, b"\x1b[?1049hthere", b"\x1b[2;3r\x1b[7m", b"\x1b[3", b"\x1b]0;half", b"\xe2\x94"]
)
def test_it_is_shown_whatever_was_shown_before(before: bytes) -> None:
    rows, emulator = drawn(PLAIN, before)
    assert rows == ["0123456789", "red", "", "┌─┐ x"]
    screen = emulator.read()
    first = screen.first_visible
    assert screen.cursor == Cursor(first + 1, 2)
    assert (screen.title, screen.is_alternate) == ("a title", False)
    inks = [line.ink_at(0) for line in screen.visible if line.text and line.ink_at]
    assert inks == [Ink(), Ink("red"), Ink()]


def test_the_rows_that_scroll_go_on_scrolling() -> None:
    sight = PaneView(**{**{name: getattr(PLAIN, name) for name in PLAIN.__struct_fields__}, "region": (0, 1)})
    rows, _ = drawn(sight, after=b"\r\nnew")
    assert rows == ["red", "new", "", "┌─┐ x"]


def test_behind_the_alternate_screen_is_the_normal_one() -> None:
    fields = {name: getattr(PLAIN, name) for name in PLAIN.__struct_fields__}
    sight = PaneView(**{**fields, "is_alternate": True, "below": (b"below",)})
    rows, emulator = drawn(sight)
    assert rows[0] == "0123456789"
    assert emulator.read().is_alternate
    emulator.feed(b"\x1b[?1049l")
    assert [line.text for line in emulator.read().visible] == ["below", "", "", ""]


def test_a_title_brings_no_sequences_along() -> None:
    fields = {name: getattr(PLAIN, name) for name in PLAIN.__struct_fields__}
    assert "\x1b]0;a[2Jb\x07" in draw(PaneView(**{**fields, "title": "a\x1b[2J\x07b"}))


@pytest.mark.parametrize(
    ("output", "begun"),
    [
        (b"text", None), (b"\x1b[0mtext", None), (b"\x1b]0;t\x07", None), ("é".encode(), None), ("漢".encode(), None),
        (b"text\x1b", b"\x1b"), (b"text\x1b[38;5", b"\x1b[38;5"), (b"\x1b[0m\x1b]0;ti tle", b"\x1b]0;ti tle"),
        ("é".encode()[:1], b"\xc3"), ("漢".encode()[:2], "漢".encode()[:2]), ("😀".encode()[:3], "😀".encode()[:3]),
    ],
)  # fmt: skip
def test_what_is_not_whole_yet_is_known(output: bytes, begun: bytes | None) -> None:
    found = BEGUN.search(output)
    assert (found[0] if found else None) == begun
