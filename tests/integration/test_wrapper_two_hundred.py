"""Two agents send each other two hundred messages: each arrives once, in order, and not a byte while a dialog is open.

Four kinds of programs: those that queue what is typed while they work (with Enter, or with Tab), and those that must not
be typed at; on the plain and the alternate screen; some draw so slowly that the screen is empty for a while. Dialogs
open when a message was submitted, and between a paste and its Enter, and close by themselves.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.stage import Agent, Stage, until

pytestmark = [pytest.mark.terminals, pytest.mark.longest, pytest.mark.timeout(600)]

COUNT = 200
DEADLINE_S = 540.0  # typing takes nearly a second a message, and more on a loaded machine
WORDS = [f"word {number}" for number in range(1, COUNT + 1)]
ASKING = range(15, COUNT, 40)  # words that start work which asks
ASKED_AT = range(30, COUNT, 40)  # pastes that are taken in as a dialog opens

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "queues-slow-tmux": ("tmux", {"look": "claude", "redraw_ms": 40}),
    "queues-with-tab-pty": ("pty", {"look": "codex", "queueing": False}),
    "queues-alternate-tmux": ("tmux", {"look": "claude", "alternate": True}),
    "waits-slow-pty": ("pty", {"queueing": False, "redraw_ms": 40}),
}


def scene(other: str, *, line_ms: int) -> dict[str, Any]:
    dialog = {"close_ms": 900}
    asking = "|".join(map(str, ASKING))
    turns = [
        {"when": r"\]: begin", "busy_ms": 50, "line_ms": line_ms, "say": [f"->relay:{other} {word}" for word in WORDS]},
        {"when": rf"word (?:{asking})$", "busy_ms": 50, "dialog": dialog, "say": ["done"]},
        {"when": "word", "busy_ms": 200, "say": ["noted"]},
    ]
    return {"turns": turns, "at_paste": {str(number): dialog for number in ASKED_AT}}


@pytest.mark.parametrize("kind", KINDS)
def test_two_hundred_messages_each_way_once_and_in_order_and_nothing_into_a_dialog(stage: Stage, kind: str) -> None:
    backend, script = KINDS[kind]
    line_ms = 100 if "alternate" in script else 30  # what scrolls off that screen before anybody has looked is gone for ever
    pairs = (("Alice", "Bob"), ("Bob", "Alice"))
    agents = [stage.start(name, backend, **scene(other, line_ms=line_ms), **script) for name, other in pairs]
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send(["Alice", "Bob"], "begin")
    until(lambda: all(len(agent.messages) > COUNT for agent in agents), "all are taken", DEADLINE_S)
    for agent in agents:
        stage.settled(agent.name, COUNT + 1)
        assert [text for text in agent.messages if text != "begin"] == WORDS
        check_record(agent)


def check_record(agent: Agent) -> None:
    assert agent.messages.count("begin") == 1
    assert [event["mode"] for event in agent.events("mode")].count("dialog") == len(ASKING) + len(ASKED_AT)
    assert agent.bytes_in("dialog") == b""
    assert agent.events("aborted") == []
    assert len(agent.submitted) == COUNT + 1  # no notice, nothing that was cut in two
