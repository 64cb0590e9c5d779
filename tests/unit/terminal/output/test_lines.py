"""Rows → lines: speakers, margins, wraps, code."""

from __future__ import annotations

import textwrap

import pytest

from agent_relay.terminal.output.lines import SaidLine, read_lines
from agent_relay.terminal.profiles.profile import Kind, profile_for
from agent_relay.terminal.screen.contents import Ink, Line, Screen, screen_of_text
from agent_relay.terminal.screen.emulator import Emulator
from agent_relay.terminal.screen.state import State, look
from tests.unit.terminal.recorded_screens import SCREENS, steps_of

LONG = " ".join(f"word{n:03}" for n in range(1, 61)) + " END-OF-LONG"


def said(name: str, text: str, columns: int = 120) -> list[SaidLine]:
    profile = profile_for(name)
    screen = screen_of_text(text, columns)
    return read_lines(profile, screen, look(profile, screen, State.IDLE).conversation_end)


def agent_lines(name: str, text: str, columns: int = 120) -> list[str]:
    return [line.text for line in said(name, text, columns) if line.kind is Kind.AGENT and line.text]


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode", "aider"])
def test_what_the_agent_said_and_nothing_else(name: str) -> None:
    lines = agent_lines(name, dict(steps_of(f"{name}/a"))["idle after injection"])
    assert lines[-5:] == ["I'll tell Bob.", "->relay:Bob hello", "That is done.", "Understood, reviewing.", "->relay:Alice ACK"]


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode", "aider"])
def test_wrapped_lines_are_one(name: str) -> None:
    assert f"->relay:Bob {LONG}" in agent_lines(name, dict(steps_of(f"{name}/c"))["idle after answer"])


@pytest.mark.parametrize("variant", ["claude", "codex", "gemini", "opencode", "aider"])
def test_a_word_longer_than_a_row_is_one(variant: str) -> None:
    lines = agent_lines(variant, (SCREENS / variant / "tmux" / "06-d.busy.txt").read_text("utf-8"))
    (line,) = [line for line in lines if line.startswith("->relay:Bob see ")]
    assert line.count(" ") == 2
    assert line.endswith("/end")


def test_a_row_with_room_left_was_ended_by_its_author() -> None:
    assert agent_lines("claude", "● ->relay:Bob hello\n  That is done.\n") == ["->relay:Bob hello", "That is done."]


@pytest.mark.parametrize("columns", range(46, 60))
def test_a_command_after_a_command_is_one_of_its_own_however_full_the_row_is(columns: int) -> None:
    first, second = "->relay:Alice Does it help people who write?", "- ->relay:Bob Ask her more!"
    screen = screen_of_text(f"{first}\n{second}\n", columns)
    assert [line.text for line in read_lines(profile_for("generic"), screen, None, ("->relay:",))] == [first, second]


def test_a_command_after_a_full_row_of_text_is_one_too() -> None:
    """It might be a mention that was broken there; but losing a message in silence would be worse."""
    rows = ["I have looked at it, and I tell him so:", "->relay:Bob it is fine."]
    screen = screen_of_text("\n".join(rows), 46)
    assert [line.text for line in read_lines(profile_for("generic"), screen, None, ("->relay:",))] == rows


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 119, 120, 200])
def test_any_width_reads_the_same(columns: int) -> None:
    rows = textwrap.wrap(f"->relay:Bob {LONG}", columns - 2, break_long_words=False, break_on_hyphens=False)
    text = "● Long one.\n\n" + "".join(f"  {row}\n" for row in rows) + "\n  Done.\n"
    assert agent_lines("claude", text, columns) == ["Long one.", f"->relay:Bob {LONG}", "Done."]


def test_wide_characters_count_as_wide() -> None:
    words = "日本語テキスト " * 12
    rows = [words[:40].rstrip(), words[40:].rstrip()]
    text = "● a\n\n" + "".join(f"  {row}\n" for row in rows)
    assert len(agent_lines("claude", text, 80)) == 2


def test_tools_and_users_are_not_the_agent() -> None:
    text = (
        "❯ tell me\n  ->relay:Bob typed by the user\n\n● Read(README.md)\n  ⎿  first\n     ->relay:Bob shown by a tool\n\n"
        "● ->relay:Bob said\n\n✻ Cooked for 1s · done\n"
    )
    lines = [(line.kind, line.text) for line in said("claude", text) if "relay" in line.text]
    assert lines == [
        (Kind.USER, "->relay:Bob typed by the user"),
        (Kind.TOOL, "   ->relay:Bob shown by a tool"),
        (Kind.AGENT, "->relay:Bob said"),
    ]


def test_rows_whose_beginning_scrolled_off_are_unknown() -> None:
    assert [line.kind for line in said("claude", "  ->relay:Bob hello\n  more\n") if line.text] == [Kind.UNKNOWN] * 2


def painted(text: str, ink: Ink) -> Screen:
    return Screen(lines=(Line(0, "● Like this:"), Line(1, ""), Line(2, text, lambda _: ink)), columns=120, first_visible=0)


@pytest.mark.parametrize(
    ("name", "ink", "is_code"),
    [
        ("claude", Ink(), False),
        ("claude", Ink("afd7ff"), True),
        ("aider", Ink("0087ff"), False),
        ("aider", Ink("000000", "eeeeee"), True),
        ("opencode", Ink("eeeeee"), False),
    ],
)
def test_code_is_known_by_its_colour_where_a_cli_paints_it(name: str, ink: Ink, is_code: bool) -> None:
    lines = read_lines(profile_for(name), painted("     ->relay:Bob x", ink), None)
    assert lines[-1].is_code is is_code


def test_code_is_known_by_its_line_number_in_gemini() -> None:
    text = dict(steps_of("gemini/d"))["idle after answer"]
    (line,) = [line for line in said("gemini", text) if "EXAMPLE" in line.text]
    assert line.is_code


@pytest.mark.parametrize("columns", [20, 26, 33, 57])
def test_rows_that_the_terminal_broke_are_put_together_letter_by_letter(columns: int) -> None:
    emulator = Emulator(columns, 40)
    wanted = [
        "->relay:Carol Yes! They tell it, and a supercalifragilisticexpialidocious word too.",
        "漢字漢字漢字漢字漢字漢字 are wide",
    ]
    emulator.feed("\r\n".join(wanted).encode() + b"\r\nnext\r\n")
    lines = [line.text for line in read_lines(profile_for("generic"), emulator.read(), None)]
    assert lines == [*wanted, "next"]


def test_a_row_that_was_erased_and_written_anew_is_not_broken_any_more() -> None:
    emulator = Emulator(20, 10)
    emulator.feed(b"one two three four five six\x1b[A\r\x1b[2Kshort\r\nsecond\x1b[K\r\n")
    assert [line.text for line in read_lines(profile_for("generic"), emulator.read(), None)] == ["short", "second"]


def test_the_opener_of_a_block_ends_its_line_however_full_the_row_is() -> None:
    emulator = Emulator(20, 10)
    emulator.feed(b"->relay:Carol <<<\r\nfirst\r\n>>>\r\n")
    lines = [line.text for line in read_lines(profile_for("generic"), emulator.read(), None, ("->relay:",))]
    assert lines == ["->relay:Carol <<<", "first", ">>>"]
