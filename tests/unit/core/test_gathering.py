"""A batch waits for more in a steady stream, where that brings something, and nowhere else."""

from __future__ import annotations

import pytest

from agent_relay.core.gathering import Gathering
from tests.support.harness import HarnessClient, RelayHarness, connect_pair

SUSTAINED, ENOUGH, LONGEST_REST = 8, 16, 4_096


def make_stream(gathering: Gathering, batches: int = SUSTAINED + 1, apart_ms: int = 1) -> int:
    """Batches of one message; the moment of the last."""
    for number in range(batches):
        gathering.began(1, number * apart_ms)
    return (batches - 1) * apart_ms


def test_a_stream_is_gathered_until_it_is_released() -> None:
    gathering = Gathering()
    now = make_stream(gathering)
    assert gathering.holds(1, now)
    assert gathering.holds(3, now + 1)
    assert gathering.is_holding
    gathering.release()
    assert not gathering.holds(3, now + 1)
    gathering.began(3, now + 1)
    assert not gathering.is_holding
    assert gathering.holds(1, now + 1)


@pytest.mark.parametrize(("batches", "apart_ms"), [(1, 1), (SUSTAINED, 1), (100, 3), (100, 1_000)])
def test_neither_a_lone_message_nor_the_first_of_a_burst_waits(batches: int, apart_ms: int) -> None:
    gathering = Gathering()
    now = make_stream(gathering, batches, apart_ms)
    assert not gathering.holds(1, now)
    assert not gathering.is_holding


def test_a_pause_ends_the_stream() -> None:
    gathering = Gathering()
    now = make_stream(gathering) + 100
    assert not gathering.holds(1, now)
    gathering.began(1, now)
    assert not gathering.holds(1, now)


def test_a_batch_that_is_large_enough_does_not_wait() -> None:
    gathering = Gathering()
    now = make_stream(gathering)
    assert not gathering.holds(ENOUGH, now)
    assert gathering.holds(ENOUGH - 1, now)
    assert not gathering.holds(ENOUGH, now)


def test_after_a_slow_write_nothing_waits_for_it_has_gathered_enough() -> None:
    gathering = Gathering()
    now = make_stream(gathering)
    assert not gathering.holds(1, now + 2)


def test_the_clock_ends_the_waiting_where_nobody_else_does() -> None:
    gathering = Gathering()
    now = make_stream(gathering)
    assert gathering.holds(1, now)
    assert not gathering.holds(1, now + 3)


def test_waiting_in_vain_is_left_out_for_longer_each_time_and_taken_up_again_once_it_brings_something() -> None:
    gathering = Gathering()
    now = make_stream(gathering)
    rests: list[int] = []
    for _ in range(9):
        rest = 0
        while not gathering.holds(1, now):
            gathering.began(1, now)
            rest += 1
        rests.append(rest)
        gathering.release()
        gathering.began(1, now)
    assert rests == [0, 1, 4, 16, 64, 256, 1_024, LONGEST_REST, LONGEST_REST]
    while not gathering.holds(1, now):
        gathering.began(1, now)
    gathering.release()
    gathering.began(2, now)
    assert gathering.holds(1, now)


# --- in the relay -------------------------------------------------------------------------------------------------------


def connect_stream() -> tuple[RelayHarness, HarnessClient, HarnessClient]:
    """One message of Alice's to Bob is held, after others in the same millisecond."""
    relay, alice, bob = connect_pair()
    relay.gathers = True
    while not relay.relay.is_gathering:
        alice.take("ACK")
        bob.take("DELIVER")
        alice.send("Bob", "first")
    return relay, alice, bob


def test_a_held_batch_is_stored_with_what_came_meanwhile_and_nobody_is_told_before() -> None:
    relay, alice, bob = connect_stream()
    batches = len(relay.store.batches)
    alice.send("Bob", "second")
    assert len(relay.store.batches) == batches
    assert not alice.take("ACK", "NACK")
    assert not bob.take("DELIVER")
    relay.turn(relay.relay.gathered)
    assert [len(batch.messages) for batch in relay.store.batches[batches:]] == [2]
    assert len(alice.stored()) == 2
    assert bob.bodies() == ["first", "second"]


def test_a_tick_stores_what_is_held_although_nobody_released_it() -> None:
    relay, _, bob = connect_stream()
    relay.advance(100)
    assert bob.bodies() == ["first"]


def test_what_is_held_when_the_store_gets_into_trouble_is_refused_and_nothing_is_held_on() -> None:
    relay, alice, _ = connect_stream()
    relay.store.trouble = "the disk is gone"
    relay.turn(relay.relay.gathered)
    assert [frame["payload"]["code"] for frame in alice.take("NACK")] == ["SERVICE_UNAVAILABLE"]
    assert not relay.relay.is_gathering
    relay.store.trouble = None
    alice.send("Bob", "after")
    assert len(alice.stored()) == 1


def test_shutting_down_stores_and_answers_what_is_held() -> None:
    relay, alice, bob = connect_stream()
    relay.turn(relay.relay.begin_shutdown)
    assert not relay.relay.settled
    relay.turn(relay.relay.gathered)
    assert relay.relay.settled
    assert len(alice.stored()) == 1
    assert bob.bodies() == ["first"]
