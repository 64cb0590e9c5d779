"""A newcomer does what README.md and docs/quick-start.md say, with stand-ins for the two CLIs, and sees what they promise."""

from __future__ import annotations

import os
import pwd
import re
import time

import pytest

from tests.first_hour.newcomer import DEADLINE_S, ROOT, Newcomer, Terminal
from tests.first_hour.pages import Step, missing, steps_of
from tests.integration.stage import until

pytestmark = [pytest.mark.terminals, pytest.mark.timeout(600)]  # a minute on an idle machine, most of it waiting

README = ROOT / "README.md"
PAGE = ROOT / "docs" / "quick-start.md"
_START = re.compile(r"^agent-relay -n (\w+) \w+", re.MULTILINE)
_WRITTEN = re.compile(r"Now Alice can write `(->relay:Bob ([^`]+))`, and Bob gets it at his prompt\.")
ME = pwd.getpwuid(os.getuid()).pw_name
HEADINGS = (
    "## Start two agents",
    "## Let them talk",
    "## Ask what became of a message",
    "## Work in several worktrees",
    "## Stop",
)
_ID = re.compile(r"\b[0-9a-f]{8}\b")
_LOOKS = ("agents", "history", "inbox", "explain", "status")  # a reader looks again if it is not there yet


def _written() -> tuple[str, str]:
    """What the README lets Alice write, and what Bob is to get."""
    found = _WRITTEN.search(README.read_text("utf-8"))
    assert found is not None
    return found[1], found[2]


SCRIPTS = {
    "claude": {
        "look": "claude",
        "turns": [
            {"when": "which tests are slow", "say": ["->relay:Bob Which tests are slow?"]},
            {"when": "what the readme says", "say": [_written()[0]]},
            {"when": "takes 40 s", "say": [f"->relay:{ME} Bob says: test_api takes 40 s."]},
        ],
    },
    "codex": {"look": "codex", "turns": [{"when": "slow", "say": ["->relay:Alice test_api takes 40 s."]}]},
}


@pytest.fixture
def reader(person: Newcomer) -> Newcomer:
    person.has_clis(SCRIPTS)
    return person


def follow(terminal: Terminal, step: Step, ids: dict[str, str]) -> None:
    """Types it, with the ids that were really given out, and sees what the page promises."""
    command = _ID.sub(lambda found: ids.get(found[0], found[0]), step.command)
    words = command.split()
    is_look = words[0] == "agent-relay" and words[1] in _LOOKS
    deadline = time.monotonic() + DEADLINE_S
    while True:
        printed = terminal.run(command, None if is_look else 0)
        absent = missing(step, printed)
        if not absent:
            break
        may_come = is_look and time.monotonic() < deadline
        assert may_come, f"{command}: {absent} is not in:\n{printed}"
    if words[:2] == ["agent-relay", "send"]:
        (promised,), (given,) = _ID.findall("\n".join(step.printed)), _ID.findall(printed)
        ids[promised] = given


def test_the_quick_start_is_true(reader: Newcomer) -> None:
    terminals = {name: reader.terminal() for name in ("alice", "bob", "")}
    ids: dict[str, str] = {}
    for step in [step for heading in HEADINGS for step in steps_of(PAGE, heading)]:
        terminal = terminals[step.terminal]
        if step.terminal:
            terminal.type(step.command)  # it goes on until the end
        else:
            follow(terminal, step, ids)
    assert ids
    for name in ("alice", "bob"):
        terminals[name].shows("newcomer$")


def test_the_first_lines_of_the_readme_are_true(reader: Newcomer) -> None:
    lines = [found[0] for found in _START.finditer(README.read_text("utf-8"))]
    alices, bobs = (reader.terminal() for _ in lines)
    for terminal, line in zip((alices, bobs), lines, strict=True):
        terminal.type(line)
    mine = reader.terminal()
    until(lambda: {"Alice", "Bob"} <= set(mine.run("agent-relay agents", None).split()), "both are here", DEADLINE_S)
    mine.run('agent-relay send Alice "Write what the readme says."')
    alices.shows(_written()[0])
    bobs.shows("Relay message from Alice", _written()[1])
    mine.run("agent-relay down --all")
