"""What is allowed is exact, to the millisecond."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.transports.arc.limits import Bucket, MessageRate, Tries


def test_a_bucket_holds_a_burst_and_refills_evenly() -> None:
    rate = MessageRate(100, 0, 0)
    assert [rate.take(0) for _ in range(100)] == [0] * 100
    assert rate.take(0) == 600  # a hundred a minute
    assert rate.take(599) == 1
    assert rate.take(600) == 0
    assert rate.take(600) == 600


def test_the_hour_counts_beside_the_minute() -> None:
    rate = MessageRate(100, 150, 0)
    taken = sum(rate.take(at) == 0 for at in range(0, 60_000, 100))
    assert taken == 150 + 60_000 * 150 // 3_600_000
    assert rate.take(60_000) > 1_000


def test_without_a_limit_nothing_is_counted() -> None:
    assert [MessageRate(*limits, 0).is_limited for limits in ((0, 0), (1, 0), (0, 1))] == [False, True, True]


def test_what_is_refused_costs_nothing() -> None:
    rate = MessageRate(1, 0, 0)
    assert rate.take(0) == 0
    assert [rate.take(at) for at in (1, 2, 3)] == [59_999, 59_998, 59_997]
    assert rate.take(60_000) == 0


def test_no_limit_at_all() -> None:
    rate = MessageRate(0, 0, 0)
    assert [rate.take(0) for _ in range(10_000)] == [0] * 10_000


@given(count=st.integers(1, 50), times=st.lists(st.integers(0, 120_000), max_size=300).map(sorted))
def test_in_any_span_no_more_than_the_burst_and_what_refilled(count: int, times: list[int]) -> None:
    bucket = Bucket(count, 60_000, 0)
    taken: list[int] = []
    for at in times:
        wait = bucket.wait_ms(at)
        if not wait:
            bucket.take()
            taken.append(at)
        else:
            assert bucket.wait_ms(at + wait - 1) > 0 if wait > 1 else True
    for place, first in enumerate(taken):
        for further, last in enumerate(taken[place:], 1):
            assert further <= count + (last - first) * count / 60_000


def test_tries_are_counted_for_each_address_in_a_window_that_slides() -> None:
    tries = Tries(2, 1_000)
    for at in (0, 600):
        assert tries.wait_ms("a", at) == 0
        tries.add("a", at)
    assert tries.wait_ms("a", 700) == 300
    assert tries.wait_ms("b", 700) == 0
    assert tries.wait_ms("a", 1_000) == 0
    tries.add("a", 1_000)
    assert tries.wait_ms("a", 1_001) == 599


def test_addresses_do_not_pile_up() -> None:
    tries = Tries(1, 1_000)
    for number in range(1_000):
        tries.add(str(number), number * 200)
    assert len(tries._times) <= 5  # those of the last second


def test_of_too_many_addresses_the_one_that_tried_last_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_relay.transports.arc.limits._MOST_KEYS", 3)
    tries = Tries(2, 1_000)
    for at, address in enumerate(("a", "b", "c", "a", "d")):
        tries.add(address, at)
    assert list(tries._times) == ["c", "a", "d"]
    assert (tries.wait_ms("a", 5), tries.wait_ms("b", 5)) == (995, 0)


def test_what_is_taken_back_leaves_nothing_behind() -> None:
    tries = Tries(1, 1_000)
    tries.add("a", 5)
    tries.take_back("a", 5)
    tries.take_back("a", 5)
    tries.add("b", 6)
    assert tries.wait_ms("b", 1_006) == 0
    assert not tries._times
