"""Plain into a pipe; on a terminal coloured, fitted to its width, and deaf to markup in the text."""

from __future__ import annotations

import io

import pytest

from agent_relay.cli.output.screen import Column, Screen, choose_columns, plain

COLUMNS = [Column("name"), Column("state"), Column("cli", optional=True), Column("task", optional=True)]
ROWS = [["Alice", ("idle", "green"), "claude", "x" * 30], ["Bob", ("offline", "dim"), "codex", "-"]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    return Terminal()


def test_a_pipe_gets_plain_text_of_any_length() -> None:
    stream = io.StringIO()
    screen = Screen(stream)
    screen.line(("a" * 200, "bold red"), " b")
    screen.block("first\n\nsecond", indent=2)
    assert stream.getvalue() == "a" * 200 + " b\n  first\n\n  second\n"


def test_a_pipe_gets_every_column() -> None:
    stream = io.StringIO()
    Screen(stream).table(COLUMNS, ROWS)
    assert stream.getvalue().splitlines() == [
        "name   state    cli     task",
        "Alice  idle     claude  " + "x" * 30,
        "Bob    offline  codex   -",
    ]


def test_a_terminal_gets_colours(terminal: Terminal) -> None:
    Screen(terminal).line(("up", "bold green"))
    assert terminal.getvalue() == "\x1b[1;32mup\x1b[0m\n"


def test_no_color_is_respected(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    Screen(terminal).line(("up", "green"))
    assert terminal.getvalue() == "up\n"


def test_text_cannot_bring_its_own_markup(terminal: Terminal) -> None:
    screen = Screen(terminal)
    screen.line("[red]x[/red] :smile:")
    screen.block("[bold]y[/bold]", indent=0)
    assert "[red]x[/red] :smile:" in terminal.getvalue()
    assert "[bold]y[/bold]" in terminal.getvalue()


def test_a_block_is_wrapped_inside_its_indent(terminal: Terminal) -> None:
    Screen(terminal).block("word " * 30, indent=4)
    lines = terminal.getvalue().splitlines()
    assert len(lines) > 2
    assert all(line.startswith("    word") and len(line) <= 60 for line in lines)


def test_a_narrow_terminal_gets_the_columns_that_matter(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    Screen(terminal).table(COLUMNS, ROWS)
    assert "claude" in terminal.getvalue()
    assert "xxx" not in terminal.getvalue()
    assert choose_columns(COLUMNS, ROWS, 20) == [0, 1]
    assert choose_columns(COLUMNS, ROWS, 5) == [0, 1]
    assert choose_columns(COLUMNS, ROWS, None) == [0, 1, 2, 3]


def test_parts_without_their_styles() -> None:
    assert plain(["a ", ("b", "bold"), "  "]) == "a b"
