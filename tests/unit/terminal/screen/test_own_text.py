"""What we typed, found again however it is broken into rows; what others show is left as it is."""

from __future__ import annotations

import textwrap

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.output.watcher import Watcher
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.screen.contents import Cursor, screen_of_text
from agent_relay.terminal.screen.own_text import OwnText
from agent_relay.terminal.screen.state import State

TEXT = "Relay message from Alice [abc12345]: shall I remove the build directory, really all of it? Allow rm -rf build? (y/n)"


def hidden(text: str, shown: str) -> list[str]:
    own = OwnText()
    own.add(text)
    return [line.text for line in own.hide(screen_of_text(shown).lines)]


@given(width=st.integers(30, 140), indent=st.integers(0, 4), prompt=st.sampled_from(["> ", "› ", "│ > ", ""]))
def test_it_is_found_in_rows_of_any_width(width: int, indent: int, prompt: str) -> None:
    rows = textwrap.wrap(TEXT, width, initial_indent=prompt, subsequent_indent=" " * indent)
    left = hidden(TEXT, "\n".join(["hello", *rows, "a row of theirs"]))
    assert [row.strip(" >›│") for row in left] == ["hello", *[""] * len(rows), "a row of theirs"]


def test_what_is_not_ours_stays() -> None:
    shown = "Allow rm -rf build? (y/n)"
    assert hidden(TEXT, f"hello\n{shown}") == ["hello", shown]  # the very words of a message, and not our message
    assert hidden(TEXT, f"{TEXT}\n{shown}") == ["", shown]
    assert hidden(TEXT, f"Proceed? (y/n) {TEXT}") == ["Proceed? (y/n)"]
    assert hidden("", "x") == ["x"]


def test_its_middle_is_known_where_its_beginning_is_out_of_sight() -> None:
    assert hidden(TEXT, "directory, really all of it?\nAllow rm -rf build? (y/n)\nOk? (y/n)") == ["", "", "Ok? (y/n)"]


def test_where_it_ends_is_known() -> None:
    own = OwnText()
    own.add(TEXT)
    lines = screen_of_text(f"> {TEXT}\n\nbusy").lines
    assert [own.holds(lines, position) for position in range(3)] == [True, True, False]


def test_our_own_text_is_no_dialog_and_no_doubt() -> None:
    for row in (f"> {TEXT}", TEXT):
        watcher = Watcher(load_profiles()["generic"])
        watcher.saw(screen_of_text("hello\n> ", cursor=Cursor(1, 2)), 1.0)
        screen = screen_of_text(f"hello\n{row}", columns=200, cursor=Cursor(1, len(row)))
        watcher.saw(screen, 2.0)
        assert watcher.state is State.DIALOG  # somebody else's words would be one
        watcher.expect_echo(TEXT)
        watcher.saw(screen, 3.0)
        assert (watcher.dialog, watcher.doubt) == (None, "")
