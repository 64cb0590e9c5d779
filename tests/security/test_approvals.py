"""An approval reaches exactly what was shown, or nothing: prompts that change under it, and agents that ask the same."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import pytest

from tests.integration.stage import BACKENDS, Agent, Stage, until

pytestmark = pytest.mark.terminals
# Asks for one command, and on a signal for the next in the same row; every byte it is given is recorded.
ASKS = r"""
import json, os, signal, sys, tty
prompts, record = sys.argv[2:], open(sys.argv[1], "a", buffering=1)
tty.setraw(0)
def draw(*_):
    prompt = prompts.pop(0) if prompts else "> "
    os.write(1, b"\r\x1b[K" + prompt.encode())
signal.signal(signal.SIGUSR1, draw)
draw()
record.write(json.dumps({"event": "started", "pid": os.getpid()}) + "\n")
while data := os.read(0, 1):
    record.write(json.dumps({"event": "key", "key": data.decode()}) + "\n")
    os.write(1, data)
    if data == b"\r":
        os.write(1, b"\n")
        draw()
"""


def start(stage: Stage, name: str, backend: str, *prompts: str) -> Agent:
    program = stage.folder / "asks.py"
    program.write_text(ASKS)
    return stage.start(name, backend, program=[sys.executable, str(program), str(stage.folder / f"{name}.jsonl"), *prompts])


def keys(agent: Agent) -> str:
    return "".join(event["key"] for event in agent.events("key"))


def asked(stage: Stage, kind: str = "permissions") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(stage.command(kind, "--json").stdout)[kind]
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_prompt_that_was_redrawn_is_not_answered_by_the_old_id(stage: Stage, backend: str) -> None:
    bob = start(stage, "Bob", backend, "Allow ls? (y/n) ", "Allow rm -rf build? (y/n) ")
    (first,) = until(lambda: asked(stage), "Bob asks")
    assert (first["command"], first["options"]) == ("ls", ["y", "n"])
    os.kill(bob.events("started")[0]["pid"], signal.SIGUSR1)
    (second,) = until(lambda: [each for each in asked(stage) if each["command"] == "rm -rf build"], "Bob asks another thing")
    assert second["id"] != first["id"]
    assert second["risk"] in {"high", "critical"}
    late = stage.command("permissions", "approve", first["id"])
    assert (late.returncode, keys(bob)) == (1, "")
    assert stage.command("permissions", "approve", second["id"]).returncode == 0
    assert keys(bob) == "y\r"


def test_one_of_two_agents_that_ask_the_same_is_answered(stage: Stage) -> None:
    bob, carol = (start(stage, name, "pty", "Approve: make test [y/n] ") for name in ("Bob", "Carol"))
    found = until(lambda: asked(stage) if len(asked(stage)) == 2 else None, "both ask")
    ids = {each["agent"]: each["id"] for each in found}
    assert len(set(ids.values())) == 2
    assert stage.command("permissions", "approve", ids["Carol"]).returncode == 0
    assert (keys(bob), keys(carol)) == ("", "y\r")


@pytest.mark.parametrize("cli", ["generic", "claude", "codex", "gemini", "opencode", "aider", "goose"])
def test_plain_prompts_are_answered_whatever_the_profile(stage: Stage, cli: str) -> None:
    program = stage.folder / "asks.py"
    program.write_text(ASKS)
    words = [
        sys.executable,
        str(program),
        str(stage.folder / "Bob.jsonl"),
        "Which colour? (red/blue) ",
        "Permission requested: rm ",
    ]
    bob = stage.start("Bob", "pty", "--cli", cli, "--no-doors", program=words)
    (question,) = until(lambda: asked(stage, "questions"), "Bob asks")
    assert (question["question"], question["options"]) == ("Which colour?", ["red", "blue"])
    assert stage.command("questions", "answer", question["id"], "blue").returncode == 0
    assert keys(bob) == "blue\r"
    (request,) = until(lambda: asked(stage), "Bob asks for leave, and names no key")
    assert (request["can_allow"], request["command"]) == (False, "rm")
    assert stage.command("permissions", "approve", request["id"]).returncode == 1
    assert keys(bob) == "blue\r"
