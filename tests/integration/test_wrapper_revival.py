"""A wrapper that was killed while its program runs on in tmux: it is seen to be missing, and started again."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.integration.stage import Agent, Stage, Window, until

pytestmark = pytest.mark.terminals
TURNS = [{"when": "", "busy_ms": 10, "say": ["ok"]}]


def wrapper_of(stage: Stage, name: str) -> int:
    """The process that the daemon has for the agent's wrapper; 0: none is connected."""
    agents = json.loads(stage.command("agents", "--json").stdout)["agents"]
    return next((int(agent["meta"]["pid"]) for agent in agents if agent["name"] == name and agent["connected"]), 0)


def kill_wrapper(stage: Stage, agent: Agent) -> int:
    pid = wrapper_of(stage, agent.name)
    os.kill(pid, signal.SIGKILL)
    return pid


def test_an_agent_without_its_wrapper_is_listed_and_attaching_starts_it_again(stage: Stage) -> None:
    bob = stage.start("Bob", "tmux", turns=TURNS)
    assert "wrapper" not in stage.command("agents").stdout
    bob.process.kill()
    bob.process.communicate()
    said = "Bob  runs, but its wrapper has died: agent-relay attach Bob starts it again"
    until(lambda: said in stage.command("agents").stdout, "agents says so")
    doctor = stage.command("doctor")
    assert doctor.returncode == 1
    assert "its wrapper has died, so it gets no messages" in doctor.stdout
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "while nobody wraps it")
        window = Window()
        attached = stage.run(["attach", "Bob", *stage.where], window)
        until(lambda: bob.messages == ["while nobody wraps it"], "it has the message")
        carol.send("Bob", "and later")
        until(lambda: bob.messages == ["while nobody wraps it", "and later"], "it has the second")
    assert said not in stage.command("agents").stdout
    assert len(bob.pids()) == 1
    os.kill(wrapper_of(stage, "Bob"), signal.SIGTERM)
    until(lambda: not bob.pids(), "the program ends with its wrapper")
    attached.communicate(timeout=60)
    window.close()


def test_the_command_that_shows_an_agent_starts_its_wrapper_again(stage: Stage) -> None:
    bob = stage.start("Bob", "tmux", person=True, turns=TURNS)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "before")
        until(lambda: bob.messages == ["before"], "it has the first")
        first = kill_wrapper(stage, bob)
        carol.send("Bob", "after")
        until(lambda: bob.messages == ["before", "after"], "it has the second")
    assert wrapper_of(stage, "Bob") not in {0, first}
    assert bob.process.poll() is None


def test_what_ends_at_once_is_shown_after_its_screen_is_gone(stage: Stage) -> None:
    path = stage.folder / "brief"
    path.write_text("#!/bin/sh\necho 'no licence was found'\nread line\n")
    path.chmod(0o755)
    window = Window()
    process = stage.run(["-n", "Bob", "--backend", "tmux", *stage.where, str(path)], window)
    until(lambda: b"no licence was found" in window.shown, "it is shown in tmux")
    shown = len(window.shown)
    window.type(b"\r")
    process.communicate(timeout=60)
    assert process.returncode == 0
    until(lambda: b"no licence was found" in window.shown[shown:].rpartition(b"\x1b[?1049l")[2], "it stands there afterwards")
    window.close()
