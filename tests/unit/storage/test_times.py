from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.ulid import COUNTER_LIMIT, EPOCH_MS, encode_number
from agent_relay.storage.times import LARGEST, first_number_since, fit, lag_of, last_number_before

moments = st.integers(EPOCH_MS, EPOCH_MS + 2**42)


@given(moments, st.integers(0, 10_000), st.integers(0, COUNTER_LIMIT - 1), moments)
def test_every_number_of_a_moment_lies_in_the_ranges_that_hold_the_moment(ts: int, lag_ms: int, counter: int, edge: int) -> None:
    number = encode_number(ts + lag_ms, counter)
    assert lag_of(number, ts) == lag_ms
    if ts >= edge:
        assert number >= first_number_since(edge)
    else:
        assert number <= last_number_before(edge, lag_ms)


@given(st.integers())
def test_any_integer_fits(number: int) -> None:
    assert -LARGEST <= fit(number) <= LARGEST
    for value in (first_number_since(number), last_number_before(number, 0)):
        assert -LARGEST <= value <= LARGEST
