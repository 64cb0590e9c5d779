"""The moment of a turn, ids for the daemon's own frames, and ids and numbers that only ever grow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.core.context import Context, IdSource
from agent_relay.core.limits import Limits
from agent_relay.protocol.ulid import COUNTER_LIMIT, is_ulid, number_of, time_of_number
from tests.support.harness import FixedEntropy, RecordingLog, RelayHarness


def make_context(entropy: FixedEntropy) -> Context:
    return Context(Limits(), entropy, RecordingLog(), 0, 1, 2)


def test_frame_ids_are_unique_within_a_run_and_between_runs() -> None:
    entropy = FixedEntropy()
    runs = [make_context(entropy), make_context(entropy)]
    ids = [context.frame_id() for context in runs for _ in range(1_000)]
    assert len(set(ids)) == len(ids)
    assert max(map(len, ids)) <= 128


def test_everything_said_in_a_turn_carries_the_moment_of_that_turn() -> None:
    relay = RelayHarness()
    alice = relay.connect("Alice")
    relay.advance(12_345)
    alice.say("PING", {"nonce": 1})
    assert alice.take_one("PONG")["ts"] == relay.wall_ms


NOW = 1_800_000_000_000


def test_an_id_holds_its_number_and_its_time() -> None:
    ulid, number = IdSource(FixedEntropy(), 0).reserve(NOW)
    assert is_ulid(ulid)
    assert number_of(ulid) == number
    assert time_of_number(number) == NOW


@given(st.lists(st.tuples(st.integers(-5_000, 5_000), st.integers(1, 300)), max_size=50))
def test_numbers_grow_and_reservations_never_overlap_however_the_clock_jumps(steps: list[tuple[int, int]]) -> None:
    source, wall, used_up_to, last_id = IdSource(FixedEntropy(), 0), NOW, 0, ""
    for jump, count in steps:
        wall += jump
        ulid, number = source.reserve(wall, count)
        assert number > used_up_to
        assert ulid > last_id
        used_up_to, last_id = number + count - 1, ulid


def test_a_full_millisecond_goes_on_in_the_next() -> None:
    source = IdSource(FixedEntropy(), 0)
    source.reserve(NOW, COUNTER_LIMIT - 1)
    _, last = source.reserve(NOW)
    _, first_of_next = source.reserve(NOW)
    assert (time_of_number(last), time_of_number(first_of_next)) == (NOW, NOW + 1)


def test_a_restart_with_an_earlier_clock_goes_on_after_the_last_number() -> None:
    _, before = IdSource(FixedEntropy(), 0).reserve(NOW)
    _, after = IdSource(FixedEntropy(), before).reserve(NOW - 3_600_000)
    assert after > before


def test_the_random_part_differs_between_runs() -> None:
    entropy = FixedEntropy()
    first, second = IdSource(entropy, 0).reserve(NOW)[0], IdSource(entropy, 0).reserve(NOW)[0]
    assert first != second
