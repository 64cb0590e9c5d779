"""A newcomer follows the tutorial of docs/teams.md to the letter, with stand-ins for the two CLIs."""

from __future__ import annotations

import re
import subprocess
import time

import pytest

from tests.first_hour.newcomer import ROOT, Newcomer, Terminal
from tests.first_hour.pages import Step, missing, steps_of

pytestmark = [pytest.mark.terminals, pytest.mark.timeout(600)]
DEADLINE_S = 120.0
PAGE = ROOT / "docs" / "teams.md"
HEADING = "## A reviewer team in five minutes"
_FILE = re.compile(r"^Save this as `([^`]+)`:\n\n```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ANSWER = " [y/N]: y"
_LOOKS = ("team status", "history", "events")  # a reader looks again if it is not there yet
SCRIPTS = {
    "claude": {
        "look": "claude",
        "turns": [
            {"when": "rename load", "say": ["->relay:Reviewer Please review: load() is now read()."]},
            {"when": "Announce it yourself", "say": ["->relay:#verdicts I think it is fine."]},
        ],
    },
    "codex": {
        "look": "codex",
        "turns": [{"when": "Please review", "say": ["->relay:#verdicts approved: load() is now read()"]}],
    },
}


def follow(terminal: Terminal, step: Step) -> None:
    """Types it, answers what it asks, and sees what the page promises."""
    question = next((line for line in step.printed if line.endswith(_ANSWER)), None)
    is_look = any(step.command.startswith(f"agent-relay {look}") for look in _LOOKS)
    deadline = time.monotonic() + DEADLINE_S
    while True:
        printed = terminal.run(step.command, question=(question or "").removesuffix(" y"), answer="y")
        absent = missing(step, printed)
        if not absent:
            return
        assert is_look, f"{step.command} did not print {absent}:\n{printed}"
        assert time.monotonic() < deadline, f"{step.command} never printed {absent}:\n{printed}"


def test_the_tutorial(person: Newcomer) -> None:
    person.has_clis(SCRIPTS)
    found = _FILE.search(PAGE.read_text("utf-8"))
    assert found is not None
    path = person.project / found[1]
    path.parent.mkdir()
    path.write_text(found[2])
    steps = steps_of(PAGE, HEADING)
    assert len(steps) >= 8
    terminal = person.terminal()
    for step in steps:
        follow(terminal, step)
    branches = subprocess.run(["git", "branch"], cwd=person.project, capture_output=True, text=True, check=True).stdout
    assert "team/author" in branches
    assert not (path.parent / "worktrees" / "Author").exists()
