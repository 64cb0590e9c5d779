"""Budgets: each mark told once when it is reached, and what follows from it."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.events.budgets import HOUR_MS, Budget, BudgetWatch, Crossing

D = Decimal


def crossings(watch: BudgetWatch, *spent: tuple[str, str, int]) -> list[tuple[str, str | None, str]]:
    return [
        (crossing.budget, crossing.session_id, str(crossing.spent_usd))
        for session, usd, at_ms in spent
        for crossing in watch.spend(session, D(usd), at_ms)
    ]


def follows(watch: BudgetWatch) -> str:
    return "stop" if watch.is_stopping else "pause" if watch.is_spawning_paused else ""


def test_without_a_budget_nothing_is_told() -> None:
    watch = BudgetWatch()
    assert crossings(watch, ("s", "1000000", 0)) == []
    assert follows(watch) == ""


def test_a_limit_is_told_once_when_it_is_reached() -> None:
    watch = BudgetWatch(Budget(max_total=D(1)))
    assert crossings(watch, ("s", "0.5", 0), ("s", "0.49", 0)) == []
    assert watch.spend("s", D("0.01"), 0) == [Crossing("total", D(1), D(1), "alert")]
    assert crossings(watch, ("s", "5", 0), ("t", "5", HOUR_MS * 9)) == []


def test_the_alert_comes_before_the_limit_and_each_once() -> None:
    watch = BudgetWatch(Budget(max_total=D(10), alert_threshold=D("0.8"), action="stop-all"))
    assert crossings(watch, ("s", "7.99", 0)) == []
    (alert,) = watch.spend("s", D("0.01"), 0)
    assert (alert.action, alert.spent_usd, alert.limit_usd) == ("alert", D(8), D(10))
    assert follows(watch) == ""
    assert crossings(watch, ("s", "1", 0)) == []
    (limit,) = watch.spend("s", D(1), 0)
    assert (limit.action, limit.spent_usd) == ("stop-all", D(10))
    assert follows(watch) == "stop"


def test_one_leap_over_both_marks_tells_the_limit_alone() -> None:
    watch = BudgetWatch(Budget(max_total=D(10), alert_threshold=D("0.5"), action="pause-spawning"))
    assert [crossing.action for crossing in watch.spend("s", D(11), 0)] == ["pause-spawning"]
    assert follows(watch) == "pause"


def test_the_hour_moves_on_and_its_limit_can_be_reached_again() -> None:
    watch = BudgetWatch(Budget(max_per_hour=D(1), action="pause-spawning"))
    assert crossings(watch, ("s", "0.6", 1_000), ("s", "0.4", 2_000)) == [("hour", None, "1.0")]
    assert watch.clock_says(1_000 + HOUR_MS - 1) == []
    assert follows(watch) == "pause"
    assert watch.clock_says(1_000 + HOUR_MS) == []
    assert follows(watch) == ""
    assert crossings(watch, ("s", "0.6", 1_001 + HOUR_MS)) == [("hour", None, "1.0")]


def test_what_was_spent_long_ago_is_not_of_this_hour() -> None:
    watch = BudgetWatch(Budget(max_per_hour=D(1), max_total=D(2)))
    watch.clock_says(10 * HOUR_MS)
    assert crossings(watch, ("s", "1.5", HOUR_MS)) == []
    assert crossings(watch, ("s", "0.9", 10 * HOUR_MS)) == [("total", None, "2.4")]


def test_every_session_has_a_limit_of_its_own() -> None:
    watch = BudgetWatch(Budget(max_per_session=D(1), action="pause-spawning"))
    assert crossings(watch, ("a", "0.9", 0), ("b", "0.9", 0)) == []
    assert crossings(watch, ("a", "0.1", 0)) == [("session", "a", "1.0")]
    assert crossings(watch, ("b", "0.2", 0)) == [("session", "b", "1.1")]
    watch.end_session("a")
    assert follows(watch) == "pause"
    watch.end_session("b")
    assert follows(watch) == ""


def test_several_limits_may_be_reached_at_once() -> None:
    watch = BudgetWatch(Budget(max_per_hour=D(1), max_per_session=D(1), max_total=D(1)))
    assert {crossing.budget for crossing in watch.spend("s", D(1), 0)} == {"hour", "session", "total"}


def test_another_budget_tells_what_it_finds_reached() -> None:
    watch = BudgetWatch(Budget(max_total=D(5)))
    watch.spend("s", D(3), 0)
    assert [crossing.budget for crossing in watch.set_budget(Budget(max_total=D(2), action="stop-all"), 0)] == ["total"]
    assert follows(watch) == "stop"
    assert watch.set_budget(Budget(max_total=D(2), action="stop-all"), 0) == []  # the same
    assert [crossing.budget for crossing in watch.set_budget(Budget(max_total=D(1), action="stop-all"), 0)] == ["total"]
    assert [crossing.action for crossing in watch.set_budget(Budget(max_total=D(1), action="alert"), 0)] == ["alert"]
    assert watch.set_budget(Budget(max_total=D(100), action="stop-all"), 0) == []
    assert follows(watch) == ""
    assert crossings(watch, ("s", "97", 0)) == [("total", None, "100")]
    assert watch.set_budget(Budget(), 0) == []
    assert follows(watch) == ""


def test_an_alert_only_budget_holds_nobody_back() -> None:
    watch = BudgetWatch(Budget(max_total=D(1)))
    watch.spend("s", D(2), 0)
    assert follows(watch) == ""


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 300), st.integers(0, 5 * HOUR_MS)), max_size=60))
def test_a_mark_is_told_exactly_when_spending_rises_over_it(spent: list[tuple[str, int, int]]) -> None:
    limit = D(5)
    watch = BudgetWatch(Budget(max_per_hour=limit, max_total=limit))
    past: list[tuple[int, Decimal]] = []
    was = {"hour": False, "total": False}
    now = 0
    for session, cents, at_ms in spent:
        usd = D(cents).scaleb(-2)
        now = max(now, at_ms)
        past.append((at_ms, usd))
        sums = {"hour": sum((one for at, one in past if at > now - HOUR_MS), D(0)), "total": sum((one for _, one in past), D(0))}
        told = {crossing.budget for crossing in watch.spend(session, usd, at_ms)}
        assert told == {name for name in sums if sums[name] >= limit and not was[name]}
        was = {name: sums[name] >= limit for name in sums}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"maxTotal": 0}', "maxTotal"), (b'{"maxPerHour": -1}', "maxPerHour"), (b'{"maxPerSession": "NaN"}', "maxPerSession"),
        (b'{"alertThreshold": 1.5}', "alertThreshold"), (b'{"alertThreshold": 0}', "alertThreshold"),
        (b'{"action": "explode"}', "action"),
        (b'{"maximum": 3}', "maximum"), (b'{"maxTotal": true}', "maxTotal"), (b"[]", "object"),
    ],
)  # fmt: skip
def test_a_wrong_budget_is_refused_and_the_field_named(body: bytes, words: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=words):
        msgspec.json.decode(body, type=Budget)


def test_a_budget_is_json_in_the_names_of_the_api() -> None:
    budget = msgspec.json.decode(b'{"maxPerHour": 1.5, "alertThreshold": 0.8, "action": "pause-spawning"}', type=Budget)
    assert budget == Budget(max_per_hour=D("1.5"), alert_threshold=D("0.8"), action="pause-spawning")


# --- limits of single agents and teams --------------------------------------------------------------------------------------


def test_an_agent_has_a_limit_of_its_own_that_holds_nobody_else_back() -> None:
    watch = BudgetWatch(Budget(agents={"Bob": D(2)}, alert_threshold=D("0.5"), action="stop-all"))
    assert watch.spend("s1", D(5), 0, "Ann") == []
    (alert,) = watch.spend("s2", D(1), 0, "bob")
    assert (alert.budget, alert.name, alert.action, alert.spent_usd) == ("agent", "Bob", "alert", D(1))
    assert not watch.is_over("Bob", "s2")
    (limit,) = watch.spend("s3", D(1), 0, "BOB")  # another session of it
    assert (limit.budget, limit.name, limit.action) == ("agent", "Bob", "stop")
    assert watch.is_over("bob", "s4")
    assert not watch.is_over("Ann", "s1")
    assert follows(watch) == ""


def test_a_team_s_agents_spend_together_also_in_sessions_that_are_over() -> None:
    watch = BudgetWatch(Budget(teams={"docs": D(3)}, action="stop-all"))
    watch.teams = {"s1": "docs", "s2": "docs", "s3": "web"}
    assert watch.spend("s1", D(2), 0, "Ann") == []
    watch.end_session("s1")
    assert watch.spend("s3", D(9), 0, "Cay") == []
    (limit,) = watch.spend("s2", D(1), 0, "Ben")
    assert (limit.budget, limit.name, limit.spent_usd, limit.action) == ("team", "docs", D(3), "stop")
    assert (watch.is_over("Ben", "s2"), watch.is_over("Cay", "s3")) == (True, False)
    assert follows(watch) == ""


def test_without_stopping_they_alert() -> None:
    watch = BudgetWatch(Budget(agents={"Bob": D(1)}, action="pause-spawning"))
    (limit,) = watch.spend("s", D(1), 0, "Bob")
    assert (limit.action, watch.is_over("Bob", "s"), follows(watch)) == ("alert", False, "")


def test_such_a_limit_is_greater_than_nothing() -> None:
    with pytest.raises(ValueError, match=r"agents\.Bob must be greater"):
        Budget(agents={"Bob": D(0)})
