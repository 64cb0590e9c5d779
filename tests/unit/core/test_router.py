"""The table of `to`, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import HarnessClient, RelayHarness

NAMES = ("Alice", "Bob", "Carol", "Dave")


@pytest.fixture
def clients(relay: RelayHarness) -> dict[str, HarnessClient]:
    return {name: relay.connect(name) for name in NAMES}


def reached(clients: dict[str, HarnessClient]) -> list[str]:
    return [name for name, client in clients.items() if client.take("DELIVER")]


@pytest.mark.parametrize("to", ["Bob", "bob", "BOB"])
def test_a_name_in_any_case(clients: dict[str, HarnessClient], to: str) -> None:
    clients["Alice"].send(to)
    (deliver,) = clients["Bob"].take("DELIVER")
    assert deliver["to"] == "Bob"
    assert reached(clients) == []


def test_an_offline_agent_gets_it_later(relay: RelayHarness, clients: dict[str, HarnessClient]) -> None:
    clients["Bob"].drop()
    clients["Alice"].send("Bob", "later")
    (answer,) = clients["Alice"].stored()
    assert (answer["recipients"], answer["queued"]) == (1, 1)
    assert relay.connect("Bob", token=clients["Bob"].token).bodies() == ["later"]


def test_a_stranger_is_not_found_and_names_like_it_are_offered(clients: dict[str, HarnessClient]) -> None:
    clients["Alice"].send("Bobb")
    refusal = clients["Alice"].payload("NACK")
    assert refusal["code"] == "AGENT_NOT_FOUND"
    assert refusal["details"]["did_you_mean"][0] == "Bob"
    assert len(refusal["details"]["did_you_mean"]) <= 3


def test_a_broadcast_reaches_the_connected_and_not_its_sender(clients: dict[str, HarnessClient]) -> None:
    clients["Carol"].drop()
    clients["Alice"].send("*")
    (answer,) = clients["Alice"].stored()
    assert (answer["recipients"], answer["queued"]) == (2, 0)
    assert clients["Bob"].frames[-1]["to"] == "*"
    assert reached(clients) == ["Bob", "Dave"]


def test_a_broadcast_with_a_topic_reaches_its_subscribers(clients: dict[str, HarnessClient]) -> None:
    for name in ("Alice", "Carol"):
        clients[name].say("SUBSCRIBE", {"topic": "news.>"})
    clients["Alice"].send("*", topic="news.today")
    assert reached(clients) == ["Carol"]


def test_a_topic_alone_reaches_its_subscribers_while_they_are_here(clients: dict[str, HarnessClient]) -> None:
    for name in ("Alice", "Bob", "Carol"):
        clients[name].say("SUBSCRIBE", {"topic": "news.*"})
    clients["Carol"].drop()
    clients["Alice"].send(topic="news.today")
    (deliver,) = clients["Bob"].take("DELIVER")
    assert (deliver["to"], deliver["topic"]) == ("Bob", "news.today")
    assert clients["Alice"].stored()[0]["recipients"] == 1


def test_a_channel_reaches_its_members_even_those_away(relay: RelayHarness, clients: dict[str, HarnessClient]) -> None:
    for name in ("Alice", "Bob", "Carol"):
        clients[name].say("CHANNEL_JOIN", {"channel": "#dev"})
    clients["Carol"].drop()
    clients["Alice"].send("#DEV", "hi")
    (answer,) = clients["Alice"].stored()
    assert (answer["recipients"], answer["queued"]) == (2, 1)
    assert clients["Bob"].take_one("DELIVER")["to"] == "#dev"
    assert relay.connect("Carol", token=clients["Carol"].token).bodies() == ["hi"]


def test_one_who_is_no_member_may_write_to_a_channel(clients: dict[str, HarnessClient]) -> None:
    clients["Bob"].say("CHANNEL_JOIN", {"channel": "#dev"})
    clients["Alice"].send("#dev")
    assert reached(clients) == ["Bob"]


def test_no_such_channel(clients: dict[str, HarnessClient]) -> None:
    clients["Bob"].say("CHANNEL_JOIN", {"channel": "#development"})
    clients["Alice"].send("#developmen")
    refusal = clients["Alice"].payload("NACK")
    assert (refusal["code"], refusal["details"]["did_you_mean"]) == ("CHANNEL_NOT_FOUND", ["#development"])


def test_a_list_reaches_each_once(clients: dict[str, HarnessClient]) -> None:
    clients["Alice"].send(["Bob", "carol", "BOB"])
    assert clients["Alice"].stored()[0]["recipients"] == 2
    assert [len(clients[name].bodies()) for name in ("Bob", "Carol")] == [1, 1]


def test_a_list_with_a_stranger_reaches_nobody(clients: dict[str, HarnessClient]) -> None:
    clients["Alice"].send(["Bob", "Stranger"])
    refusal = clients["Alice"].payload("NACK")
    assert (refusal["code"], refusal["details"]["name"]) == ("AGENT_NOT_FOUND", "Stranger")
    assert reached(clients) == []


@pytest.mark.parametrize("to", ["Alice", ["Alice", "Bob"]])
def test_one_may_write_to_oneself_by_name(clients: dict[str, HarnessClient], to: Any) -> None:
    clients["Alice"].send(to)
    assert "Alice" in reached(clients)


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({}, "INVALID_FORMAT", "to"),
        ({"to": []}, "INVALID_TARGET", "to"),
        ({"to": "a b"}, "INVALID_TARGET", "to"),
        ({"to": ""}, "INVALID_TARGET", "to"),
        ({"to": ["Bob", "*"]}, "INVALID_TARGET", "to"),
        ({"to": "#"}, "INVALID_TARGET", "to"),
        ({"to": "#a b"}, "INVALID_TARGET", "to"),
        ({"topic": "a.*"}, "INVALID_FORMAT", "topic"),
        ({"topic": "a..b"}, "INVALID_FORMAT", "topic"),
        ({"to": "Bob", "topic": "a b"}, "INVALID_FORMAT", "topic"),
    ],
)
def test_nobody_can_be_meant(clients: dict[str, HarnessClient], fields: dict[str, Any], code: str, field: str) -> None:
    clients["Alice"].send(**fields)
    refusal = clients["Alice"].payload("NACK")
    assert (refusal["code"], refusal["details"]["field"]) == (code, field)
    assert reached(clients) == []


@pytest.mark.parametrize("fields", [{"to": "*"}, {"topic": "nobody.listens"}, {"to": "#mine"}])
def test_nobody_there_is_no_error(fields: dict[str, Any]) -> None:
    alice = RelayHarness().connect("Alice")
    alice.say("CHANNEL_JOIN", {"channel": "#mine"})
    alice.take()
    alice.send(**fields)
    (answer,) = alice.stored()
    assert (answer["recipients"], answer["queued"]) == (0, 0)
