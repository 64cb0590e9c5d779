"""Why an agent gets no messages, as the daemon says it: the reason that has to end first."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.ports.connection import FULL_BYTES
from tests.support.harness import HarnessClient, RelayHarness

WRAPPED = {"control": True}


@pytest.fixture
def relay() -> RelayHarness:
    return RelayHarness(loop_slow_after=2, loop_hold_after=3, owner="Anna")


@pytest.fixture
def bob(relay: RelayHarness) -> HarnessClient:
    return relay.connect("Bob", capabilities=WRAPPED)


def state(client: HarnessClient, state: str = "idle", **fields: Any) -> None:
    client.say("AGENT_EVENT", {"type": "agent.state", "fields": {"state": state, **fields}})


def hold_of(relay: RelayHarness, name: str = "Bob") -> dict[str, Any] | None:
    looker = relay.open()
    looker.hello("looker", mode="observer")
    looker.say("LIST_AGENTS", {})
    hold: dict[str, Any] | None = next(a["hold"] for a in looker.payload("AGENTS")["agents"] if a["name"] == name)
    looker.drop()
    return hold


def test_nothing_holds_an_idle_agent(relay: RelayHarness, bob: HarnessClient) -> None:
    state(bob)
    assert hold_of(relay) is None


def test_offline_since(relay: RelayHarness, bob: HarnessClient) -> None:
    bob.drop()
    since = relay.wall_ms
    relay.advance(60_000)
    assert hold_of(relay) == {"reason": "offline", "since": since}


def test_paused_by_whom(relay: RelayHarness, bob: HarnessClient) -> None:
    owner = relay.open()
    owner.hello("looker", mode="observer")
    owner.say("CONTROL", {"command": "pause", "agent": "Bob"})
    assert bob.payload("CONTROL") == {"command": "pause", "by": "Anna"}
    state(bob, paused=True, pausedBy="Anna")
    assert hold_of(relay) == {"reason": "paused", "by": "Anna"}
    state(bob, paused=True, keyboard=True)
    assert hold_of(relay) == {"reason": "keyboard"}


def test_a_dialog_and_how_to_answer_it(relay: RelayHarness, bob: HarnessClient) -> None:
    state(bob, "waiting", waitingFor="a permission", hold="typing")
    assert hold_of(relay) == {"reason": "dialog", "detail": "a permission"}
    fields = {"requestId": "3f9c2a11aa", "description": "may I?", "tool": "bash", "command": "make"}
    bob.say("AGENT_EVENT", {"type": "permission.requested", "fields": fields})
    assert hold_of(relay) == {"reason": "dialog", "detail": "a permission", "request": "3f9c2a11aa", "kind": "permission"}


def test_what_the_wrapper_sees(relay: RelayHarness, bob: HarnessClient) -> None:
    state(bob, "starting", hold="prompt", holdDetail="its prompt is not to be seen")
    assert hold_of(relay) == {"reason": "prompt", "detail": "its prompt is not to be seen"}


@pytest.mark.parametrize(("doing", "reason"), [("working", "working"), ("starting", "starting"), ("idle", "unacknowledged")])
def test_what_ends_by_itself_is_said_where_something_waits(
    relay: RelayHarness, bob: HarnessClient, doing: str, reason: str
) -> None:
    state(bob, doing)
    assert hold_of(relay) is None
    relay.connect("Alice").send("Bob", "x")
    assert hold_of(relay) == {"reason": reason}


def test_one_that_reports_nothing(relay: RelayHarness) -> None:
    relay.connect("Carol")
    alice = relay.connect("Alice")
    assert hold_of(relay, "Carol") is None
    alice.send("Carol", "x")
    assert hold_of(relay, "Carol") == {"reason": "unacknowledged"}


def test_one_that_does_not_read(relay: RelayHarness) -> None:
    carol = relay.connect("Carol")
    carol.stall(FULL_BYTES + 1)
    relay.connect("Alice").send("Carol", "x")
    assert hold_of(relay, "Carol") == {"reason": "not_reading"}


def test_the_loop_guard(relay: RelayHarness, bob: HarnessClient) -> None:
    alice = relay.connect("Alice", capabilities=WRAPPED)
    state(bob)
    for hop in range(3):
        speaker, listener = (alice, bob) if hop % 2 == 0 else (bob, alice)
        speaker.send(listener.name, f"hop {hop}")
        relay.advance(30_000)
        for deliver in listener.take("DELIVER"):
            listener.ack(deliver)
    assert hold_of(relay) == {"reason": "loop_guard", "count": 3}
    relay.connect("Person").send("Bob", "news")
    assert hold_of(relay) != {"reason": "loop_guard", "count": 3}
