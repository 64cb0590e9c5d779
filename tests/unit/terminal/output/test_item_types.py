"""Calls of tools → types of items."""

from __future__ import annotations

import pytest

from agent_relay.terminal.output.item_types import find_item_type
from agent_relay.terminal.profiles.profile import profile_for


def judge(cli: str, name: str, **arguments: object) -> str:
    transcript = profile_for(cli).transcript
    assert transcript is not None
    return find_item_type(transcript, name, dict(arguments))


@pytest.mark.parametrize(
    ("cli", "name", "expected"),
    [
        ("claude", "Grep", "search"), ("claude", "WebSearch", "search"), ("claude", "TodoWrite", "plan"),
        ("claude", "Read", "tool_call"), ("claude", "mcp__x__Grep", "tool_call"), ("codex", "update_plan", "plan"),
        ("codex", "web_search", "search"), ("gemini", "google_web_search", "search"), ("gemini", "write_todos", "plan"),
    ],
)  # fmt: skip
def test_tools_by_their_names(cli: str, name: str, expected: str) -> None:
    assert judge(cli, name) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -q", "test_run"), ("cd api && python3 -m pytest tests", "test_run"), ("CI=1 npm run test:unit", "test_run"),
        (".venv/bin/pytest", "test_run"), ("uv run pytest", "test_run"), ("cargo test --all", "test_run"), ("npm t", "test_run"),
        ("make -j4 test", "test_run"), ("bash -lc 'go test ./...'", "test_run"), ("./gradlew test", "test_run"),
        ("npm run build", "build"), ("make", "build"), ("make all", "build"), ("cargo build --release", "build"),
        ("python -m build", "build"), ("docker build .", "build"), ("npx tsc", "build"), ("cmake --build out", "build"),
        ("ls tests", "tool_call"), ("cat pytest.ini", "tool_call"), ("echo pytest", "tool_call"), ("make clean", "tool_call"),
        ("git commit -m 'make test'", "tool_call"), ("pytest-watcher", "tool_call"), ("npm install", "tool_call"),
        ("rm -rf build", "tool_call"), ("build/run", "tool_call"), ("", "tool_call"),
    ],
)  # fmt: skip
def test_commands_by_the_program_they_run(command: str, expected: str) -> None:
    assert judge("claude", "Bash", command=command) == expected


def test_commands_given_as_lists() -> None:
    assert judge("codex", "shell", command=["bash", "-lc", "pytest -q"]) == "test_run"


def test_a_long_command_takes_no_time() -> None:
    assert judge("claude", "Bash", command="A=1 " * 100_000 + "pytest") == "tool_call"
