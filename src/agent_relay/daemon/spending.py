"""The budget of a running daemon: follows what is spent, tells when a limit is reached, and holds agents back.

Theory of operation. While there is a limit it follows the recorded `tokens.used` events from the first on. What was recorded
before it began is only added up; then the budget is laid against the sum, and from there on every mark is told as it is
reached. A budget that was loaded has told what it found before the restart, so only a newly set one tells at once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from decimal import Decimal
from typing import Protocol

import msgspec

from agent_relay.daemon.directories import remove_file, write_private_file
from agent_relay.events.budgets import Budget, BudgetWatch, Crossing
from agent_relay.events.bus import EventBus, Subscription
from agent_relay.events.codec import BadEvent, decode_event
from agent_relay.events.costs import cost_of, read_usage
from agent_relay.events.filter import make_filter
from agent_relay.events.prices import Prices
from agent_relay.events.types import BudgetExceeded, SessionEnded, TokensUsed
from agent_relay.ports.clock import Clock
from agent_relay.ports.events import EventSink

BUDGET_FILE = "budget.json"  # in the state directory
_FOLLOWED = ("tokens.used", "session.ended")
_SCOPES = {"hour": "in an hour", "session": "for a session", "total": "altogether"}

logger = logging.getLogger(__name__)


class Starter(Protocol):
    """Who starts and stops agents. Reasons are sentences."""

    def pause(self, reason: str) -> None: ...

    def resume(self) -> None: ...

    def stop_all(self, reason: str) -> None: ...


class Spending:
    """Everything is called on the loop's thread."""

    def __init__(
        self, path: str, bus: EventBus, sink: EventSink, clock: Clock, read_prices: Callable[[], Prices], starter: Starter
    ) -> None:
        self._path = path
        self._bus = bus
        self._sink = sink
        self._clock = clock
        self._read_prices = read_prices
        self._starter = starter
        self._budget = _load(path)
        self._is_new = False  # it was set, not loaded: what it finds reached is told
        self._feed: Subscription | None = None
        self._watch = BudgetWatch()
        self._is_laid = False  # the past is added up, and the budget laid against it
        self._past_seq = 0
        self._prices = Prices()
        self._seen: set[str] = set()
        self._is_held = False

    def begin(self) -> None:
        if _has_limits(self._budget):
            self._follow()

    def current(self) -> Budget:
        return self._budget

    def set(self, budget: Budget) -> None:
        """Raises OSError where it cannot be kept; then the old one holds."""
        if _has_limits(budget):
            write_private_file(self._path, msgspec.json.encode(budget).decode() + "\n")
        else:
            remove_file(self._path)
        self._budget, self._is_new = budget, True
        self._prices = self._read_prices()
        if self._is_laid:
            self._lay()
        elif self._feed is None and _has_limits(budget):
            self._follow()

    def tick(self) -> None:
        """Now and then: an hour passes without any event."""
        feed = self._feed
        if feed is None:
            return
        if feed.is_over:
            self._feed = self._bus.subscribe(feed.filter, after_seq=feed.cursor, on_news=self._take)
        self._take()
        if self._is_laid:
            self._tell(self._watch.clock_says(self._clock.wall_ms()))

    def close(self) -> None:
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    # --- following ------------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        self._prices = self._read_prices()
        self._past_seq = self._bus.last_seq
        self._feed = self._bus.subscribe(make_filter(_FOLLOWED), after_seq=0, on_news=self._take)
        self._take()

    def _take(self) -> None:
        feed = self._feed
        while feed is not None and (records := feed.take()):
            for record in records:
                if not self._is_laid and record.seq > self._past_seq:
                    self._lay()
                self._note(record.line)
        if feed is not None and feed.is_live and not self._is_laid:
            self._lay()

    def _lay(self) -> None:
        crossings = self._watch.set_budget(self._budget, self._clock.wall_ms())
        self._is_laid = True
        self._tell(crossings if self._is_new else [])
        self._is_new = True

    def _note(self, line: bytes) -> None:
        try:
            event = decode_event(line)
        except BadEvent:
            return
        if isinstance(event, SessionEnded):
            self._watch.end_session(event.session_id)
            self._hold()
        elif isinstance(event, TokensUsed):
            self._spend(event)

    def _spend(self, event: TokensUsed) -> None:
        usage = read_usage(event)
        if usage.id in self._seen:
            return
        self._seen.add(usage.id)
        usd = cost_of(usage, self._prices)
        if usd:
            self._tell(self._watch.spend(usage.session_id, usd, usage.at_ms), usage.agent)

    # --- what follows ---------------------------------------------------------------------------------------------------

    def _tell(self, crossings: list[Crossing], agent: str | None = None) -> None:
        for crossing in crossings:
            event = BudgetExceeded(
                budget=crossing.budget, limit_usd=float(crossing.limit_usd), spent_usd=float(crossing.spent_usd),
                action=crossing.action, agent=agent if crossing.budget == "session" else None,
            )  # fmt: skip
            self._sink.publish(event, agent=agent or "", session_id=crossing.session_id or "", at_ms=self._clock.wall_ms())
            if crossing.action == "stop-all":
                self._starter.stop_all(_reason(crossing))
        self._hold()

    def _hold(self) -> None:
        should_hold = self._is_laid and self._watch.is_spawning_paused
        if should_hold and not self._is_held:
            self._starter.pause("The budget is used up; agent-relay costs shows for what.")
        elif self._is_held and not should_hold:
            self._starter.resume()
        self._is_held = should_hold


def _reason(crossing: Crossing) -> str:
    return f"The budget of ${_show(crossing.limit_usd)} {_SCOPES[crossing.budget]} is used up."


def _show(usd: Decimal) -> str:
    return f"{usd:,.2f}" if usd >= Decimal("0.01") else f"{usd:f}"


def _has_limits(budget: Budget) -> bool:
    return any(limit is not None for limit in (budget.max_per_hour, budget.max_per_session, budget.max_total))


def _load(path: str) -> Budget:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Budget)
    except FileNotFoundError:
        return Budget()
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        logger.warning("budget_unreadable", extra={"relay_fields": {"file": os.path.basename(path), "error": str(error)}})
        return Budget()
