"""The topic line of a channel: who sets it, who sees it, and that it lasts."""

from __future__ import annotations

from typing import Any

from agent_relay.ports.callers import Caller
from tests.support.harness import HarnessClient, RelayHarness


def scene() -> tuple[RelayHarness, HarnessClient, HarnessClient]:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    for client in (alice, bob):
        client.connection.process = Caller(agent=client.name)
    alice.say("CHANNEL_JOIN", {"channel": "#dev"})
    alice.take("ACK")
    return relay, alice, bob


def set_line(client: HarnessClient, text: str, channel: str = "#dev") -> dict[str, Any]:
    client.say("CONTROL", {"command": "set_topic_line", "channel": channel, "text": text})
    (frame,) = client.take("ACK", "ERROR")
    payload: dict[str, Any] = frame["payload"]
    return payload


def lines(client: HarnessClient) -> dict[str, str]:
    client.say("LIST_AGENTS", {})
    found: dict[str, str] = client.payload("AGENTS")["server"]["topic_lines"]
    return found


def test_a_member_sets_it_and_everybody_sees_it() -> None:
    _, alice, bob = scene()
    assert set_line(alice, " the new\n parser ", "#DEV")["channel"] == "#dev"
    assert lines(bob) == {"#dev": "the new parser"}


def test_an_agent_that_is_no_member_may_not_and_the_owner_may() -> None:
    relay, _, bob = scene()
    assert set_line(bob, "mine")["code"] == "PERMISSION_DENIED"
    person = relay.connect("Person", mode="observer")
    assert set_line(person, "ours")["stage"] == "controlled"
    assert lines(bob) == {"#dev": "ours"}


def test_it_outlives_the_daemon_and_is_taken_away_by_an_empty_one() -> None:
    relay, alice, _ = scene()
    set_line(alice, "the parser")
    relay.restart()
    person = relay.connect("Person", mode="observer")
    assert lines(person) == {"#dev": "the parser"}
    set_line(person, "")
    assert lines(person) == {}


def test_a_channel_that_is_not_there_and_a_text_that_is_none_are_refused() -> None:
    _, alice, _ = scene()
    assert set_line(alice, "x", "#devs")["details"]["did_you_mean"] == ["#dev"]
    assert set_line(alice, "x" * 201)["code"] == "INVALID_FORMAT"
    assert set_line(alice, "x", "dev")["code"] == "INVALID_TARGET"


def test_a_channel_that_is_gone_has_none() -> None:
    _, alice, bob = scene()
    set_line(alice, "the parser")
    alice.say("CHANNEL_LEAVE", {"channel": "#dev"})
    assert lines(bob) == {}
