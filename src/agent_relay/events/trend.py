"""Spending over time: usages sorted into steps of the same length."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from msgspec import Struct

from agent_relay.events.costs import Usage, cost_of
from agent_relay.events.prices import Prices


class CostTrend(Struct, frozen=True, rename="camel"):
    """Each list has a value for each step, the first from `since` on. Dollars are those of the tokens whose price is known."""

    since: int
    until: int
    step_ms: int
    cost_usd: list[float]
    tokens: list[int]
    unpriced_tokens: list[int]
    by_agent: dict[str, list[float]]
    by_model: dict[str, list[float]]


class _Steps:
    def __init__(self, count: int) -> None:
        self._count = count
        self._sums: dict[str, list[Decimal]] = {}

    def add(self, name: str, step: int, usd: Decimal) -> None:
        self._sums.setdefault(name, [Decimal(0)] * self._count)[step] += usd

    def finish(self) -> dict[str, list[float]]:
        return {name: [float(usd) for usd in self._sums[name]] for name in sorted(self._sums)}


def find_trend(usages: Iterable[Usage], prices: Prices, since_ms: int | None, until_ms: int, points: int) -> CostTrend:
    """Each usage counts once. Without `since_ms` it begins with the first of them; what is outside is left out."""
    known = list({usage.id: usage for usage in reversed(list(usages))}.values())
    if since_ms is None:
        since_ms = min((usage.at_ms for usage in known), default=until_ms)
    step_ms = max(1, -(-(until_ms - since_ms) // points))
    tokens, unpriced = [0] * points, [0] * points
    total, by_agent, by_model = _Steps(points), _Steps(points), _Steps(points)
    for usage in known:
        step = (usage.at_ms - since_ms) // step_ms
        if not (since_ms <= usage.at_ms < until_ms and step < points):
            continue
        tokens[step] += usage.total_tokens
        usd = cost_of(usage, prices)
        if usd is None:
            unpriced[step] += usage.total_tokens
            continue
        total.add("", step, usd)
        by_agent.add(usage.agent, step, usd)
        by_model.add(usage.model, step, usd)
    costs = total.finish().get("", [0.0] * points)
    return CostTrend(since_ms, until_ms, step_ms, costs, tokens, unpriced, by_agent.finish(), by_model.finish())
