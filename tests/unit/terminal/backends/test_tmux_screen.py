"""A pane of tmux as a screen: what a capture shows, and where it stands in all that was shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.backends.tmux_screen import (
    Captured,
    PaneFacts,
    Positions,
    Scrolled,
    ScrollWatch,
    apply_colours,
    find_wrapped,
)
from agent_relay.terminal.screen.contents import Ink
from agent_relay.terminal.screen.emulator import Emulator

# As `capture-pane -e -p` of tmux 3.3a printed it; attributes go on from line to line.
RECORDED = "\x1b[31mred\x1b[39m \x1b[48;5;100mx\x1b[49m \x1b[38;2;1;2;3mrgb\n\x0elqqk\x0f box\n1\x1b[39m plain  "


def test_text_and_colours_of_a_recorded_capture() -> None:
    first, second, third = Captured(RECORDED.split("\n")).lines(40)
    assert [(line.position, line.text) for line in (first, second, third)] == [
        (40, "red x rgb"),
        (41, "┌──┐ box"),
        (42, "1 plain"),
    ]
    assert first.ink_at is not None
    assert second.ink_at is not None
    assert third.ink_at is not None
    assert first.ink_at(0) == Ink("red", "default")
    assert first.ink_at(4) == Ink("default", "878700")
    assert first.ink_at(6) == Ink("010203", "default")
    assert second.ink_at(0) == Ink("010203", "default")
    assert third.ink_at(0) == Ink("010203", "default")
    assert third.ink_at(2) == Ink()
    assert third.ink_at(500) == Ink()


def test_links_are_no_text() -> None:
    (line,) = Captured(["\x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\!"]).lines(0)
    assert line.text == "here!"


def test_wide_characters_have_two_columns() -> None:
    (line,) = Captured(["漢\x1b[31mx"]).lines(0)
    assert line.ink_at is not None
    assert [line.ink_at(column).foreground for column in (0, 1, 2)] == ["default", "default", "red"]


colours = st.one_of(
    st.sampled_from([0, 1, 31, 37, 39, 44, 47, 49, 90, 97, 103]).map(str),
    st.integers(0, 255).map(lambda number: f"38;5;{number}"),
    st.tuples(*[st.integers(0, 255)] * 3).map(lambda rgb: "48;2;{};{};{}".format(*rgb)),
)


@given(st.lists(colours, min_size=1, max_size=5))
def test_colours_are_named_as_the_emulator_names_them(parameters: list[str]) -> None:
    sequence = "".join(f"\x1b[{part}m" for part in parameters)
    emulator = Emulator(20, 2)
    emulator.feed(f"{sequence}x".encode())
    drawn = emulator.read().lines[0]
    (line,) = Captured([f"{sequence}x"]).lines(0)
    assert drawn.ink_at is not None
    assert line.ink_at is not None
    assert line.ink_at(0) == drawn.ink_at(0)


@given(st.text(st.sampled_from("0123456789;:"), max_size=30))
def test_any_parameters_may_come(parameters: str) -> None:
    assert isinstance(apply_colours(Ink(), parameters), Ink)


@given(
    st.lists(
        st.lists(st.text("abc ", min_size=1, max_size=5).map(lambda text: text.rstrip()).filter(bool), min_size=1, max_size=4)
    )
)
def test_rows_that_go_on_are_found_by_the_joined_text(lines: list[list[str]]) -> None:
    rows = [row for line in lines for row in line]
    ends = [index == len(line) - 1 for line in lines for index in range(len(line))]
    assert find_wrapped(rows, ["".join(line) for line in lines]) == {index for index, is_end in enumerate(ends) if not is_end}


def test_rows_that_changed_in_between_are_not_put_together() -> None:
    assert find_wrapped(["abc", "def"], ["xyzdef"]) == set()
    assert find_wrapped(["abc", "def"], []) == set()


# --- where a pane stands in all that was shown -------------------------------------------------------------------------


LIMIT = 1000


def facts(history: int, *, columns: int = 80, rows: int = 24, cursor_row: int = 23) -> PaneFacts:
    return PaneFacts(history, LIMIT, columns, rows, 0, cursor_row)


def after(*steps: tuple[PaneFacts, Scrolled]) -> Positions:
    positions = Positions()
    for step in steps:
        positions.advance(*step)
    return positions


def test_plain_scrolling() -> None:
    positions = Positions()
    assert positions.first_unread == 0
    assert positions.advance(facts(10), Scrolled(33)) == 10
    assert positions.first_unread == 10
    assert positions.advance(facts(10), Scrolled(0)) == 10
    assert positions.advance(facts(40), Scrolled(30)) == 40


@given(st.lists(st.integers(0, 45), min_size=1, max_size=200))
def test_a_full_history_is_counted_on(batches: list[int]) -> None:
    """tmux throws away the oldest tenth when it is full; read often enough, no line is miscounted."""
    positions, history, total = Positions(), 0, 0
    for lines in batches:
        for _ in range(lines):
            if history >= LIMIT:
                history -= LIMIT // 10
            history += 1
        total += lines
        assert positions.advance(facts(history), Scrolled(lines)) == total


def test_a_cleared_history_goes_on_from_where_it_was() -> None:
    positions = after((facts(200), Scrolled(200)))
    assert positions.advance(facts(0), Scrolled(3, is_cleared=True)) == 200
    assert positions.advance(facts(50), Scrolled(50)) == 250
    assert positions.advance(facts(70), Scrolled(70, is_cleared=True)) == 320


def test_a_history_cleared_behind_our_back() -> None:
    positions = after((facts(200), Scrolled(200)))
    assert positions.advance(facts(0), Scrolled(0)) == 200


def test_a_taller_window_takes_lines_back() -> None:
    positions = after((facts(200, rows=24), Scrolled(200)))
    assert positions.advance(facts(190, rows=34, cursor_row=33), Scrolled(0)) == 190
    assert positions.advance(facts(200, rows=24), Scrolled(0)) == 200


def test_another_width_keeps_the_cursor_s_line() -> None:
    positions = after((facts(100, columns=80, cursor_row=20), Scrolled(100)))
    assert positions.advance(facts(150, columns=40, cursor_row=23), Scrolled(0)) + 23 == 120


def test_taken_up_again() -> None:
    positions = Positions(500)
    positions.adopt(facts(30))
    assert positions.first_unread == 530
    assert positions.advance(facts(31), Scrolled(1)) == 531


def test_what_of_the_output_scrolls() -> None:
    watch = ScrollWatch()
    watch.feed(b"a\nb\r\n\x1b[2J")
    assert watch.take() == Scrolled(2, is_cleared=False)
    for byte in b"x\x1b[3Jy":
        watch.feed(bytes([byte]))
    assert watch.take() == Scrolled(0, is_cleared=True)
    assert watch.take() == Scrolled(0, is_cleared=False)
