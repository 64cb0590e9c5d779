"""CLIs whose doors are not as expected, under real terminals: each is reached all the same, and once."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.stage import BACKENDS, Agent, Stage, Window, until

pytestmark = pytest.mark.terminals
TURNS = [{"when": "", "busy_ms": 50, "say": ["ok"]}]
# What a version does that does not know a flag of ours. It counts how often it was started.
REFUSES = """#!/bin/sh
echo "$@" >> {folder}/starts
for word in "$@"; do
    if [ "$word" = "{flag}" ]; then
        echo "error: unknown option '{flag}'"
        exit {status}
    fi
done
exec {agent}
"""


def program(stage: Stage, flag: str = "--settings", status: int = 2, name: str = "claude", **script: Any) -> list[str]:
    """A `claude` that ends when it is given this flag, and is the scripted agent otherwise. It keeps no session record."""
    (agent,) = stage.play("Bob", look="claude", turns=TURNS, **script)
    path = stage.folder / name
    path.write_text(REFUSES.format(folder=stage.folder, flag=flag, status=status, agent=agent))
    path.chmod(0o755)
    return [str(path)]


def starts(stage: Stage) -> list[str]:
    path = stage.folder / "starts"
    return path.read_text().splitlines() if path.exists() else []


def described(stage: Stage) -> dict[str, Any]:
    agents = json.loads(stage.command("agents", "--json").stdout)["agents"]
    return next(dict(agent) for agent in agents if agent["name"] == "Bob")


@pytest.mark.parametrize(("backend", "person"), [("tmux", False), ("pty", False), ("tmux", True), ("pty", True)])
def test_a_program_that_ends_at_once_is_started_once_more_without_what_we_add(stage: Stage, backend: str, person: bool) -> None:
    with stage.daemon.connect_sync("Bob"):
        pass
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "before the start")
        window = Window() if person else None
        bob = stage.start("Bob", backend, program=program(stage), person=window or False)
        carol.send("Bob", "and after it")
        until(lambda: len(bob.messages) == 2, "both messages are there")
    assert bob.messages == ["before the start", "and after it"]
    first, second = starts(stage)
    assert "--settings" in first
    assert second == ""
    stage.settled("Bob", 2)
    reason = "claude ended with status 2"
    assert f"{reason} " in bob.log
    assert "error: unknown option '--settings'" in bob.log
    found = described(stage)
    assert found["door"] == "typing"
    assert [each["door"] for each in found["unused_doors"]] == ["claude inbox", "claude stop hook"]
    assert all(reason in each["reason"] for each in found["unused_doors"])
    if window is not None:
        until(lambda: b"starting it again without them" in window.shown, "the person is told")
        assert b"unknown option" in window.shown


def test_it_is_not_started_a_third_time(stage: Stage) -> None:
    process = stage.run(["-n", "Bob", "--backend", "pty", *stage.where, *program(stage, flag="")], None)
    path = stage.folder / "claude"
    path.write_text(f"#!/bin/sh\necho start >> {stage.folder}/starts\nexit 3\n")
    assert process.wait(60) == 3
    process.communicate()
    assert len(starts(stage)) == 2


@pytest.mark.parametrize("script", [{"turns": [{"when": "bye", "busy_ms": 10, "say": ["bye"], "exit": 5}]}])
def test_a_program_that_was_used_is_not_started_again(stage: Stage, script: dict[str, Any]) -> None:
    (agent,) = stage.play("Bob", look="claude", **script)
    path = stage.folder / "claude"
    path.write_text(f"#!/bin/sh\necho start >> {stage.folder}/starts\nexec {agent}\n")
    path.chmod(0o755)
    bob = stage.start("Bob", "pty", program=[str(path)])
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "bye")
    assert bob.wait() == 5
    assert len(starts(stage)) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_session_that_keeps_no_record_is_typed_to_soon(stage: Stage, backend: str) -> None:
    """It used to be waited for for two minutes."""
    bob: Agent = stage.start("Bob", backend, program=program(stage, flag="--none"))
    until(lambda: "state: idle" in bob.log, "it is at its prompt")
    began = time.monotonic()
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        until(lambda: bob.messages == ["hello"], "it is typed")
    assert time.monotonic() - began < 30  # a loaded machine; 5 s on an idle one
    found = described(stage)
    assert found["door"] == "typing"
    assert found["unused_doors"][0]["door"] == "claude inbox"
    assert "is not open yet" in found["unused_doors"][0]["reason"]


def test_an_old_opencode_is_started_as_it_was_written(stage: Stage, tmp_path: Path) -> None:
    (agent,) = stage.play("Bob", look="claude", turns=TURNS)
    path = stage.folder / "opencode"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && {{ echo 1.17.0; exit; }}\necho "$@" >> {stage.folder}/starts\nexec {agent}\n'
    )
    path.chmod(0o755)
    stage.start("Bob", "pty", program=[str(path)])
    assert starts(stage) == [""]
    (unused,) = until(lambda: described(stage)["unused_doors"], "it is told")
    assert unused["door"] == "opencode server"
    assert "1.17.0 ends at once" in unused["reason"]
    assert "Update opencode" in unused["mend"]
