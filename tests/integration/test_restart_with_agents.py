"""Agents in real terminals while their daemon is restarted, killed and stopped: they go on, and nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.interpreter import run_module
from tests.integration.stage import Agent, Window, until
from tests.integration.test_projects import PROGRAM, Desk

pytestmark = pytest.mark.terminals


class Theatre(Desk):
    """With scripted agents that are wrapped as a person wraps them: without naming a socket."""

    def __init__(self) -> None:
        super().__init__()
        self.environ["TERM"] = "xterm-256color"
        self.started: list[tuple[subprocess.Popen[bytes], Window]] = []

    def play(self, where: Path, name: str, *options: str) -> Agent:
        script, record = self.folder / f"{name}.json", self.folder / f"{name}.jsonl"
        script.write_text("{}")
        run = self.folder / f"{name}.sh"
        words = [*run_module("agent_relay.cli.demo.scripted_agent"), "--script", str(script), "--record", str(record)]
        run.write_text(f"#!/bin/sh\nexec {' '.join(words)}\n")
        run.chmod(0o755)
        window = Window()
        process = subprocess.Popen(
            [PROGRAM, "-n", name, "--no-intro", "--backend", "pty", *options, str(run)], cwd=where, env=self.environ,
            stdin=window.slave, stdout=window.slave, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.started.append((process, window))
        state_dir = Path(self.json(where, "status")["state_dir"]) if self.is_up(where) else self.folder
        agent = Agent(name, process, record, state_dir, None)  # type: ignore[arg-type]
        until(lambda: agent.events("started") or process.poll() is not None, f"{name} starts")
        assert process.poll() is None, process.communicate()
        return agent

    def is_up(self, where: Path) -> bool:
        return bool(self.state(where)["up"])

    def state(self, where: Path) -> Any:
        return json.loads(self._run_here(where, ["status", "--json"], self.environ).stdout)

    def online(self, where: Path) -> set[str]:
        return {agent["name"] for agent in self.state(where).get("agents", []) if agent["connected"]}

    def close(self) -> None:
        for process, _ in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process, window in self.started:
            process.communicate(timeout=60)
            window.close()
        super().close()


@pytest.fixture
def theatre() -> Iterator[Theatre]:
    made = Theatre()
    yield made
    made.close()


def test_agents_go_on_over_restarts_and_a_kill_and_down_names_them(theatre: Theatre) -> None:
    repository = theatre.repository()
    theatre.git(repository, "worktree", "add", "-q", "../tree")
    tree = theatre.folder / "tree"
    theatre.run(repository, "up", "--no-http")
    bob = theatre.play(tree, "Bob")
    until(lambda: "Bob" in theatre.online(repository), "Bob is here")

    theatre.run(repository, "send", "Bob", "one", "--from", "Alice")
    theatre.run(repository, "restart", "--max-attempts", "9")
    theatre.run(repository, "send", "Bob", "two", "--from", "Alice")  # Bob may not be back yet
    os.kill(theatre.state(repository)["pid"], signal.SIGKILL)
    theatre.run(repository, "restart")
    theatre.run(repository, "send", "Bob", "three", "--from", "Alice")
    until(lambda: len(bob.messages) >= 3, "all arrive")
    assert bob.messages == ["one", "two", "three"]
    assert theatre.json(repository, "up", "--max-attempts", "9")["need_restart"] == []

    (row,) = [row for row in theatre.json(theatre.folder, "ps")["agents"] if row["name"] == "Bob"]
    assert (row["project"], row["pid"], row["running"]) == ("main", bob.process.pid, True)
    assert row["since"] > 0
    refused = theatre.run(repository, "rm", "Bob", status=1).stderr
    assert refused == "agent-relay: Bob is running, so it cannot be removed. Stop it first: agent-relay stop Bob\n"

    said = theatre.run(repository, "down").stdout
    assert "Bob is still running and will reconnect to the next daemon. To stop agents too: agent-relay down --all" in said
    (row,) = theatre.json(theatre.folder, "ps")["agents"]
    assert (row["name"], row["state"], row["pid"]) == ("Bob", "no daemon", bob.process.pid)
    assert bob.process.poll() is None
    assert theatre.json(repository, "down", "--all")["stopped_agents"] == ["Bob"]  # without a daemon, too
    assert bob.wait() is not None
    assert theatre.json(theatre.folder, "ps")["agents"] == []


def test_down_all_stops_agents_first(theatre: Theatre) -> None:
    one = theatre.project("one")
    theatre.run(one, "up", "--no-http")
    bob = theatre.play(one, "Bob")
    until(lambda: "Bob" in theatre.online(one), "Bob is here")
    said = theatre.run(one, "down", "--all").stdout
    assert said.startswith("stopped  Bob\ndown")
    assert bob.wait() is not None
    assert "still" not in said
