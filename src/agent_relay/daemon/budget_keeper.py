"""The budget: kept on its shelf, held against what the events say was spent, and acted upon.

Nothing is watched while no budget is set. Once one is, spending is counted from the oldest event that is kept, and only then
held against the budget: one that is new and reached already is told and acted upon at once, one of the daemon before us is
only kept to.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

import msgspec

from agent_relay.daemon.logs import logger
from agent_relay.events.budgets import Budget, BudgetWatch, Crossing
from agent_relay.events.bus import EventBus, Subscription
from agent_relay.events.codec import BadEvent, decode_event
from agent_relay.events.costs import RecentIds, cost_of, read_usage
from agent_relay.events.filter import make_filter
from agent_relay.events.prices import Prices
from agent_relay.events.record import Record
from agent_relay.events.types import BudgetExceeded, SessionEnded, TokensUsed
from agent_relay.ports.callers import RELAY
from agent_relay.ports.documents import Shelf
from agent_relay.ports.events import EventSink
from agent_relay.ports.service import RelayService, teams_of
from agent_relay.protocol.errors import ErrorCode, RelayError

_WATCHED = ("tokens.used", "session.ended")
_NO_LIMIT = Budget()
_STOP_AGAIN_MS = 30_000  # a program takes its time to end


class SpawnGate(Protocol):
    """Whether agents may be started."""

    def pause(self, reason: str) -> None: ...

    def resume(self) -> None: ...


class BudgetKeeper:
    """Implements `ports.Budgets`."""

    def __init__(
        self, shelf: Shelf, bus: EventBus, sink: EventSink, gate: SpawnGate, service: RelayService, wall_ms: Callable[[], int],
        read_prices: Callable[[], Prices],
    ) -> None:  # fmt: skip
        self._shelf = shelf
        self._bus = bus
        self._sink = sink
        self._gate = gate
        self._service = service
        self._wall_ms = wall_ms
        self._read_prices = read_prices
        self._prices = Prices()
        self._watch = BudgetWatch()
        self._counted = RecentIds()
        self._subscription: Subscription | None = None
        self._budget = _NO_LIMIT
        self._past_until = 0  # events up to this number are the past
        self._is_past_counted = True
        self._is_new = False  # the budget was set by somebody, and not found
        self._is_held = False
        self._is_stop_due = False  # the agents are to be stopped, and have not been told yet
        self._stopping: asyncio.Task[None] | None = None
        self._asked_to_stop: dict[str, int] = {}  # by session, when
        self._stops: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._budget = self._load()
        if self._budget != _NO_LIMIT:
            self._follow()

    def current(self) -> Budget:
        return self._budget

    def set(self, budget: Budget) -> None:
        try:
            self._shelf.save(msgspec.json.encode(budget) + b"\n")
        except OSError as error:
            sentence = f"The budget could not be saved ({error.strerror or error})."
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, sentence) from None
        self._budget = budget
        self._is_new = True
        if self._subscription is None:
            self._follow()
        elif self._is_past_counted:
            self._begin()

    def clock_says(self) -> None:
        """Every now and then: the last hour moves on."""
        if self._subscription is None:
            return
        if self._subscription.is_over:  # it fell behind, or the store could not be read for a while
            self._listen(self._subscription.cursor)
        self._learn_teams()
        if self._is_past_counted:
            self._act(self._watch.clock_says(self._wall_ms()))
        else:
            self._begin_if_counted()
        self._stop_if_due()
        self._stop_those_over()

    def _learn_teams(self) -> None:
        if self._budget.teams:
            with contextlib.suppress(RelayError):  # the relay does not answer just now: what was known holds
                self._watch.teams = teams_of(self._service)

    def _load(self) -> Budget:
        try:
            content = self._shelf.load()
            return msgspec.json.decode(content, type=Budget) if content else _NO_LIMIT
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.warning("budget_unreadable", extra={"relay_fields": {"error": str(error)}})
            return _NO_LIMIT

    # --- spending -------------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        self._prices = self._read_prices()
        self._past_until = self._bus.last_seq
        self._is_past_counted = False
        self._listen(0)

    def _begin(self) -> None:
        self._is_past_counted = True
        self._learn_teams()
        crossings = self._watch.set_budget(self._budget, self._wall_ms())
        self._act(crossings if self._is_new else [])

    def _listen(self, after_seq: int) -> None:
        self._subscription = self._bus.subscribe(make_filter(_WATCHED), after_seq=after_seq, on_news=self._hear)
        self._hear()

    def _hear(self) -> None:
        while self._subscription is not None and (records := self._subscription.take()):
            for record in records:
                if not self._is_past_counted and record.seq > self._past_until:
                    self._begin()
                self._act(self._count(record))
        self._begin_if_counted()

    def _begin_if_counted(self) -> None:
        if not self._is_past_counted and self._subscription is not None and self._subscription.cursor >= self._past_until:
            self._begin()

    def _count(self, record: Record) -> list[Crossing]:
        try:
            event = decode_event(record.line)
        except BadEvent:
            return []
        if isinstance(event, SessionEnded):
            self._watch.end_session(event.session_id)
        elif isinstance(event, TokensUsed):
            usage = read_usage(event)
            usd = cost_of(usage, self._prices)
            if usage.id not in self._counted and usd is not None:
                self._counted.add(usage.id)
                return self._watch.spend(usage.session_id, usd, usage.at_ms, usage.agent)
        return []

    # --- what follows ---------------------------------------------------------------------------------------------------

    def _act(self, crossings: list[Crossing]) -> None:
        for crossing in crossings:
            event = BudgetExceeded(
                budget=crossing.budget, limit_usd=float(crossing.limit_usd), spent_usd=float(crossing.spent_usd),
                action=crossing.action, agent=crossing.name or None if crossing.budget == "agent" else None,
                team=crossing.name or None if crossing.budget == "team" else None,
            )  # fmt: skip
            self._sink.publish(event, session_id=crossing.session_id or "", at_ms=self._wall_ms())
            logger.warning("budget_exceeded", extra={"relay_fields": _describe(crossing)})
            self._is_stop_due = self._is_stop_due or crossing.action == "stop-all"
        self._stop_if_due()
        if self._watch.is_spawning_paused != self._is_held:
            self._is_held = self._watch.is_spawning_paused
            if self._is_held:
                self._gate.pause("The budget is spent: no agents start until it is raised, or until the hour is over.")
            else:
                self._gate.resume()

    def _stop_if_due(self) -> None:
        self._is_stop_due = self._is_stop_due and self._watch.is_stopping  # the budget may have been raised meanwhile
        if self._is_stop_due and (self._stopping is None or self._stopping.done()):
            self._stopping = asyncio.create_task(self._stop_all())

    def _stop_those_over(self) -> None:
        """Agents whose own limit, or whose team's, is spent: also those that were started again since."""
        if self._budget.action != "stop-all" or not (self._budget.agents or self._budget.teams) or not self._is_past_counted:
            return
        try:
            agents = self._service.agents()
        except RelayError:
            return  # it is tried again
        now = self._wall_ms()
        for agent in agents:
            if not agent.connected or not agent.takes_control or not self._watch.is_over(agent.name, agent.session_id):
                continue
            if now - self._asked_to_stop.get(agent.session_id, 0) >= _STOP_AGAIN_MS:
                self._asked_to_stop[agent.session_id] = now
                task = asyncio.create_task(self._stop(agent.name))
                self._stops.add(task)
                task.add_done_callback(self._stops.discard)

    async def _stop(self, name: str) -> None:
        try:
            await self._service.control(name, "stop", caller=RELAY)
        except RelayError as error:  # one that is not here, or that the relay does not run
            logger.info("not_stopped", extra={"relay_fields": {"agent": name, "reason": error.message}})

    async def _stop_all(self) -> None:
        try:
            agents = self._service.agents()
        except RelayError as error:  # it is tried again
            logger.warning("not_stopped", extra={"relay_fields": {"reason": error.message}})
            return
        self._is_stop_due = False
        for agent in agents:
            await self._stop(agent.name)


def _describe(crossing: Crossing) -> dict[str, object]:
    return {
        "budget": crossing.budget, "limit": float(crossing.limit_usd), "spent": float(crossing.spent_usd),
        "action": crossing.action,
    }  # fmt: skip
