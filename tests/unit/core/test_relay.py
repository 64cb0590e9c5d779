"""The front: heartbeats, crashes of our own, coming, going, and stopping."""

from __future__ import annotations

import pytest

from agent_relay.protocol.states import CloseReason
from tests.support.harness import HarnessClient, RelayHarness


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


@pytest.mark.parametrize("kind", ["message", "question"])
def test_what_is_repeated_while_the_daemon_stops_is_answered_as_it_was(
    relay: RelayHarness, alice: HarnessClient, kind: str
) -> None:
    """A client repeats what it has no answer to. While the store is slow, it is not known what became of the first."""
    bob = relay.connect("Bob")
    stored = alice.message("Bob", "stored", meta={"requires_ack": True} if kind == "question" else None)
    alice.say_frames(stored)
    relay.settle()
    alice.take()
    relay.store.hold()
    waits = alice.message("Bob", "under way", meta={"requires_ack": True} if kind == "question" else None)
    alice.say_frames(waits)
    relay.turn(relay.relay.begin_shutdown)
    alice.say_frames(stored, waits)
    assert not alice.take("NACK")
    relay.store.release()
    relay.settle()
    assert sorted(answer["ack_id"] for answer in alice.stored()) == sorted([stored["id"], waits["id"], waits["id"]])
    assert bob.bodies() == ["stored", "under way"]


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
