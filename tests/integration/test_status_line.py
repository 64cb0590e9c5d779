"""The status line at a real terminal: the bar of the agent's tmux, and the title of the person's window."""

from __future__ import annotations

import subprocess

import pytest

from tests.integration.stage import Stage, Window, until

pytestmark = pytest.mark.terminals


def bar(stage: Stage, name: str) -> str:
    """As tmux has it."""
    asked = [*stage.tmux, "show-options", "-v", "-t", f"={name}:", "@agent-relay-status"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def test_the_bar_and_the_title_say_who_it_is_and_what_it_waits_for(stage: Stage) -> None:
    window = Window()
    bob = stage.start("Bob", "tmux", "--status", person=window, turns=[{"when": "", "busy_ms": 10, "say": ["ok"]}])
    until(lambda: bar(stage, "Bob") == "Bob · typing · idle", "the bar says so")
    until(lambda: "Bob · typing · idle".encode() in window.shown, "the person sees it")
    until(lambda: "\x1b]0;Bob · typing · idle".encode() in window.shown, "their window has it for its title")
    stage.daemon.kill()
    until(lambda: bar(stage, "Bob") == "Bob · typing · relay away", "the relay is away")
    until(lambda: b"relay away" in window.shown, "the person sees that too")
    stage.daemon.start()
    until(lambda: bar(stage, "Bob") == "Bob · typing · idle", "it is back")
    assert bob.process.poll() is None


def test_messages_that_wait_are_counted_and_no_bar_is_made_where_none_is_wanted(stage: Stage) -> None:
    stage.start("Bob", "tmux", turns=[])
    stage.start("Carol", "tmux", "--status", turns=[{"when": "work", "busy_ms": 60_000, "say": ["ok"]}])
    with stage.daemon.connect_sync("Dora") as dora:
        dora.send("Carol", "work")
        until(lambda: "working" in bar(stage, "Carol"), "she works")
        for number in range(3):
            dora.send("Carol", f"and {number}")
        until(lambda: bar(stage, "Carol") == "Carol · typing · working, 3 wait", "three wait")
    assert bar(stage, "Bob") == ""
    asked = [*stage.tmux, "show-options", "-Av", "-t", "=Bob:", "status"]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == "off"
