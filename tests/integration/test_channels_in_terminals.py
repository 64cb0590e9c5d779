"""Channels and shadows among agents in real terminals: who is woken, who gets a copy, and what people see of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.stage import DEADLINE_S, Stage, until

pytestmark = pytest.mark.terminals


@pytest.fixture
def shadowed(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, "--shadows=Auditor:Alice")
    yield made
    made.close()


def test_a_mention_wakes_a_member_and_brings_what_waited_at_leisure(stage: Stage) -> None:
    bob, carol = (stage.start(name, "tmux", turns=[]) for name in ("Bob", "Carol"))
    for words in (("Bob", "--at-leisure"), ("Carol",)):
        done = stage.command("join", "dev", "--as", *words)
        assert done.returncode == 0, done.stderr
    assert stage.command("topic", "dev", "The new parser").returncode == 0
    listed = json.loads(stage.command("channels", "--json").stdout)["channels"]
    assert [each["topic_line"] for each in listed if each["name"] == "#dev"] == ["The new parser"]
    with stage.daemon.connect_sync("Dave") as dave:
        dave.join("#dev")
        dave.send("#dev", "the build is green")
        until(lambda: carol.messages == ["the build is green"], "Carol is woken", DEADLINE_S)
        waits = until(lambda: (found := dave.agents().find("Bob")) and found.hold, "Bob's wrapper says why", DEADLINE_S)
        assert waits.reason == "leisure"
        assert bob.messages == []
        dave.send("#dev", "@Bob please review")
        until(lambda: len(bob.messages) == 2, "Bob is woken", DEADLINE_S)
    assert bob.messages == ["the build is green", "@Bob please review"]
    stage.settled("Bob", 2)


def test_a_shadow_in_a_terminal_gets_marked_copies_and_its_answers_are_nobodys(shadowed: Stage) -> None:
    stage = shadowed
    turns = [{"when": r"from (\S+) \[\w+\].*: ready\?", "busy_ms": 50, "say": [r"->relay:\1 quite ready"]}]
    alice = stage.start("Alice", "tmux", turns=turns)
    auditor = stage.start("Auditor", "tmux", turns=[{"when": r"\[copy.*: ready\?", "busy_ms": 20, "say": ["Noted."]}])
    until(lambda: any("Auditor gets a copy" in text for text in alice.submitted), "Alice is told", DEADLINE_S)
    until(lambda: any("You get a copy" in text for text in auditor.submitted), "Auditor is told", DEADLINE_S)
    with stage.daemon.connect_sync("Carol") as carol:
        assert carol.request("Alice", "ready?", timeout=DEADLINE_S).body == "quite ready"
        shown = carol.history(to="Alice").messages[0]
        copies = until(lambda: [text for text in auditor.submitted if "[copy" in text], "the copies came", DEADLINE_S)
        assert "Relay message from Carol" in copies[0]
        assert "[copy, sent to Alice]: ready?" in copies[0]
        assert "is waiting for your" not in copies[0]
        until(lambda: len([text for text in auditor.submitted if "[copy, sent to Carol]: quite ready" in text]) == 1, "both ways")
    explained = stage.command("explain", shown["message_id"])
    assert "1 recipient, 1 copy" in explained.stdout
    assert "Auditor  copy for a shadow" in explained.stdout
