"""Costs: usages out of `tokens.used` events, their price, the report over them, and how it came about over time.

Tokens are whole numbers and money is decimal until a report is finished, so sums are exact in any order. Cached tokens
stand beside the input tokens and not among them. What has no known price is counted and said to have none.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from msgspec import Struct

from agent_relay.events.prices import PRICES_AS_OF, Price, Prices
from agent_relay.events.types import TokensUsed
from agent_relay.protocol.names import fold_name

MOST_RECENT = 50_000  # ids in a generation: some five megabytes, and weeks of a busy project
UNKNOWN_MODEL = "unknown"


class Usage(Struct, frozen=True):
    """One answer's tokens. `id` is the same when the same usage is told again."""

    id: str
    at_ms: int
    agent: str
    session_id: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    stated_usd: Decimal | None = None  # what whoever told it thinks it costs

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


def read_usage(event: TokensUsed) -> Usage:
    said = event.usage_id
    stated = event.estimated_cost_usd
    return Usage(
        id=f"{event.agent_name}\0{said}" if said else f"#{event.seq}",
        at_ms=event.ts,
        agent=event.agent_name,
        session_id=event.session_id,
        model=event.model or UNKNOWN_MODEL,
        input_tokens=event.input_tokens,
        output_tokens=event.output_tokens,
        cache_read_tokens=event.cache_read_tokens or 0,
        cache_write_tokens=event.cache_write_tokens or 0,
        stated_usd=None if stated is None else Decimal(str(stated)),
    )


def separate_cache(input_tokens: int, cache_read: int | None, cache_write: int | None, *, input_includes_cache: bool) -> int:
    """The input tokens without the cached ones, which some CLIs count among them: each token is charged once."""
    if not input_includes_cache:
        return input_tokens
    return max(0, input_tokens - (cache_read or 0) - (cache_write or 0))


def cost_of(usage: Usage, prices: Prices) -> Decimal | None:
    """None: nobody knows. A price of ours goes before a stated one, so that a corrected list corrects the past."""
    if not usage.total_tokens:
        return Decimal(0)
    price = prices.find(usage.model)
    return usage.stated_usd if price is None else _multiply(usage, price)


def _multiply(usage: Usage, price: Price) -> Decimal:
    read = price.input_per_1m if price.cache_read_per_1m is None else price.cache_read_per_1m
    write = price.input_per_1m if price.cache_write_per_1m is None else price.cache_write_per_1m
    millionths = (
        usage.input_tokens * price.input_per_1m
        + usage.output_tokens * price.output_per_1m
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
    )
    return millionths.scaleb(-6)


# --- the report ----------------------------------------------------------------------------------------------------------


class Breakdown(Struct, frozen=True, rename="camel"):
    """`estimated_cost_usd` is of the tokens whose price is known, and None where that is none of them; the others are
    `unpriced_tokens`."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    total_tokens: int
    unpriced_tokens: int
    estimated_cost_usd: float | None


class CostReport(Struct, frozen=True, rename="camel"):
    total: Breakdown
    by_agent: dict[str, Breakdown]
    by_model: dict[str, Breakdown]
    by_session: dict[str, Breakdown]
    unpriced_models: list[str]
    prices_as_of: str = PRICES_AS_OF


class _Sum:
    def __init__(self) -> None:
        self._counts = [0, 0, 0, 0]
        self._unpriced = 0
        self._usd: Decimal | None = None

    def add(self, usage: Usage, usd: Decimal | None) -> None:
        parts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
        self._counts = [count + part for count, part in zip(self._counts, parts, strict=True)]
        if usd is None:
            self._unpriced += usage.total_tokens
        else:
            self._usd = usd if self._usd is None else self._usd + usd

    def finish(self) -> Breakdown:
        given, answered, read, written = self._counts
        total = sum(self._counts)
        usd = Decimal(0) if not total else None if self._unpriced == total else self._usd
        return Breakdown(given, answered, read, written, total, self._unpriced, None if usd is None else float(usd))


class _Sums:
    def __init__(self) -> None:
        self._sums: dict[str, _Sum] = {}

    def add(self, name: str, usage: Usage, usd: Decimal | None) -> None:
        self._sums.setdefault(name, _Sum()).add(usage, usd)

    def finish(self) -> dict[str, Breakdown]:
        return {name: self._sums[name].finish() for name in sorted(self._sums)}


class RecentIds:
    """Ids of usages that were counted, for whoever counts for as long as the daemon lives.

    Kept in two generations: when the younger one is full it becomes the older one, and the oldest are let go. A usage is told
    again soon, by a wrapper that reads a record anew, or not at all.
    """

    __slots__ = ("_older", "_younger")

    def __init__(self) -> None:
        self._younger: set[str] = set()
        self._older: set[str] = set()

    def __contains__(self, id_: object) -> bool:
        return id_ in self._younger or id_ in self._older

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)

    def add(self, id_: str) -> None:
        self._younger.add(id_)
        if len(self._younger) >= MOST_RECENT:
            self._older, self._younger = self._younger, set()


class CostBook:
    """Takes usages in any order and as often as they are told; each counts once. The range is from `since_ms` to before
    `until_ms`. `seen`: the ids that were counted; without it, all of them are remembered."""

    def __init__(
        self, prices: Prices, *, since_ms: int | None = None, until_ms: int | None = None, agent: str | None = None,
        session_id: str | None = None, seen: RecentIds | None = None,
    ) -> None:  # fmt: skip
        self._prices = prices
        self._since_ms, self._until_ms, self._session_id = since_ms, until_ms, session_id
        self._agent = None if agent is None else fold_name(agent)
        self._seen: set[str] | RecentIds = set() if seen is None else seen
        self._total = _Sum()
        self._by_agent, self._by_model, self._by_session = _Sums(), _Sums(), _Sums()
        self._unpriced: set[str] = set()

    def add(self, usage: Usage) -> None:
        if usage.id in self._seen:
            return
        self._seen.add(usage.id)
        if not self._is_asked_for(usage):
            return
        usd = cost_of(usage, self._prices)
        if usd is None:
            self._unpriced.add(usage.model)
        self._total.add(usage, usd)
        self._by_agent.add(usage.agent, usage, usd)
        self._by_model.add(usage.model, usage, usd)
        self._by_session.add(usage.session_id, usage, usd)

    def _is_asked_for(self, usage: Usage) -> bool:
        return (
            (self._since_ms is None or usage.at_ms >= self._since_ms)
            and (self._until_ms is None or usage.at_ms < self._until_ms)
            and self._agent in (None, fold_name(usage.agent))
            and self._session_id in (None, usage.session_id)
        )

    def report(self) -> CostReport:
        return CostReport(
            self._total.finish(),
            self._by_agent.finish(),
            self._by_model.finish(),
            self._by_session.finish(),
            sorted(self._unpriced),
        )


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
    return CostTrend(
        since=since_ms, until=until_ms, step_ms=step_ms, cost_usd=costs, tokens=tokens, unpriced_tokens=unpriced,
        by_agent=by_agent.finish(), by_model=by_model.finish(),
    )  # fmt: skip
