"""What a newcomer does wrong, and the exact words that put it right; and that nothing is left of a typo."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.first_hour.newcomer import Newcomer
from tests.integration.stage import until

pytestmark = [pytest.mark.terminals, pytest.mark.timeout(600)]

NO_CLAUDE = "agent-relay: claude is not on PATH. Install it with: npm install -g @anthropic-ai/claude-code"
TOO_LONG = "agent-relay: The socket path is … bytes long, and the system allows …. Choose a shorter one with --socket …"
BEFORE = {
    "agent-relay cluade": "agent-relay: Unknown command: cluade. Did you mean claude? See: agent-relay --help",
    "agent-relay sned Bob hi": "agent-relay: Unknown command: sned. Did you mean send? See: agent-relay --help",
    "agent-relay claude": NO_CLAUDE,
    "agent-relay -n Alice claude": NO_CLAUDE,
    "agent-relay wrap -n X nosuchprogram": "agent-relay: nosuchprogram is not on PATH. Install it, or give its full path.",
    "agent-relay send Bob hi": "agent-relay: The daemon is not running; start it with: agent-relay up (nothing answers at …)",
    "agent-relay status --jsno": "agent-relay: No such option: --jsno (Possible options: --json). See: agent-relay status --help",
    "agent-relay projects": "There are no projects yet; `agent-relay up` creates one.",
    "agent-relay send Bob hi --json": '{"error": {"code": "SERVICE_UNAVAILABLE"',
    "agent-relay --socket /tmp/$(printf %0120d 1)/relay.sock status": TOO_LONG,
}
AFTER = {
    "agent-relay send Bob hi": "agent-relay: No agent Bob has ever connected. `agent-relay agents --all` lists all known agents.",
    "agent-relay explain 12345678": "agent-relay: There is no message '12345678'; a short id is looked for among the newest …",
    "agent-relay rm Nobody": "agent-relay: No agent 'Nobody' has ever connected, or it was removed. …",
    "agent-relay up --max-attempts 9": "… To change it: agent-relay restart --max-attempts 9",
}  # fmt: skip
QUICK = (["--version"], ["status"], ["agents"], ["send", "--help"])
MOST_CPU_S = 0.25


def is_said(wanted: str, printed: str) -> bool:
    pattern = re.escape(wanted).replace("…", ".*")
    return re.search(pattern, " ".join(printed.split())) is not None


def test_every_mistake_is_answered_with_what_to_do(person: Newcomer) -> None:
    terminal = person.terminal()
    for command, words in BEFORE.items():
        printed = terminal.run(command, None)
        assert is_said(words, printed), f"{command}:\n{printed}"
    assert not (person.home / ".agent-relay" / "projects").exists(), "a mistake has started a daemon"
    terminal.run("agent-relay up")
    for command, words in AFTER.items():
        printed = terminal.run(command, None)
        assert is_said(words, printed), f"{command}:\n{printed}"
    assert "Bob" not in terminal.run("agent-relay agents --all")


def test_a_message_that_waits_says_what_for(person: Newcomer) -> None:
    """At each of them the same words in `send`, `agents` and `explain`."""
    person.has_program("boxed", "#!/bin/sh\nstty raw -echo; printf 'some boxed thing\\r\\n|   |'; exec cat >/dev/null\n")
    bobs, terminal = person.terminal(), person.terminal()

    def is_told(name: str, words: str) -> None:
        sent = terminal.run(f"agent-relay send {name} hello", None)
        (short,) = re.findall(r"\b[0-9a-f]{8}\b", sent)
        for command in (f"agent-relay send {name} again --wait 5", f"agent-relay explain {short}", "agent-relay agents --all"):
            until(lambda: is_said(words, terminal.run(command, None)), f"{command} says {words}")  # noqa: B023 - called here

    bobs.type("agent-relay -n Bob boxed")
    until(lambda: "Bob" in terminal.run("agent-relay agents", None), "Bob is here")
    is_told("Bob", "Bob's prompt was not recognised: see `agent-relay profile new`")
    terminal.run("agent-relay pause Bob")
    is_told("Bob", "paused by you: `agent-relay resume Bob`")
    down = terminal.run("agent-relay down")
    assert is_said("Bob", down)
    assert is_said("agent-relay down --all", down)
    terminal.run("agent-relay up")
    until(lambda: "Bob" in terminal.run("agent-relay agents", None), "Bob is back")
    terminal.run("agent-relay stop Bob")
    until(lambda: "newcomer$" in bobs.screen, "Bob has ended")
    is_told("Bob", "offline since …; delivered when it comes back")
    assert "Bob" not in terminal.run("agent-relay agents").splitlines()[-1].split()
    terminal.type("agent-relay rm Bob")
    terminal.shows("would become dead letters. Remove anyway? [y/N]")
    terminal.type("y")
    until(lambda: terminal.screen.endswith("newcomer$"), "Bob is removed")
    assert "Bob" not in terminal.run("agent-relay agents --all")


def test_a_second_project_has_a_relay_of_its_own(person: Newcomer) -> None:
    other = person.home / "other"
    other.mkdir()
    first, second = person.terminal(), person.terminal(other)
    ports = [re.search(r"http://127\.0\.0\.1:(\d+)/#code=", terminal.run("agent-relay up")) for terminal in (first, second)]
    assert all(ports)
    one, two = (found[1] for found in ports if found is not None)
    assert one != two
    listed = first.run("agent-relay projects").splitlines()
    assert [line.split()[:2] + line.split()[5:6] for line in listed[1:]] == [["my-project", "up", one], ["other", "up", two]]
    assert f"http://127.0.0.1:{two}/#code=" in second.run("agent-relay open --no-browser")


def test_commands_begin_at_once(person: Newcomer, commands: Path) -> None:
    """In processor time, the best of some: what a busy machine adds is not theirs."""
    for words in QUICK:
        took_s = []
        for _ in range(6):
            before = os.times()
            subprocess.run(
                [commands / "agent-relay", *words], env=person.environment, cwd=person.project, capture_output=True, check=False
            )
            after = os.times()
            took_s.append(after.children_user + after.children_system - before.children_user - before.children_system)
        assert min(took_s) <= MOST_CPU_S, f"{words} took {took_s}"
