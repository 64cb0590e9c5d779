"""The front: nonsense, heartbeats, frames nobody offers yet, crashes of our own, and stopping."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_relay.protocol.states import CloseReason
from tests.support.harness import HarnessClient, RelayHarness

NONSENSE = [b"", b"\xff\xfe", b"{", b"[]", b"null", b"12"]


@pytest.mark.parametrize("frame", NONSENSE)
def test_nonsense_is_an_error_and_the_twentieth_in_a_row_the_end(alice: HarnessClient, frame: bytes) -> None:
    for _ in range(19):
        alice.say_frames(frame)
    errors = alice.take("ERROR")
    assert [(e["payload"]["code"], e["payload"]["fatal"]) for e in errors] == [("INVALID_FORMAT", False)] * 19
    alice.say_frames(frame, alice.frame("PING", {"nonce": 1}))
    assert alice.payload("ERROR")["fatal"] is True
    assert not alice.frames
    assert alice.closed is CloseReason.TOO_MANY_BAD_FRAMES


def test_a_sound_frame_forgives_the_nonsense_before_it(alice: HarnessClient) -> None:
    for _ in range(5):
        alice.say_frames(*[b"{"] * 19)
        alice.say("PING", {"nonce": 1})
    assert alice.closed is None
    assert len(alice.take("PONG")) == 5


@pytest.mark.parametrize(("field", "value"), [("v", 3), ("v", "2"), ("ts", None), ("id", ""), ("id", "x" * 129), ("payload", [])])
def test_a_mistyped_envelope_is_named(alice: HarnessClient, field: str, value: object) -> None:
    alice.say_frames(alice.message("Alice") | {field: value})
    error = alice.payload("ERROR")
    assert (error["code"], error["details"]["field"], error["fatal"]) == ("INVALID_FORMAT", field, False)
    assert not alice.frames


def test_an_unknown_type_is_named_and_survived(alice: HarnessClient) -> None:
    request = alice.say("TELEPORT", {})
    error = alice.payload("ERROR")
    assert (error["code"], error["details"], error["reply_to"]) == ("FEATURE_UNSUPPORTED", {"type": "TELEPORT"}, request)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("SPAWN", {"name": "X", "cli": "claude"}),
        ("RELEASE", {"name": "X"}),
        ("PROPOSE", {"title": "t", "participants": ["A"]}),
        ("VOTE", {"proposalId": "p", "vote": "approve"}),
        ("AGENT_EVENT", {"type": "x"}),
        ("CONTROL", {"command": "dance"}),
    ],
)
def test_what_is_not_offered_is_said_to_be_so(alice: HarnessClient, kind: str, payload: dict[str, object]) -> None:
    alice.say(kind, payload)
    error = alice.payload("ERROR")
    assert (error["code"], error["fatal"]) == ("FEATURE_UNSUPPORTED", False)


@pytest.mark.parametrize("nonce", [1, "x", None, {"deep": [1]}])
def test_a_ping_comes_back_with_its_nonce(alice: HarnessClient, nonce: object) -> None:
    alice.say("PING", {"nonce": nonce})
    assert alice.payload("PONG")["nonce"] == nonce


def test_a_frame_that_is_too_large_ends_the_connection(relay: RelayHarness, alice: HarnessClient) -> None:
    relay.turn(lambda: relay.relay.oversized(alice.peer, 5_000_000))
    error = alice.payload("ERROR")
    assert (error["code"], error["fatal"], error["details"]["max_frame_bytes"]) == ("MESSAGE_TOO_LARGE", True, 1_048_576)
    assert alice.closed is CloseReason.FRAME_TOO_LARGE


def test_a_failure_of_our_own_tells_no_more_than_its_code(relay: RelayHarness, alice: HarnessClient) -> None:
    relay.turn(lambda: relay.relay.crashed(alice.peer))
    error = alice.payload("ERROR")
    assert (error["code"], error["fatal"], "details" in error) == ("INTERNAL_ERROR", True, False)
    assert alice.closed is CloseReason.INTERNAL_ERROR


def test_bye_is_the_end(relay: RelayHarness, alice: HarnessClient) -> None:
    alice.say("BYE", {"reason": "done"})
    assert alice.closed is CloseReason.CLIENT_BYE
    assert not alice.frames
    assert not relay.relay.registry.connected


# --- heartbeat --------------------------------------------------------------------------------------------------------


def test_silence_is_pinged_once_and_then_the_end() -> None:
    relay = RelayHarness(heartbeat_ms=5_000)
    bob = relay.connect("Bob")
    relay.advance(4_950)
    assert not bob.frames
    relay.advance(700)  # looked at several times a heartbeat, not at every tick
    assert bob.take_one("PING")["payload"]["nonce"]
    relay.advance(4_000)
    assert not bob.take("PING")
    assert bob.closed is None
    relay.advance(1_000)
    assert bob.closed is CloseReason.HEARTBEAT_TIMEOUT


@pytest.mark.parametrize("kind", ["PONG", "ACK", "TELEPORT"])
def test_any_frame_is_a_sign_of_life(kind: str) -> None:
    relay = RelayHarness(heartbeat_ms=5_000)
    bob = relay.connect("Bob")
    for _ in range(10):
        relay.advance(4_000)
        bob.say(kind, {"nonce": 1, "ack_id": "x"})
    assert bob.closed is None
    assert not bob.take("PING")


def test_an_answered_ping_keeps_the_connection_and_the_next_silence_is_pinged_again() -> None:
    relay = RelayHarness(heartbeat_ms=5_000)
    bob = relay.connect("Bob")
    for _ in range(5):
        relay.advance(6_000)
        bob.say("PONG", bob.payload("PING"))
    assert bob.closed is None


def test_bytes_of_a_frame_that_is_not_whole_yet_are_a_sign_of_life_too() -> None:
    relay = RelayHarness(heartbeat_ms=5_000)
    bob = relay.connect("Bob")
    for _ in range(10):
        relay.advance(4_000)
        bob.say_frames()
    assert bob.closed is None


# --- coming, going, stopping --------------------------------------------------------------------------------------------


def test_a_daemon_that_was_stopped_hears_everybody_before_it_gives_anybody_up() -> None:
    relay = RelayHarness(heartbeat_ms=5_000)
    alice, bob, mute = relay.connect("Alice"), relay.connect("Bob"), relay.connect("Mute")
    alice.send("Bob", meta={"ttl_ms": 10_000, "requires_ack": True})
    deliver = bob.take_one("DELIVER")
    relay.pass_by(60_000)
    for client in (alice, bob, mute):
        assert client.closed is None
    bob.ack(deliver)  # this and the next were in the sockets' buffers all the time
    alice.send("Bob", "more")
    relay.advance(4_500)
    assert [receipt["by"] for receipt in alice.delivered()] == ["Bob"]
    assert not alice.take("NACK")
    assert bob.bodies() == ["more"]
    relay.advance(6_500)
    assert mute.closed is CloseReason.HEARTBEAT_TIMEOUT


def test_coming_and_going_is_in_the_log_without_a_token(relay: RelayHarness, alice: HarnessClient) -> None:
    alice.drop()
    (came,) = relay.log.named("connected")
    (went,) = relay.log.named("disconnected")
    assert (came["agent"], went["agent"], went["reason"]) == ("Alice", "Alice", "client_gone")
    assert alice.token not in repr(relay.log.notes)


def test_a_connection_that_ends_twice_ends_once(relay: RelayHarness, alice: HarnessClient) -> None:
    alice.drop()
    alice.drop()
    assert len(relay.log.named("disconnected")) == 1


def test_stopping_stores_and_answers_what_was_accepted_and_refuses_the_rest(relay: RelayHarness, alice: HarnessClient) -> None:
    bob = relay.connect("Bob")
    relay.store.hold()
    alice.send("Bob", "accepted")
    relay.turn(relay.relay.begin_shutdown)
    assert not relay.relay.settled
    alice.send("Bob", "too late")
    assert alice.payload("NACK")["code"] == "SERVICE_UNAVAILABLE"
    newcomer = relay.open()
    newcomer.hello("Carol")
    assert newcomer.payload("ERROR")["code"] == "SERVICE_UNAVAILABLE"
    assert newcomer.closed is not None
    relay.store.release()
    relay.settle()
    assert relay.relay.settled
    assert len(alice.stored()) == 1
    assert bob.bodies() == ["accepted"]


def test_goodbye_is_said_to_everyone_and_what_they_acknowledged_is_kept(relay: RelayHarness, alice: HarnessClient) -> None:
    bob, watcher, silent = relay.connect("Bob"), relay.connect("watcher", mode="observer"), relay.open()
    alice.send("Bob")
    bob.ack(bob.take_one("DELIVER"))
    relay.turn(relay.relay.begin_shutdown)
    relay.turn(relay.relay.say_goodbye)
    for client in (alice, bob, watcher, silent):
        assert client.payload("BYE")["reason"] == "shutdown"
        assert client.closed is CloseReason.SHUTDOWN
    assert relay.relay.settled
    relay.restart()
    assert not relay.connect("Bob", token=bob.token).take("DELIVER")


LONG = "\0" * 200_000  # six times as long where it is shown


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("CONTROL", {"command": LONG, "agent": "Alice"}),
        ("CONTROL", {"command": "pause", "agent": LONG}),
        ("CONTROL", {"command": "retry_dead_letter", "id": LONG}),
        ("HISTORY", {"view": LONG}),
        ("HISTORY", {"view": "message", "id": LONG}),
        ("HISTORY", {"cursor": f"msg_{LONG}"}),
        ("HISTORY", {"view": "events", "types": [LONG]}),
        ("HISTORY", {"view": "events", "cursor": LONG}),
        ("LIST_AGENTS", {"cursor": LONG}),
        ("SUBSCRIBE", {"topic": "$events", "types": [LONG]}),
        ("SUBSCRIBE", {"topic": LONG}),
        ("CHANNEL_JOIN", {"channel": LONG}),
        ("CHANNEL_LEAVE", {"channel": LONG}),
        ("SPAWN", {"name": LONG, "cli": "claude"}),
        ("SPAWN", {"name": "Bob", "cli": LONG}),
        ("RELEASE", {"name": LONG}),
        ("AGENT_EVENT", {"type": LONG}),
        ("AGENT_EVENT", {"type": "message.read", "fields": {"messageId": LONG}}),
        ("SEND", {"body": "x", "kind": LONG}),
        ("RESUME", {"agent": LONG, "resume_token": "x"}),
    ],
)
def test_what_was_said_wrong_is_not_said_back_at_length(relay: RelayHarness, kind: str, payload: dict[str, Any]) -> None:
    client = relay.open() if kind == "RESUME" else relay.connect("Alice")
    client.take()
    client.say(kind, payload, **({"to": "Bob"} if kind == "SEND" else {}))
    assert client.frames
    assert all(len(json.dumps(frame)) < 4_096 for frame in client.take())
