"""Costs: every token charged once, at its own price, and sums that are exact."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.events import costs
from agent_relay.events.costs import CostBook, CostReport, CostTrend, Usage, cost_of, find_trend, read_usage, separate_cache
from agent_relay.events.prices import Price, Prices
from agent_relay.events.types import TokensUsed

M = 1_000_000
PRICES = Prices([
    Price("alpha", Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75")),
    Price("plain", Decimal(2), Decimal(8)),
    Price("free", Decimal(0), Decimal(0)),
])  # fmt: skip


def usage(
    id_: str = "1", model: str = "alpha", given: int = 0, answered: int = 0, read: int = 0, written: int = 0, **more: object
) -> Usage:
    plain = Usage(id_, 1_000, "Alice", "s1", model, given, answered, read, written)
    return msgspec.structs.replace(plain, **more)


def report(*usages: Usage, **asked: object) -> CostReport:
    book = CostBook(PRICES, **asked)  # type: ignore[arg-type]
    for one in usages:
        book.add(one)
    return book.report()


# --- one usage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "answered", "read", "written", "usd"),
    [
        (M, 0, 0, 0, "3"), (0, M, 0, 0, "15"), (0, 0, M, 0, "0.3"), (0, 0, 0, M, "3.75"), (1, 0, 0, 0, "0.000003"),
        (1500, 800, 0, 0, "0.0165"), (0, 0, 0, 0, "0"), (1, 1, 1, 1, "0.00002205"),
    ],
)  # fmt: skip
def test_every_kind_of_token_has_its_price(given_: int, answered: int, read: int, written: int, usd: str) -> None:
    assert cost_of(usage(given=given_, answered=answered, read=read, written=written), PRICES) == Decimal(usd)


def test_without_a_price_of_their_own_cached_tokens_are_input() -> None:
    assert cost_of(usage(model="plain", read=M, written=M), PRICES) == Decimal(4)


def test_a_model_nobody_knows_has_no_price_and_none_is_invented() -> None:
    assert cost_of(usage(model="mystery", given=5), PRICES) is None
    assert cost_of(usage(model="mystery", given=5, stated_usd=Decimal("0.5")), PRICES) == Decimal("0.5")
    assert cost_of(usage(model="mystery"), PRICES) == 0
    assert cost_of(usage(model="free", given=5), PRICES) == 0


def test_our_price_goes_before_a_stated_one() -> None:
    assert cost_of(usage(given=M, stated_usd=Decimal(99)), PRICES) == Decimal(3)


@pytest.mark.parametrize(
    ("given_", "read", "written", "includes", "rest"),
    [
        (1000, 400, None, True, 600),
        (1000, 400, 100, True, 500),
        (1000, 400, 100, False, 1000),
        (1000, None, None, True, 1000),
        (5, 9, 0, True, 0),
    ],
)
def test_cached_tokens_among_the_input_are_not_charged_twice(
    given_: int, read: int | None, written: int | None, includes: bool, rest: int
) -> None:
    assert separate_cache(given_, read, written, input_includes_cache=includes) == rest


# --- out of events -------------------------------------------------------------------------------------------------------


def test_an_event_becomes_a_usage() -> None:
    event = TokensUsed(
        seq=7, ts=123, session_id="s", agent_name="Bob", model="alpha", input_tokens=1, output_tokens=2, cache_read_tokens=3,
        cache_write_tokens=4, estimated_cost_usd=0.1,
    )  # fmt: skip
    assert read_usage(event) == Usage("#7", 123, "Bob", "s", "alpha", 1, 2, 3, 4, Decimal("0.1"))


def test_an_event_without_a_model_is_of_an_unknown_one() -> None:
    event = TokensUsed(seq=1, session_id="s", agent_name="Bob", model="", input_tokens=1, output_tokens=2)
    assert (read_usage(event).model, read_usage(event).stated_usd) == ("unknown", None)


def test_the_same_record_of_the_same_agent_is_the_same_usage() -> None:
    def id_of(agent: str, usage_id: str | None, seq: int) -> str:
        counts = {"input_tokens": 1, "output_tokens": 2}
        return read_usage(TokensUsed(seq=seq, session_id="s", agent_name=agent, model="m", usage_id=usage_id, **counts)).id

    assert id_of("Bob", "x", 1) == id_of("Bob", "x", 2)
    assert id_of("Bob", "x", 1) != id_of("Eve", "x", 1)
    assert id_of("Bob", None, 1) != id_of("Bob", None, 2)
    assert id_of("Bob", "1", 9) != id_of("Bob", None, 1)


# --- the report ----------------------------------------------------------------------------------------------------------


def test_a_report_adds_up_by_agent_model_and_session() -> None:
    found = report(
        usage("1", given=M, answered=10),
        usage("2", model="plain", given=M, agent="Bob", session_id="s2"),
        usage("3", given=M, agent="Bob", session_id="s2"),
    )
    assert found.total.estimated_cost_usd == pytest.approx(8.00015, abs=0)
    assert (found.total.input_tokens, found.total.output_tokens, found.total.total_tokens) == (3 * M, 10, 3 * M + 10)
    assert {name: part.estimated_cost_usd for name, part in found.by_agent.items()} == {"Alice": 3.00015, "Bob": 5.0}
    assert {name: part.estimated_cost_usd for name, part in found.by_model.items()} == {"alpha": 6.00015, "plain": 2.0}
    assert {name: part.estimated_cost_usd for name, part in found.by_session.items()} == {"s1": 3.00015, "s2": 5.0}
    assert found.unpriced_models == []


def test_a_usage_that_is_told_again_counts_once() -> None:
    assert report(usage("1", given=M), usage("1", given=M), usage("1", given=M, at_ms=9_999)).total.input_tokens == M


def test_unknown_prices_are_said_plainly() -> None:
    found = report(usage("1", given=M), usage("2", model="mystery", given=70))
    assert (found.total.estimated_cost_usd, found.total.unpriced_tokens, found.total.total_tokens) == (3.0, 70, M + 70)
    assert (found.by_model["mystery"].estimated_cost_usd, found.by_model["mystery"].unpriced_tokens) == (None, 70)
    assert found.unpriced_models == ["mystery"]
    assert report(usage(model="mystery", given=70)).total.estimated_cost_usd is None


def test_nothing_used_costs_nothing() -> None:
    assert report().total.estimated_cost_usd == 0
    assert report(usage(model="mystery")).by_model["mystery"].estimated_cost_usd == 0
    assert report(usage(model="free", given=1)).total.estimated_cost_usd == 0


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({}, "1234"), ({"since_ms": 20}, "234"), ({"until_ms": 20}, "1"), ({"since_ms": 20, "until_ms": 40}, "23"),
        ({"agent": "Bob"}, "24"), ({"agent": "bOB"}, "24"), ({"session_id": "s1"}, "12"), ({"agent": "Bob",
        "session_id": "s1", "since_ms": 21}, ""),
    ],
)  # fmt: skip
def test_a_report_is_of_what_was_asked_for(asked: dict[str, object], ids: str) -> None:
    usages = [
        usage("1", given=1, at_ms=10),
        usage("2", given=10, at_ms=20, agent="Bob"),
        usage("3", given=100, at_ms=30, session_id="s2"),
        usage("4", given=1000, at_ms=40, agent="Bob", session_id="s2"),
    ]
    assert report(*usages, **asked).total.input_tokens == sum(10 ** (int(id_) - 1) for id_ in ids)


def test_ten_thousand_small_sums_do_not_drift() -> None:
    usages = [usage(str(number), given=1, answered=1) for number in range(10_000)]
    assert report(*usages).total.estimated_cost_usd == 0.18


@given(
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["alpha", "plain", "mystery"]), st.integers(0, 10**9)), max_size=40),
    st.randoms(),
)
def test_order_and_repetition_change_nothing(told: list[tuple[int, str, int]], dice: object) -> None:
    known = {number: usage(str(number), model=model, given=tokens) for number, model, tokens in told}
    twice = [*known.values(), *known.values()]
    dice.shuffle(twice)  # type: ignore[attr-defined]
    found, plain = report(*twice), report(*known.values())
    assert found == plain
    assert sum(part.total_tokens for part in found.by_model.values()) == found.total.total_tokens


def test_a_report_is_json_in_the_names_of_the_api() -> None:
    shown = msgspec.to_builtins(report(usage(given=1500, answered=800)))
    assert set(shown) == {"total", "byAgent", "byModel", "bySession", "unpricedModels", "pricesAsOf"}
    assert shown["total"] == {
        "inputTokens": 1500, "outputTokens": 800, "cacheReadTokens": 0, "cacheWriteTokens": 0, "totalTokens": 2300,
        "unpricedTokens": 0, "estimatedCostUsd": 0.0165,
    }  # fmt: skip


def test_ids_that_were_counted_are_remembered_for_long_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "MOST_RECENT", 10)
    recent = costs.RecentIds()
    for number in range(100):
        recent.add(f"id {number}")
        assert f"id {max(0, number - 9)}" in recent  # at least the last ten
        assert len(recent) <= 20
    assert "id 5" not in recent


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
