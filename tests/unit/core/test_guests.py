"""Another user of the machine may exchange messages, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import HarnessClient, RelayHarness

OTHER = 2_000
CONTROL = {"control": True, "events": True}


@pytest.fixture
def relay() -> RelayHarness:
    return RelayHarness(allowed_uids=frozenset({OTHER}))


@pytest.fixture
def bob(relay: RelayHarness) -> HarnessClient:
    client = relay.connect("Bob", capabilities=CONTROL)
    client.say("AGENT_EVENT", {"type": "permission.requested", "fields": {"requestId": "p-1", "description": "Run it?"}})
    client.take()
    return client


@pytest.fixture
def guest(relay: RelayHarness, bob: HarnessClient) -> HarnessClient:
    return relay.connect("Guest", uid=OTHER, capabilities=CONTROL)


DENIED: list[tuple[str, dict[str, Any]]] = [
    *(("CONTROL", {"command": command, "agent": "Bob"}) for command in ("pause", "resume", "interrupt", "stop")),
    ("CONTROL", {"command": "input", "agent": "Bob", "text": "rm -rf /\n"}),
    ("CONTROL", {"command": "approve", "agent": "Bob", "id": "p-1"}),
    ("CONTROL", {"command": "deny", "agent": "Bob", "id": "p-1"}),
    ("CONTROL", {"command": "answer", "agent": "Bob", "id": "q-1", "text": "yes"}),
    ("CONTROL", {"command": "retry_dead_letter", "id": "msg_00000000000000000000000000"}),
    ("SPAWN", {"name": "Eve", "cli": "claude"}),
    ("RELEASE", {"name": "Bob"}),
    ("SUBSCRIBE", {"topic": "$events"}),
    ("HISTORY", {"view": "events"}),
    ("HISTORY", {"view": "conversations"}),
    ("HISTORY", {"view": "dead_letters"}),
    ("HISTORY", {"view": "message", "id": "msg_00000000000000000000000000"}),
    ("HISTORY", {"with": "Bob"}),
    ("AGENT_EVENT", {"type": "tokens.used", "fields": {"model": "m", "inputTokens": 10**9, "outputTokens": 0}}),
    ("AGENT_EVENT", {"type": "permission.requested", "fields": {"requestId": "x", "description": "Click me"}}),
    ("AGENT_EVENT", {"type": "question.requested", "fields": {"questionId": "x", "question": "Your password?"}}),
]


@pytest.mark.parametrize(("kind", "payload"), DENIED, ids=lambda value: str(value)[:60])
def test_what_is_the_owners_is_refused(
    relay: RelayHarness, bob: HarnessClient, guest: HarnessClient, kind: str, payload: Any
) -> None:
    observer = relay.connect("Watcher", uid=OTHER, mode="observer", capabilities=CONTROL)
    for client in (guest, observer):
        request = client.say(kind, payload)
        error = client.payload("ERROR")
        assert (error["code"], error["reply_to"], error["fatal"]) == ("PERMISSION_DENIED", request, False)
        assert client.closed is None
    assert bob.take() == []


def test_messages_go_both_ways(bob: HarnessClient, guest: HarnessClient) -> None:
    guest.send("Bob", "hello")
    assert len(guest.stored()) == 1
    bob.ack(bob.take_one("DELIVER"))
    bob.send("Guest", "hello yourself")
    guest.ack(guest.take_one("DELIVER"))


def test_of_the_history_a_guest_sees_its_own(relay: RelayHarness, bob: HarnessClient, guest: HarnessClient) -> None:
    carol = relay.connect("Carol")
    carol.send("Bob", "a secret")
    guest.send("Bob", "from the guest")
    for asked in ({}, {"with": "guest"}, {"to": "Bob"}, {"between": ["Carol", "Bob"]}, {"search": "secret"}, {"from": "Carol"}):
        guest.take()
        guest.say("HISTORY", asked)
        bodies = [message["payload"]["body"] for message in guest.payload("HISTORY_RESULT")["messages"]]
        assert bodies == (["from the guest"] if asked.keys() <= {"with", "to"} else []), asked
    observer = relay.connect("Watcher", uid=OTHER, mode="observer")
    observer.say("HISTORY", {})
    assert observer.payload("ERROR")["code"] == "PERMISSION_DENIED"


def test_a_guest_is_told_who_is_there_and_no_more(bob: HarnessClient, guest: HarnessClient) -> None:
    guest.say("LIST_AGENTS", {})
    said = guest.payload("AGENTS")
    assert [agent["name"] for agent in said["agents"]] == ["Bob", "Guest"]
    assert set(said["agents"][0]) == {"name", "connected", "state", "cli", "channels"}
    assert (said["sessions"], list(said["server"])) == ([], ["version"])


def test_the_owner_may_all_of_it(relay: RelayHarness, bob: HarnessClient) -> None:
    owner = relay.connect("Owner", mode="observer")
    owner.say("CONTROL", {"command": "pause", "agent": "Bob"})
    assert owner.payload("ACK")["stage"] == "controlled"
    owner.say("LIST_AGENTS", {})
    assert owner.payload("AGENTS")["agents"][0]["requests"]
