"""Usage of every agent so far, counted as it is told: a list of agents is asked for often, and costs nothing to answer."""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.events.bus import EventBus, Subscription
from agent_relay.events.codec import BadEvent, decode_event
from agent_relay.events.costs import Breakdown, CostBook, CostReport, RecentIds, read_usage
from agent_relay.events.filter import make_filter
from agent_relay.events.prices import Prices
from agent_relay.events.record import Record
from agent_relay.events.types import TokensUsed
from agent_relay.protocol.names import fold_name


class UsageBoard:
    """Begins with the first question. What was used before that is counted in the background, in a moment."""

    def __init__(self, bus: EventBus, read_prices: Callable[[], Prices]) -> None:
        self._bus = bus
        self._read_prices = read_prices
        self._book: CostBook | None = None
        self._models: dict[str, str] = {}
        self._subscription: Subscription | None = None
        self._report: CostReport | None = None

    def total(self) -> Breakdown:
        return self._look().total

    def agents(self) -> dict[str, tuple[str, Breakdown]]:
        """By the folded name: the model that was last used, and what was used in all."""
        found = self._look().by_agent
        return {fold_name(name): (self._models.get(fold_name(name), ""), used) for name, used in found.items()}

    def _look(self) -> CostReport:
        if self._book is None:
            self._book = CostBook(self._read_prices(), seen=RecentIds())
        if self._subscription is None or self._subscription.is_over:
            after = 0 if self._subscription is None else self._subscription.cursor
            self._subscription = self._bus.subscribe(make_filter(["tokens.used"]), after_seq=after, on_news=self._hear)
            self._hear()
        if self._report is None:
            self._report = self._book.report()
        return self._report

    def _hear(self) -> None:
        while self._subscription is not None and (records := self._subscription.take()):
            for record in records:
                self._count(record)

    def _count(self, record: Record) -> None:
        try:
            event = decode_event(record.line)
        except BadEvent:
            return
        if isinstance(event, TokensUsed) and self._book is not None:
            self._book.add(read_usage(event))
            self._models[fold_name(event.agent_name)] = event.model
            self._report = None
