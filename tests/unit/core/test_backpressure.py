"""80 % warns, 100 % refuses, 50 % clears: to the message, for small capacities too."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.ports.connection import FULL_BYTES
from tests.support.harness import HarnessClient, RelayHarness

# capacity → the SEND that is told BUSY, and the depth at which those who were told hear that it is over
NUMBERS = [(1, 1, 0), (2, 2, 1), (5, 4, 2), (10, 8, 5)]


def away(capacity: int) -> tuple[RelayHarness, HarnessClient, HarnessClient]:
    """Alice, and a Bob who is known and not there."""
    relay = RelayHarness(queue_capacity=capacity)
    alice, bob = relay.connect("Alice"), relay.connect("Bob", max_inflight=1)
    bob.drop()
    return relay, alice, bob


def fill(relay: RelayHarness, alice: HarnessClient, count: int) -> list[tuple[int, dict[str, Any]]]:
    """Sends so many; returns the BUSYs, each with the number of the SEND it came with."""
    told = []
    for number in range(1, count + 1):
        alice.send("Bob", str(number))
        told += [(number, frame["payload"]) for frame in alice.take("BUSY")]
    return told


@pytest.mark.parametrize(("capacity", "warn_at", "clear_at"), NUMBERS)
def test_the_warning_comes_with_the_message_that_reaches_four_fifths(capacity: int, warn_at: int, clear_at: int) -> None:
    relay, alice, _ = away(capacity)
    ((number, busy),) = fill(relay, alice, capacity)
    assert number == warn_at
    assert busy["to"] == "Bob"
    assert (busy["queue_depth"], busy["queue_capacity"], busy["accepting"]) == (warn_at, capacity, True)
    assert busy["retry_after_ms"] > 0
    assert busy["estimated_delay_ms"] >= 0
    assert len(alice.stored()) == capacity


@pytest.mark.parametrize(("capacity", "warn_at", "clear_at"), NUMBERS)
def test_exactly_the_capacity_is_taken(capacity: int, warn_at: int, clear_at: int) -> None:
    relay, alice, _ = away(capacity)
    fill(relay, alice, capacity)
    stored = relay.store.stats().messages
    sent = alice.send("Bob", "too many")
    refusal = alice.payload("NACK")
    assert (refusal["code"], refusal["nack_id"], refusal["retryable"]) == ("QUEUE_FULL", sent, True)
    assert refusal["retry_after_ms"] > 0
    assert refusal["details"] == {"to": "Bob", "queue_depth": capacity, "queue_capacity": capacity}
    assert relay.store.stats().messages == stored


@pytest.mark.parametrize(("capacity", "warn_at", "clear_at"), NUMBERS)
def test_it_is_over_at_half(capacity: int, warn_at: int, clear_at: int) -> None:
    relay, alice, bob = away(capacity)
    fill(relay, alice, capacity)
    alice.take()
    bob = relay.connect("Bob", token=bob.token, max_inflight=1)  # one of them is on the wire now and does not count
    depth = capacity - 1
    while depth > clear_at:
        assert not alice.take("BUSY")
        bob.ack(bob.take_one("DELIVER"))
        depth -= 1
    cleared = alice.payload("BUSY")
    assert (cleared["queue_depth"], cleared["accepting"], cleared["cleared"]) == (clear_at, True, True)
    while bob.frames:
        bob.ack(bob.take_one("DELIVER"))
    assert not alice.take("BUSY")


def test_messages_on_the_wire_do_not_count() -> None:
    relay = RelayHarness(queue_capacity=5)
    alice, bob = relay.connect("Alice"), relay.connect("Bob", max_inflight=3)
    told = fill(relay, alice, 8)
    assert [(number, busy["queue_depth"]) for number, busy in told] == [(7, 4)]
    alice.send("Bob")
    assert alice.payload("NACK")["code"] == "QUEUE_FULL"
    assert len(bob.bodies()) == 3


def test_what_is_still_being_stored_counts() -> None:
    relay, alice, _ = away(2)
    relay.store.hold()
    for _ in range(3):
        alice.send("Bob")
    assert [frame["type"] for frame in alice.take()] == ["BUSY", "NACK"]
    relay.store.release()
    relay.settle()
    assert len(alice.stored()) == 2


def test_a_store_that_fails_gives_the_place_back_and_says_so() -> None:
    relay, alice, _ = away(1)
    relay.store.fail_next()
    alice.send("Bob")
    frames = alice.take()
    assert [frame["type"] for frame in frames] == ["BUSY", "NACK", "BUSY"]
    assert frames[2]["payload"]["cleared"] is True
    assert [number for number, _ in fill(relay, alice, 1)] == [1]


def test_every_sender_is_told_once_per_crossing() -> None:
    relay, alice, bob = away(5)
    carol = relay.connect("Carol")
    deaf = relay.connect("Deaf", capabilities={"backpressure": False})
    fill(relay, alice, 4)
    carol.send("Bob")
    deaf.send("Bob")
    assert len(carol.take("BUSY")) == 1
    assert not deaf.take("BUSY")
    bob = relay.connect("Bob", token=bob.token, max_inflight=100)
    assert [frame["payload"]["cleared"] for frame in alice.take("BUSY") + carol.take("BUSY")] == [True, True]
    bob.drop()
    relay.advance(200)
    carol.send("Bob")
    assert len(carol.take("BUSY")) == 1


def test_a_sender_that_has_gone_is_not_told() -> None:
    relay, alice, bob = away(5)
    fill(relay, alice, 5)
    alice.drop()
    relay.connect("Bob", token=bob.token)
    assert not relay.connect("Alice", token=alice.token).take("BUSY")


def test_a_broadcast_skips_the_full_ones_and_names_them() -> None:
    relay = RelayHarness(queue_capacity=1)
    alice, bob, carol = relay.connect("Alice"), relay.connect("Bob", max_inflight=1), relay.connect("Carol")
    alice.send("Bob", "on the wire")
    alice.send("Bob", "waits")
    alice.take()
    alice.send("*", "all")
    (answer,) = alice.stored()
    assert (answer["recipients"], answer["skipped"]) == (1, ["Bob"])
    assert carol.bodies() == ["all"]
    bob.ack(bob.take_one("DELIVER"))
    waits = bob.take_one("DELIVER")
    bob.ack(waits)
    alice.send("Bob", "after")
    after = bob.take_one("DELIVER")
    assert (waits["delivery"]["seq"], after["delivery"]["seq"], "prev_seq" in after["delivery"]) == (2, 3, False)


def test_a_broadcast_whose_every_recipient_is_full_reaches_nobody() -> None:
    relay = RelayHarness(queue_capacity=1)
    alice = relay.connect("Alice")
    relay.connect("Bob", max_inflight=1)
    for _ in range(2):
        alice.send("Bob")
    alice.take()
    alice.send("*")
    (answer,) = alice.stored()
    assert (answer["recipients"], answer["skipped"]) == (0, ["Bob"])


def test_a_list_with_one_full_name_is_refused_whole() -> None:
    relay, alice, _ = away(1)
    carol = relay.connect("Carol")
    fill(relay, alice, 1)
    alice.take()
    alice.send(["Carol", "Bob"])
    assert alice.payload("NACK")["details"]["to"] == "Bob"
    assert not carol.take("DELIVER")
    alice.send("Carol", "still room")
    assert carol.bodies() == ["still room"]


def test_bytes_are_a_limit_too() -> None:
    relay = RelayHarness(queue_bytes=100_000)
    alice = relay.connect("Alice")
    relay.connect("Bob").drop()
    alice.send("Bob", "x" * 90_000)
    alice.send("Bob", "y" * 20_000)
    assert alice.payload("NACK")["code"] == "QUEUE_FULL"
    alice.send("Bob", "z" * 5_000)
    assert len(alice.stored()) == 2


def test_one_message_larger_than_the_bytes_allowed_is_taken_by_an_empty_queue() -> None:
    relay = RelayHarness(queue_bytes=1_000)
    alice = relay.connect("Alice")
    relay.connect("Bob").drop()
    alice.send("Bob", "x" * 5_000)
    assert len(alice.stored()) == 1


def test_a_reader_that_does_not_read_counts_as_away() -> None:
    relay = RelayHarness(queue_capacity=2)
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    bob.stall(FULL_BYTES + 1)
    for _ in range(3):
        alice.send("Bob")
    assert alice.payload("NACK")["code"] == "QUEUE_FULL"


def test_the_estimate_follows_how_long_acknowledgements_take() -> None:
    relay = RelayHarness(queue_capacity=100)
    alice, bob = relay.connect("Alice"), relay.connect("Bob", max_inflight=1)
    fill(relay, alice, 50)
    for _ in range(40):
        deliver = bob.take_one("DELIVER")
        relay.advance(1_000)
        bob.ack(deliver)
    ((number, busy),) = fill(relay, alice, 80)
    assert (number, busy["queue_depth"]) == (71, 80)  # 9 were left, and one of them is on the wire
    assert 60_000 < busy["estimated_delay_ms"] < 100_000
    assert busy["retry_after_ms"] == 30_000
