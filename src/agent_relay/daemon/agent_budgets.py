"""Budgets of single agents: one whose session has cost as much as its start allowed is released.

Nothing is watched while no running agent has a budget. Usage without a known price cannot be held to one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from decimal import Decimal

from agent_relay.daemon.logs import logger
from agent_relay.events.bus import EventBus, Subscription
from agent_relay.events.codec import BadEvent, decode_event
from agent_relay.events.costs import RecentIds, cost_of, read_usage
from agent_relay.events.filter import make_filter
from agent_relay.events.prices import Prices
from agent_relay.events.types import BudgetExceeded, TokensUsed
from agent_relay.ports.callers import RELAY
from agent_relay.ports.events import EventSink
from agent_relay.ports.service import RelayService
from agent_relay.protocol.errors import RelayError

Limits = Callable[[], Mapping[str, tuple[str, float]]]  # by the session of each running agent that has one: its name, dollars


class AgentBudgets:
    def __init__(
        self, bus: EventBus, sink: EventSink, limits: Limits, service: RelayService, wall_ms: Callable[[], int],
        read_prices: Callable[[], Prices],
    ) -> None:  # fmt: skip
        self._bus = bus
        self._sink = sink
        self._limits = limits
        self._service = service
        self._wall_ms = wall_ms
        self._read_prices = read_prices
        self._prices = Prices()
        self._subscription: Subscription | None = None
        self._counted = RecentIds()
        self._spent: dict[str, Decimal] = {}  # by session
        self._releasing: dict[str, asyncio.Task[None]] = {}  # by session, while it is asked for

    def clock_says(self) -> None:
        """Every now and then."""
        limits = self._limits()
        if not limits:
            self._rest()
            return
        if self._subscription is None or self._subscription.is_over:
            self._listen()
        self._count()
        for session_id, (name, dollars) in limits.items():
            spent, limit = self._spent.get(session_id, Decimal(0)), Decimal(str(dollars))
            if spent >= limit and session_id not in self._releasing:
                self._end(session_id, name, limit, spent)

    def _rest(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
            self._counted, self._spent, self._releasing = RecentIds(), {}, {}

    def _listen(self) -> None:
        """From the oldest event on: a session may be older than this daemon."""
        after_seq = 0 if self._subscription is None else self._subscription.cursor
        self._prices = self._read_prices()
        self._subscription = self._bus.subscribe(make_filter(("tokens.used",)), after_seq=after_seq, on_news=lambda: None)

    def _count(self) -> None:
        while self._subscription is not None and (records := self._subscription.take()):
            for record in records:
                try:
                    event = decode_event(record.line)
                except BadEvent:
                    continue
                if not isinstance(event, TokensUsed):
                    continue
                usage = read_usage(event)
                dollars = cost_of(usage, self._prices)
                if dollars is not None and usage.id not in self._counted:
                    self._counted.add(usage.id)
                    self._spent[usage.session_id] = self._spent.get(usage.session_id, Decimal(0)) + dollars

    def _end(self, session_id: str, name: str, limit: Decimal, spent: Decimal) -> None:
        event = BudgetExceeded(budget="session", limit_usd=float(limit), spent_usd=float(spent), action="stop", agent=name)
        self._sink.publish(event, agent=name, session_id=session_id, at_ms=self._wall_ms())
        logger.warning("agent_budget_exceeded", extra={"relay_fields": {"agent": name, "limit": float(limit)}})
        self._releasing[session_id] = asyncio.create_task(self._release(name, limit))

    async def _release(self, name: str, limit: Decimal) -> None:
        try:
            await self._service.release(name, f"Its budget of ${limit} is spent.", caller=RELAY)
        except RelayError as error:  # it ended meanwhile, or the daemon stops
            logger.info("not_released", extra={"relay_fields": {"agent": name, "reason": error.message}})
