"""`docs/cli.md` is what the program says about itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.cli.app import build_command
from agent_relay.cli.main import main
from agent_relay.cli.reference import render_reference

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
COMMANDS = [
    "acp",
    "wrap", "attach", "logs", "mcp", "record", "replay", "up", "down", "status", "open", "agents", "who", "send", "inbox", "read",
    "history", "explain", "dead-letters", "version", "demo", "completion", "pause", "resume", "result", "run", "interrupt",
    "stop", "init", "input", "doctor", "costs", "events", "permissions", "questions", "arc", "bridge", "openapi", "spawn",
    "release", "forget", "export", "join", "leave", "channels", "profile", "restart", "projects", "ps", "rm", "prune",
    "storage", "hosts", "cluster", "team", "topic", "propose", "vote", "withdraw", "proposals",
]  # fmt: skip


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == render_reference(), "write it again: python -m agent_relay.cli.reference > docs/cli.md"


def test_the_page_does_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    before = render_reference()
    monkeypatch.setenv("COLUMNS", "40")
    assert render_reference() == before


def test_these_are_the_commands() -> None:
    assert sorted(build_command().commands) == sorted(COMMANDS)


SECOND_WORDS = [
    ["dead-letters", "list"], ["dead-letters", "retry"], ["permissions", "list"], ["permissions", "approve"],
    ["permissions", "deny"], ["questions", "list"], ["questions", "answer"], ["arc", "register"], ["arc", "tokens"],
    ["arc", "revoke"], ["arc", "listen"], ["arc", "send"], ["arc", "conformance"], ["arc", "free"], ["arc", "invite"],
    ["arc", "invitations"], ["profile", "list"], ["profile", "show"], ["profile", "new"], ["profile", "test"],
    ["storage", "copy"], ["cluster", "repair"], ["hosts", "exclude"], ["hosts", "include"],
    ["team", "up"], ["team", "down"], ["team", "status"], ["team", "logs"],
]  # fmt: skip


@pytest.mark.parametrize("words", [*([name] for name in COMMANDS), *SECOND_WORDS])
def test_every_command_explains_itself_with_an_example(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main([*words, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Example" in shown
    assert f"agent-relay {words[0]}" in shown
    for flag in ("--socket", "--state-dir"):
        assert flag in shown


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name not in {"completion", "wrap", "attach", "logs", "record", "export", "mcp", "acp"}]
)
def test_every_command_that_prints_data_can_print_json(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main([name, "--help"]) == 0
    assert "--json" in capsys.readouterr().out
