"""Subscriptions and channels: in force at once, durable when they are acknowledged, undone when they cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import HarnessClient, RelayHarness

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


# --- for another agent ------------------------------------------------------------------------------------------------


def test_the_owner_lets_an_agent_join_and_leave_also_while_it_is_away(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient, watcher: HarnessClient
) -> None:
    request = watcher.say("CONTROL", {"command": "join", "agent": "bob", "channel": "#dev"})
    assert watcher.payload("ACK") == {"ack_id": request, "stage": "joined", "channel": "#dev", "by": "Bob"}
    assert not bob.frames
    bob.drop()
    alice.send("#dev")
    again = relay.connect("Bob")
    assert len(again.bodies()) == 1
    watcher.say("CONTROL", {"command": "leave", "agent": "Bob", "channel": "#DEV"})
    assert watcher.payload("ACK")["stage"] == "left"
    alice.send("#dev")
    assert again.bodies() == []


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"command": "join", "channel": "#dev"}, "INVALID_FORMAT"),
        ({"command": "join", "agent": "Bob"}, "INVALID_FORMAT"),
        ({"command": "join", "agent": "Bob", "channel": "dev"}, "INVALID_TARGET"),
        ({"command": "join", "agent": "Nobody", "channel": "#dev"}, "AGENT_NOT_FOUND"),
        ({"command": "leave", "agent": "Bob", "channel": "#dev"}, "CHANNEL_NOT_FOUND"),
    ],
)
def test_what_cannot_be_done_for_another_is_refused(
    bob: HarnessClient, watcher: HarnessClient, asked: dict[str, str], code: str
) -> None:
    request = watcher.say("CONTROL", asked)
    error = watcher.payload("ERROR")
    assert (error["code"], error["reply_to"]) == (code, request)
    assert not bob.frames


def test_an_agent_may_do_it_for_itself_and_not_for_others(relay: RelayHarness, bob: HarnessClient) -> None:
    wrapped = relay.connect("Carol", capabilities={"control": True})
    wrapped.say("CONTROL", {"command": "join", "agent": "Bob", "channel": "#dev"})
    assert wrapped.payload("ERROR")["code"] == "PERMISSION_DENIED"
    wrapped.say("CONTROL", {"command": "join", "agent": "carol", "channel": "#dev"})
    assert wrapped.payload("ACK")["stage"] == "joined"
    assert not bob.frames


# --- by default -------------------------------------------------------------------------------------------------------


def channels_of(relay: RelayHarness, name: str) -> set[str]:
    agent = relay.relay.registry.find(name)
    assert agent is not None
    return set(agent.channels)


def test_a_new_agent_joins_the_default_channels_if_it_asks() -> None:
    relay = RelayHarness(default_channels=("#general", "#news"))
    relay.connect("Raw")
    relay.connect("Bob", join_defaults=True)
    assert channels_of(relay, "Raw") == set()
    assert channels_of(relay, "Bob") == {"#general", "#news"}
    relay.restart()
    assert channels_of(relay, "Bob") == {"#general", "#news"}


def test_what_was_left_is_not_joined_again_over_restarts() -> None:
    relay = RelayHarness(default_channels=("#general",))
    relay.connect("Carol", join_defaults=True)
    bob = relay.connect("Bob", join_defaults=True)
    bob.say("CHANNEL_LEAVE", {"channel": "#general"})
    bob.drop()
    relay.connect("Bob", join_defaults=True).drop()
    relay.restart()
    relay.connect("Bob", join_defaults=True)
    assert (channels_of(relay, "Bob"), channels_of(relay, "Carol")) == (set(), {"#general"})


def test_a_name_that_was_known_before_joins_when_it_first_asks() -> None:
    relay = RelayHarness(default_channels=("#general",))
    relay.connect("Bob").drop()  # a command that sent one message under this name
    assert channels_of(relay, "Bob") == set()
    relay.connect("Bob", join_defaults=True)
    assert channels_of(relay, "Bob") == {"#general"}


def test_other_users_and_relays_without_default_channels_join_nothing() -> None:
    relay = RelayHarness(default_channels=("#general",), allowed_uids=frozenset({77}))
    relay.connect("Guest", uid=77, join_defaults=True)
    assert channels_of(relay, "Guest") == set()
    plain = RelayHarness(default_channels=())
    plain.connect("Bob", join_defaults=True)
    assert channels_of(plain, "Bob") == set()


def test_a_default_channel_that_could_not_be_stored_is_joined_the_next_time() -> None:
    relay = RelayHarness(default_channels=("#general",))
    relay.connect("Bob").drop()
    relay.store.fail_next()
    relay.open().hello("Bob", join_defaults=True)
    assert channels_of(relay, "Bob") == set()
    relay.connect("Bob", join_defaults=True)
    assert channels_of(relay, "Bob") == {"#general"}


def leisurely(relay: RelayHarness, **join: object) -> tuple[HarnessClient, HarnessClient]:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    for client, more in ((alice, {}), (bob, join)):
        client.say("CHANNEL_JOIN", {"channel": "#dev", **more})
        client.take("ACK")
    return alice, bob


def flags(client: HarnessClient) -> list[bool]:
    return [frame["delivery"].get("at_leisure", False) for frame in client.take("DELIVER")]


def test_only_a_mention_wakes_a_member_that_reads_at_leisure(relay: RelayHarness) -> None:
    alice, bob = leisurely(relay, at_leisure=True)
    for body in ("news", "hey @bob", "@all", "@Bobby"):
        alice.send("#dev", body)
    alice.send("Bob", "direct")
    assert flags(bob) == [True, False, False, True, False]
    bob.send("#DEV", "own")
    assert flags(alice) == [False]  # who did not say so is always woken


def test_it_lasts_over_a_reconnect_and_a_restart_until_it_is_taken_back(relay: RelayHarness) -> None:
    alice, bob = leisurely(relay, at_leisure=True)
    bob.say("CHANNEL_JOIN", {"channel": "#dev"})  # once more, and not a word of it: as it was
    assert bob.payload("ACK")["at_leisure"] is True
    token = bob.token
    relay.restart()
    alice, bob = relay.connect("Alice", token=alice.token), relay.open()
    bob.hello("Bob", token=token)
    bob.take("WELCOME")
    alice.send("#dev", "news")
    assert flags(bob) == [True]
    bob.say("CHANNEL_JOIN", {"channel": "#dev", "at_leisure": False})
    alice.send("#dev", "news")
    assert flags(bob) == [False]


def test_leaving_and_joining_again_begins_awake(relay: RelayHarness) -> None:
    alice, bob = leisurely(relay, at_leisure=True)
    bob.say("CHANNEL_LEAVE", {"channel": "#dev"})
    bob.say("CHANNEL_JOIN", {"channel": "#dev"})
    alice.send("#dev", "news")
    assert flags(bob) == [False]
