"""Subscriptions and channels: in force at once, durable when they are acknowledged, undone when they cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.testing.harness import HarnessClient, RelayHarness


@pytest.fixture
def relay() -> RelayHarness:
    return RelayHarness()


@pytest.fixture
def alice(relay: RelayHarness) -> HarnessClient:
    return relay.connect("Alice")


@pytest.fixture
def bob(relay: RelayHarness) -> HarnessClient:
    return relay.connect("Bob")


REQUESTS = [
    ("SUBSCRIBE", {"topic": "news.*"}, {"stage": "subscribed", "topic": "news.*"}),
    ("UNSUBSCRIBE", {"topic": "news.*"}, {"stage": "unsubscribed", "topic": "news.*"}),
    ("CHANNEL_JOIN", {"channel": "#dev"}, {"stage": "joined", "channel": "#dev"}),
]


@pytest.mark.parametrize(("kind", "payload", "answer"), REQUESTS)
def test_a_request_is_answered_when_it_is_durable(
    relay: RelayHarness, bob: HarnessClient, kind: str, payload: dict[str, str], answer: dict[str, str]
) -> None:
    relay.store.hold()
    request = bob.say(kind, payload)
    assert not bob.frames
    relay.store.release()
    relay.settle()
    assert bob.payload("ACK") == {"ack_id": request} | answer


@pytest.mark.parametrize(
    ("kind", "payload", "code", "field"),
    [
        ("SUBSCRIBE", {}, "INVALID_FORMAT", "payload.topic"),
        ("SUBSCRIBE", {"topic": ""}, "INVALID_FORMAT", "payload.topic"),
        ("SUBSCRIBE", {"topic": "a.>.b"}, "INVALID_FORMAT", "payload.topic"),
        ("UNSUBSCRIBE", {"topic": "a b"}, "INVALID_FORMAT", "payload.topic"),
        ("CHANNEL_JOIN", {}, "INVALID_FORMAT", "payload.channel"),
        ("CHANNEL_JOIN", {"channel": "dev"}, "INVALID_TARGET", None),
        ("CHANNEL_LEAVE", {"channel": "#"}, "INVALID_TARGET", None),
    ],
)
def test_a_wrong_request_is_named(bob: HarnessClient, kind: str, payload: dict[str, str], code: str, field: str | None) -> None:
    request = bob.say(kind, payload)
    error = bob.payload("ERROR")
    assert (error["code"], error["reply_to"], error["fatal"]) == (code, request, False)
    assert field is None or error["details"]["field"] == field


def test_leaving_a_channel_that_is_none(bob: HarnessClient) -> None:
    bob.say("CHANNEL_LEAVE", {"channel": "#nowhere"})
    assert bob.payload("ERROR")["code"] == "CHANNEL_NOT_FOUND"


def test_a_subscription_ends(alice: HarnessClient, bob: HarnessClient) -> None:
    bob.say("SUBSCRIBE", {"topic": "news"})
    alice.send(topic="news", body="1")
    bob.say("UNSUBSCRIBE", {"topic": "news"})
    alice.send(topic="news", body="2")
    assert bob.bodies() == ["1"]


def test_a_membership_ends_and_the_channel_with_the_last_if_nothing_was_said(alice: HarnessClient, bob: HarnessClient) -> None:
    bob.say("CHANNEL_JOIN", {"channel": "#Dev"})
    bob.say("CHANNEL_LEAVE", {"channel": "#dev"})
    assert [frame["payload"]["channel"] for frame in bob.take("ACK")] == ["#Dev", "#Dev"]
    alice.send("#dev")
    assert alice.payload("NACK")["code"] == "CHANNEL_NOT_FOUND"


def test_a_channel_something_was_said_in_outlives_its_members_and_the_daemon(relay: RelayHarness, bob: HarnessClient) -> None:
    bob.say("CHANNEL_JOIN", {"channel": "#dev"})
    bob.send("#dev", "to nobody")
    bob.say("CHANNEL_LEAVE", {"channel": "#dev"})
    relay.restart()
    alice = relay.connect("Alice")
    alice.send("#dev")
    assert alice.stored()[0]["recipients"] == 0


def test_the_history_of_a_channel_is_noted_once_it_could_be_stored(relay: RelayHarness, bob: HarnessClient) -> None:
    bob.say("CHANNEL_JOIN", {"channel": "#dev"})
    relay.store.fail_next()
    bob.send("#dev", "lost")
    bob.send("#dev", "kept")
    bob.say("CHANNEL_LEAVE", {"channel": "#dev"})
    relay.restart()
    alice = relay.connect("Alice")
    alice.send("#dev")
    assert alice.stored()


# --- a store that fails -------------------------------------------------------------------------------------------


def members(relay: RelayHarness) -> dict[str, Any]:
    bob = relay.relay.registry.agents["bob"]
    return {"subscriptions": set(bob.subscriptions), "channels": set(bob.channels)}


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("SUBSCRIBE", {"topic": "new"}),
        ("SUBSCRIBE", {"topic": "old"}),
        ("UNSUBSCRIBE", {"topic": "old"}),
        ("UNSUBSCRIBE", {"topic": "new"}),
        ("CHANNEL_JOIN", {"channel": "#new"}),
        ("CHANNEL_JOIN", {"channel": "#old"}),
        ("CHANNEL_LEAVE", {"channel": "#old"}),
    ],
)
def test_a_request_that_cannot_be_stored_is_undone(
    relay: RelayHarness, bob: HarnessClient, kind: str, payload: dict[str, str]
) -> None:
    bob.say("SUBSCRIBE", {"topic": "old"})
    bob.say("CHANNEL_JOIN", {"channel": "#old"})
    bob.take()
    before = members(relay)
    relay.store.fail_next()
    request = bob.say(kind, payload)
    refusal = bob.payload("NACK")
    assert (refusal["code"], refusal["nack_id"]) == ("SERVICE_UNAVAILABLE", request)
    assert refusal["retry_after_ms"] > 0
    assert members(relay) == before
    bob.say(kind, payload)
    assert bob.take_one("ACK")


def test_a_channel_that_could_not_be_created_does_not_exist(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    relay.store.fail_next()
    bob.say("CHANNEL_JOIN", {"channel": "#dev"})
    alice.send("#dev")
    assert alice.payload("NACK")["code"] == "CHANNEL_NOT_FOUND"


@pytest.mark.parametrize(("kind", "payload"), [("SUBSCRIBE", {"topic": "t"}), ("CHANNEL_JOIN", {"channel": "#t"})])
def test_the_same_request_again_holds_although_the_first_failed(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient, kind: str, payload: dict[str, str]
) -> None:
    relay.store.hold()
    bob.say(kind, payload)
    bob.say(kind, payload)
    relay.store.fail_next()
    relay.store.release()
    relay.settle()
    assert [frame["type"] for frame in bob.take()] == ["NACK", "ACK"]
    alice.send(**({"to": "#t"} if kind == "CHANNEL_JOIN" else {"topic": "t"}))
    assert len(bob.bodies()) == 1


def test_one_who_left_before_the_answer_keeps_what_was_stored(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    relay.store.hold()
    bob.say("SUBSCRIBE", {"topic": "news"})
    bob.drop()
    relay.store.release()
    relay.settle()
    assert not bob.frames
    again = relay.connect("Bob", token=bob.token)
    alice.send(topic="news")
    assert len(again.bodies()) == 1
