from __future__ import annotations

from agent_relay.terminal.screen.contents import Line, Screen, screen_of_text


def test_a_captured_text_is_all_visible_and_knows_nothing_more() -> None:
    screen = screen_of_text("one  \n\ntwo\n\n")
    assert [line.text for line in screen.lines] == ["one", "", "two"]
    assert screen.visible == screen.lines
    assert (screen.cursor, screen.title, screen.is_alternate) == (None, None, None)


def test_visible_leaves_out_what_scrolled_off() -> None:
    lines = tuple(Line(position, str(position)) for position in range(3, 8))
    screen = Screen(lines=lines, columns=80, first_visible=5)
    assert [line.position for line in screen.visible] == [5, 6, 7]
