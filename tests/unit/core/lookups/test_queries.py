"""Questions about the relay: who is there, and how it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_relay.version import __version__
from tests.support.harness import HarnessClient, RelayHarness


@pytest.fixture
def bob(relay: RelayHarness) -> HarnessClient:
    return relay.connect("Bob", cli="claude")


def test_agents_are_listed_with_what_they_do(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    relay.connect("Zoe").drop()
    alice.send("Bob")
    alice.send("Zoe")
    alice.take()
    request = alice.say("LIST_AGENTS", {})
    answer = alice.payload("AGENTS")
    assert answer["reply_to"] == request
    assert [(a["name"], a["connected"], a["state"], a["queue_depth"], a["inflight"]) for a in answer["agents"]] == [
        ("Alice", True, "idle", 0, 0),
        ("Bob", True, "working", 0, 1),
        ("Zoe", False, "offline", 1, 0),
    ]
    assert answer["agents"][1]["cli"] == "claude"
    server = answer["server"]
    assert (server["version"], server["connected"], server["accepted"], server["refused"]) == (__version__, 2, 2, 0)
    assert server["storage"]["messages"] == 2


def list_all(client: HarnessClient, max_frame_bytes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Every agent, and the answers they came in, each of which fits into a frame."""
    agents: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    cursor: str | None = None
    while cursor is not None or not answers:
        client.say("LIST_AGENTS", {} if cursor is None else {"cursor": cursor})
        (frame,) = client.take("AGENTS")
        assert len(json.dumps(frame, separators=(",", ":"))) <= max_frame_bytes
        answers.append(frame["payload"])
        agents += frame["payload"]["agents"]
        cursor = frame["payload"]["next_cursor"]
    return agents, answers


def test_many_agents_come_in_answers_that_fit_and_none_is_left_out() -> None:
    relay = RelayHarness(max_frame_bytes=16_384)
    alice = relay.connect("alice")
    names = [f"Agent-{number}" for number in range(100)]
    for name in names:
        relay.connect(name).drop()
    relay.connect("Zoe")
    alice.take()
    agents, answers = list_all(alice, 16_384)
    assert [agent["name"] for agent in agents] == ["alice", "Zoe", *sorted(names, key=str.lower)]
    assert len(answers) > 2
    assert all(answer["server"]["connected"] == 2 for answer in answers)


def test_an_agent_that_says_too_much_of_itself_is_listed_without_it() -> None:
    relay = RelayHarness(max_frame_bytes=16_384)
    alice = relay.connect("Alice")
    relay.connect("Bob", meta={"task": "x" * 15_000})
    relay.connect("Carol", meta={"task": "y"})
    dora = relay.connect("Dora", capabilities={"control": True})
    for number in range(10):
        asked = {"requestId": f"r{number}", "description": "d" * 2_000, "options": ["o" * 200] * 20}
        dora.say("AGENT_EVENT", {"type": "permission.requested", "fields": asked})
    alice.take()
    agents, _ = list_all(alice, 16_384)
    assert [agent["name"] for agent in agents] == ["Alice", "Bob", "Carol", "Dora"]
    assert [agent["meta"] for agent in agents[1:3]] == [{}, {"task": "y"}]
    shown = [request["id"] for request in agents[3]["requests"]]
    assert 0 < len(shown) < 10
    assert shown == [f"r{number}" for number in range(len(shown))]


def test_refusals_are_counted(relay: RelayHarness, alice: HarnessClient) -> None:
    alice.send("Nobody")
    relay.store.fail_next()
    alice.send("Alice")
    assert relay.relay.queries.server()["refused"] == 2
