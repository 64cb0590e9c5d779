"""A door and a screen that tell of the same CLI: what both see is one request, and a door that is not known leaves the screen."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.profiles.profile import load_profiles
from tests.integration.stage import Agent, Stage, until
from tests.unit.terminal.recorded_screens import SCREENS

pytestmark = pytest.mark.terminals
PROGRAM = Path(__file__).with_name("gemini_program.py")


def start(stage: Stage, version: str, *options: str) -> Agent:
    """As a person has it who linked the extension."""
    (stage.folder / ".gemini" / "extensions" / "agent-relay").mkdir(parents=True)
    (stage.folder / "package.json").write_text(json.dumps({"name": "@google/gemini-cli", "version": version}))
    program, words = stage.folder / "gemini", [PROGRAM, stage.folder / "Bob.jsonl", SCREENS / "gemini/perm-h-enter/screens.txt"]
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {' '.join(map(str, words))}\n")
    program.chmod(0o755)
    return stage.start("Bob", "pty", *options, program=[str(program)])


def permissions(stage: Stage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(stage.command("permissions", "--json").stdout)["permissions"]
    assert len(found) <= 1, found
    return found


def agent(stage: Stage) -> dict[str, Any]:
    (found,) = json.loads(stage.command("agents", "--json").stdout)["agents"]
    return dict(found)


@pytest.mark.parametrize(("word", "option"), [("approve", "Allow once"), ("deny", "No, suggest changes (esc)")])
def test_what_two_see_is_asked_and_answered_once(stage: Stage, word: str, option: str) -> None:
    bob = start(stage, load_profiles()["gemini"].recorded)
    until(lambda: "gemini hooks is open" in bob.log, "the door is open")
    (asked,) = until(lambda: permissions(stage), "Bob asks")
    assert asked["can_allow"] is not False
    assert asked["id"].startswith("gemini-1-")
    assert (asked["tool"], asked["command"]) == ("run_shell_command", "rm -rf build")
    assert asked["options"] == ["Allow once", "Allow for this session", "No, suggest changes (esc)"]
    done = stage.command("permissions", word, asked["id"])
    assert (done.returncode, done.stderr) == (0, "")
    assert [event["option"] for event in bob.events("chosen")] == [option]
    until(lambda: not permissions(stage), "nothing is left")
    again = stage.command("permissions", word, asked["id"])
    assert (again.returncode, "There is no open permission" in again.stderr) == (1, True)


def test_under_the_strict_setting_a_version_that_was_not_tested_is_typed_to_and_everybody_is_told_why(stage: Stage) -> None:
    """The screen alone tells of the dialog then."""
    bob = start(stage, "99.1.0", "--doors", "known")
    reason = f"Gemini CLI 99.1.0, but only {load_profiles()['gemini'].recorded} was tested"
    until(lambda: f"gemini hooks is not used: {reason}" in bob.log, "it is decided")
    found = agent(stage)
    mend = '`--doors probe` or `doors = "probe"` uses it if its probe passes.'
    assert (found["door"], found["unused_doors"]) == ("typing", [{"door": "gemini hooks", "reason": reason, "mend": mend}])
    said = " ".join(stage.command("doctor").stdout.split())
    assert f"gemini hooks is not used: {reason}" in said
    assert mend in said
    (asked,) = until(lambda: permissions(stage), "Bob asks")
    with stage.daemon.connect_sync("Carol") as carol:
        waiting = carol.send("Bob", "it waits for the dialog").message_id
    assert f"Bob is reached by typing; gemini hooks is not used: {reason}" in stage.command("explain", waiting).stdout
    told = json.loads(stage.command("explain", waiting, "--json").stdout)["ways_in"]
    assert told == {"Bob": {"door": "typing", "unused_doors": found["unused_doors"]}}
    assert asked["id"].startswith("screen-")
    assert stage.command("permissions", "deny", asked["id"]).returncode == 0


def test_by_default_it_is_used_where_its_probe_passes(stage: Stage) -> None:
    bob = start(stage, "99.1.0")
    until(lambda: "gemini hooks is open" in bob.log, "the door is open")
    found = agent(stage)
    assert (found["door"], found["unused_doors"]) == ("gemini hooks", [])
    assert "on trial until a first message is read" in found["door_note"]
