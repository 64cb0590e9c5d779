"""Wire contract, section 6: windows, queues, BUSY, and readers that do not read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient

from .conftest import StartRelay
from .relay import Relay, bodies, calm_flags, pass_time, seqs

CAPACITY = 10


@pytest.fixture(scope="module")
def small_daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(*calm_flags("--queue-capacity", str(CAPACITY))) as daemon:
        yield daemon


@pytest.fixture
def small(small_daemon: DaemonProcess) -> Iterator[Relay]:
    relay = Relay(small_daemon)
    yield relay
    relay.close()


def fill(sender: RawClient, to: str, count: int) -> None:
    for _ in range(count):
        sender.send_stored(to, "filling")


def drain(client: RawClient, count: int) -> None:
    """Takes and acknowledges so many, and the daemon knows it."""
    client.deliveries(count)
    client.flush()


# --- the window ----------------------------------------------------------------------------------------------------


def test_no_more_than_the_own_max_inflight_is_on_the_wire(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob", capabilities={"max_inflight": 3})
    for number in range(8):
        alice.send_stored(bob.name, str(number))
    window = bob.deliveries(3, ack=False)
    bob.expect_none("DELIVER")
    bob.ack(window[1])
    assert bodies(bob.deliveries(1, ack=False)) == ["3"]
    bob.expect_none("DELIVER")
    bob.ack(window[0])
    bob.ack(window[2])
    assert bodies(bob.deliveries(2, ack=False)) == ["4", "5"]


def test_the_servers_max_inflight_is_the_upper_bound(start_relay: StartRelay) -> None:
    relay = start_relay("--max-inflight", "4")
    alice = relay.join("Alice", auto_ack=True)
    for asked in ({"max_inflight": 100}, {"max_inflight": None}):
        bob = relay.join("Bob", capabilities=asked)
        for _ in range(6):
            alice.send_stored(bob.name, "x")
        bob.deliveries(4, ack=False)
        bob.expect_none("DELIVER")


def test_the_window_is_full_again_after_a_reconnect(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob", capabilities={"max_inflight": 2})
    for number in range(4):
        alice.send_stored(bob.name, str(number))
    bob.deliveries(2, ack=False)
    relay.cut(bob)
    again = relay.rejoin(bob.name, token=bob.token, capabilities={"max_inflight": 2})
    assert bodies(again.deliveries(2, ack=False)) == ["0", "1"]
    again.expect_none("DELIVER")


# --- a full queue --------------------------------------------------------------------------------------------------


def test_a_full_queue_refuses_and_stores_nothing(small: Relay) -> None:
    """Messages on the wire do not count."""
    alice, bob = small.join("Alice"), small.join("Bob", capabilities={"max_inflight": 2})
    for number in range(CAPACITY + 2):
        alice.send_stored(bob.name, str(number))
    refused = alice.message(bob.name, "one too many")
    alice.write_frame(refused)
    refusal = alice.refused(refused["id"], "QUEUE_FULL")
    assert refusal["retryable"] is True
    assert refusal["retry_after_ms"] >= 0
    found = bob.deliveries(CAPACITY + 2)
    assert bodies(found) == [str(number) for number in range(CAPACITY + 2)]
    bob.flush()
    bob.expect_none("DELIVER")
    alice.write_frame(refused)
    assert not alice.stored(refused["id"]).get("duplicate")
    (deliver,) = bob.deliveries(1)
    assert (deliver["payload"]["body"], deliver["delivery"]["seq"]) == ("one too many", CAPACITY + 3)


def test_the_capacity_is_the_same_while_the_recipient_is_away(small: Relay) -> None:
    alice, away = small.join("Alice"), small.offline()
    fill(alice, away, CAPACITY)
    alice.refused(alice.send(away, "too many"), "QUEUE_FULL")
    assert seqs(small.rejoin(away).deliveries(CAPACITY)) == list(range(1, CAPACITY + 1))


def test_a_list_with_one_full_recipient_is_refused_whole(small: Relay) -> None:
    alice, bob, away = small.join("Alice"), small.join("Bob"), small.offline()
    fill(alice, away, CAPACITY)
    alice.refused(alice.send([bob.name, away], "both or none"), "QUEUE_FULL")
    alice.send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]


def test_a_broadcast_skips_full_recipients_and_names_them(small: Relay) -> None:
    alice, bob = small.join("Alice"), small.join("Bob")
    stuck = small.join("Stuck", capabilities={"max_inflight": 1})
    fill(alice, stuck.name, CAPACITY + 1)
    ack = alice.send_stored("*", "to those who can")
    assert ack["recipients"] == 1
    assert ack["skipped"] == [stuck.name]
    assert bodies(bob.deliveries(1)) == ["to those who can"]
    assert bodies(stuck.deliveries(CAPACITY + 1)) == ["filling"] * (CAPACITY + 1)
    stuck.flush()
    free = alice.send_stored("*", "everyone")
    assert free["recipients"] == 2
    assert not free.get("skipped")
    (deliver,) = stuck.deliveries(1)
    assert deliver["payload"]["body"] == "everyone"
    assert deliver["delivery"]["seq"] == CAPACITY + 2


def test_one_full_recipient_is_nobody_elses_problem(small: Relay) -> None:
    alice, bob, away = small.join("Alice"), small.join("Bob", auto_ack=True), small.offline()
    fill(alice, away, CAPACITY)
    for _ in range(3 * CAPACITY):
        alice.send_stored(bob.name, "x")
    bob.deliveries(3 * CAPACITY)


# --- BUSY ----------------------------------------------------------------------------------------------------------


def busies(client: RawClient) -> list[dict[str, Any]]:
    client.flush()
    return [frame["payload"] for frame in client.listen(0, "BUSY")]


def fill_until_busy(sender: RawClient, to: str) -> dict[str, Any]:
    """Sends until BUSY comes; it must be at the message that fills the queue to 80 %, or the first one after."""
    for number in range(1, CAPACITY + 1):
        sender.send_stored(to, "filling")
        if found := busies(sender):
            assert len(found) == 1
            assert number in (8, 9)
            return found[0]
    raise AssertionError("no BUSY until the queue was full")


def test_a_sender_is_told_once_that_a_queue_is_four_fifths_full(small: Relay) -> None:
    alice, away = small.join("Alice"), small.offline()
    busy = fill_until_busy(alice, away)
    assert (busy["to"], busy["queue_capacity"], busy["accepting"]) == (away, CAPACITY, True)
    assert 8 <= busy["queue_depth"] <= 9
    assert not busy.get("cleared")
    fill(alice, away, CAPACITY - busy["queue_depth"])
    alice.refused(alice.send(away, "too many"), "QUEUE_FULL")
    assert busies(alice) == []


def test_every_sender_is_told_at_its_own_first_send_above(small: Relay) -> None:
    alice, carol, away = small.join("Alice"), small.join("Carol"), small.offline()
    fill(alice, away, 8)
    carol.send_stored(away, "mine")
    (busy,) = busies(carol)
    assert (busy["to"], busy["accepting"]) == (away, True)
    assert busy["queue_depth"] >= 8
    dave = small.join("Dave")
    alice.send_stored(away, "the tenth")
    dave.refused(dave.send(away, "too many"), "QUEUE_FULL")
    (late,) = busies(dave)
    assert late["accepting"] is False
    carol.refused(carol.send(away, "too many"), "QUEUE_FULL")
    assert busies(carol) == []


def test_a_sender_without_the_capability_is_never_told(small: Relay) -> None:
    plain, away = small.join("Plain", capabilities={"backpressure": False}), small.offline()
    fill(plain, away, CAPACITY)
    plain.refused(plain.send(away, "too many"), "QUEUE_FULL")
    drain(small.rejoin(away), CAPACITY)
    assert busies(plain) == []


def test_those_who_were_told_are_told_when_half_is_free(small: Relay) -> None:
    alice, carol, bob = small.join("Alice"), small.join("Carol"), small.join("Bob", capabilities={"max_inflight": 1})
    carol.send_stored(bob.name, "early, when there was room")
    for _ in range(CAPACITY):
        alice.send_stored(bob.name, "filling")
    assert len(busies(alice)) == 1
    taken, found = 0, busies(alice)
    while not found:
        assert taken < CAPACITY, "never cleared"
        drain(bob, 1)
        taken, found = taken + 1, busies(alice)
    (cleared,) = found
    assert (cleared["to"], cleared["accepting"], cleared["cleared"]) == (bob.name, True, True)
    assert (cleared["queue_depth"], taken) == (5, 5)  # ten waited: neither earlier nor later
    assert busies(carol) == []
    drain(bob, CAPACITY + 1 - taken)
    assert busies(alice) == []


def test_each_crossing_is_told_anew(small: Relay) -> None:
    alice, bob = small.join("Alice"), small.join("Bob", capabilities={"max_inflight": 1})
    for _ in range(3):
        fill(alice, bob.name, CAPACITY)
        told = busies(alice)
        assert [bool(busy.get("cleared")) for busy in told] == [False]
        drain(bob, CAPACITY)
        assert [bool(busy.get("cleared")) for busy in busies(alice)] == [True]


def test_between_half_and_four_fifths_nothing_is_said(small: Relay) -> None:
    alice, bob = small.join("Alice"), small.join("Bob", capabilities={"max_inflight": 1})
    fill(alice, bob.name, 1 + 7)
    for _ in range(6):
        drain(bob, 1)
        alice.send_stored(bob.name, "one in, one out")
    assert busies(alice) == []


# --- readers that do not read --------------------------------------------------------------------------------------

CHUNK = "x" * 500_000


def test_a_reader_that_does_not_read_disturbs_nobody_and_loses_nothing(start_relay: StartRelay) -> None:
    relay = start_relay("--slow-consumer-ms", "700")
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    for number in range(24):  # 12 MB, three times what may wait in the daemon for one connection
        alice.send_stored(bob.name, CHUNK, payload={"thread": str(number)})
        alice.send_stored(carol.name, str(number))
        assert bodies(carol.deliveries(1)) == [str(number)]
    relay.wait_offline(bob.name)  # closed by the daemon; Bob has not read a byte
    again = relay.rejoin(bob.name, token=bob.token)
    found = again.deliveries(24)
    assert [frame["payload"]["thread"] for frame in found] == [str(number) for number in range(24)]
    assert seqs(found) == list(range(1, 25))


def test_a_slow_reader_that_makes_progress_is_kept(start_relay: StartRelay) -> None:
    relay = start_relay("--slow-consumer-ms", "2000")
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for number in range(16):
        alice.send_stored(bob.name, CHUNK, payload={"thread": str(number)})
    for _ in range(5):  # slower than the daemon would like, for longer than it would wait for no progress at all
        bob.deliveries(1)
        pass_time(0.5)
    found = bob.deliveries(11)
    assert not bob.ended
    assert seqs(found) == list(range(6, 17))
