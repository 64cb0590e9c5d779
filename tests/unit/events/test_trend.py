"""Costs over time: every usage in its step, once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.events.trend import CostTrend, find_trend
from tests.unit.events.test_costs import PRICES, M, usage


def test_usages_are_sorted_into_steps() -> None:
    usages = [
        usage("1", given=M, at_ms=100), usage("2", given=M, at_ms=149),
        usage("3", model="plain", given=M, at_ms=150, agent="Bob"),
        usage("4", given=M, at_ms=199), usage("5", given=M, at_ms=200),
        usage("6", given=M, at_ms=99),
    ]  # fmt: skip
    assert find_trend(usages, PRICES, 100, 200, 2) == CostTrend(
        100, 200, 50, [6, 5], [2 * M, 2 * M], [0, 0], {"Alice": [6, 3], "Bob": [0, 2]}, {"alpha": [6, 3], "plain": [0, 2]}
    )


def test_a_usage_that_is_told_again_counts_where_it_was_told_first() -> None:
    found = find_trend([usage("1", given=M, at_ms=1), usage("1", given=M, at_ms=9)], PRICES, 0, 10, 2)
    assert found.cost_usd == [3, 0]


def test_without_a_price_there_are_tokens_and_no_dollars() -> None:
    found = find_trend([usage("1", model="mystery", given=5, at_ms=1)], PRICES, 0, 10, 1)
    assert (found.cost_usd, found.tokens, found.unpriced_tokens, found.by_model) == ([0], [5], [5], {})


def test_without_a_beginning_it_begins_with_the_first_usage() -> None:
    found = find_trend([usage("1", given=M, at_ms=40), usage("2", given=M, at_ms=30)], PRICES, None, 50, 2)
    assert (found.since, found.step_ms, found.cost_usd) == (30, 10, [3, 3])
    assert find_trend([], PRICES, None, 50, 2).cost_usd == [0, 0]


@given(times=st.lists(st.integers(0, 1000)), points=st.integers(1, 70), until=st.integers(1, 1001))
def test_nothing_is_lost_between_the_steps(times: list[int], points: int, until: int) -> None:
    usages = [usage(str(number), given=1, at_ms=at) for number, at in enumerate(times)]
    found = find_trend(usages, PRICES, 0, until, points)
    assert sum(found.tokens) == sum(1 for at in times if at < until)
    assert len(found.tokens) == len(found.cost_usd) == points
