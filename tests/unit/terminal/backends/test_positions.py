from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.backends.positions import PaneFacts, Positions, Scrolled, ScrollWatch

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
