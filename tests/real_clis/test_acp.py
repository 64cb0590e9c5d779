"""Real CLIs by the Agent Client Protocol: messages, permissions, a cancelled turn, and an agent that is killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.real_clis.harness import Agent, Lab
from tests.real_clis.model.script import Turn, on_message

CLIS = ["gemini", "opencode"]
pytestmark = [pytest.mark.real_clis, pytest.mark.parametrize("cli", CLIS)]
TURNS = [
    Turn(on_message("clean up"), command="rm -rf build", then="->relay:Carol it is clean"),
    Turn(on_message("count"), say="->relay:Carol counted", drips=True),
    Turn(on_message("hello"), say="->relay:Carol hello to you"),
]


@pytest.fixture
def bob(lab: Lab, cli: str) -> Agent:
    return lab.start(cli, "Bob", TURNS, "--acp", doors=True)


def described(lab: Lab) -> dict[str, Any]:
    return next(dict(agent) for agent in json.loads(lab.command("agents", "--json").stdout)["agents"] if agent["name"] == "Bob")


def pids_below(pid: int) -> list[int]:
    return [int(word) for path in Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]


def test_acp_read(lab: Lab, bob: Agent, cli: str) -> None:
    assert described(lab)["door"] == "acp"
    with lab.client("Carol") as carol:
        id_ = lab.send("Bob", "hello")
        assert carol.receive(timeout=240).body == "hello to you"
    lab.wait_until_settled(bob, 1)
    assert lab.evidence(id_) == "turn"
    assert bob.times_told("hello") == 1
    assert "Relay message from" in bob.screen


def test_acp_approve(lab: Lab, bob: Agent, cli: str) -> None:
    answer(lab, bob, "approve")
    assert not (lab.project / "build").exists()


def test_acp_deny(lab: Lab, bob: Agent, cli: str) -> None:
    answer(lab, bob, "deny")
    assert (lab.project / "build").exists()


def answer(lab: Lab, bob: Agent, word: str) -> None:
    lab.send("Bob", "clean up")
    bob.until(lambda: described(lab)["requests"], "it asks")
    (request,) = described(lab)["requests"]
    assert "rm -rf build" in str(request["command"] or request["description"])
    lab.command("permissions", word, request["id"])
    bob.until(lambda: described(lab)["state"] == "idle", "the turn is over")


def test_acp_cancelled(lab: Lab, bob: Agent, cli: str) -> None:
    with lab.client("Carol") as carol:
        lab.send("Bob", "count")
        bob.until(lambda: described(lab)["state"] == "working", "it works")
        lab.send("Bob", "hello")
        lab.command("interrupt", "Bob")
        assert carol.receive(timeout=240).body == "hello to you"
    assert bob.times_told("hello") == 1


def test_acp_agent_dies(lab: Lab, bob: Agent, cli: str) -> None:
    with lab.client("Carol") as carol:
        lab.send("Bob", "hello")
        assert carol.receive(timeout=240).body == "hello to you"
        (console,) = pids_below(bob.program_pid)
        for pid in pids_below(console):
            os.kill(pid, signal.SIGKILL)
        lab.send("Bob", "hello again")
        assert carol.receive(timeout=100).body == "hello to you"
    lab.wait_until_settled(bob, 2)
    assert "it is started again" in bob.screen
