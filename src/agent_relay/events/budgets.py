"""Budgets: limits on what may be spent, and the moments at which they are reached.

A limit knows two marks: the alert, at a share of it, and the limit itself. Each is told once when it is reached, and
again only after spending fell below it (the last hour moves on) and reached it anew, or under another budget. What follows
from it, refusing to start agents or stopping them, is for whoever asks. What has no known price cannot be held to a budget.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from decimal import Decimal
from enum import IntEnum
from typing import Literal

from msgspec import Struct

HOUR_MS = 3_600_000

Action = Literal["alert", "pause-spawning", "stop-all"]
Scope = Literal["hour", "session", "total"]


class Budget(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Dollars; None is no limit. `alert_threshold` is a share of a limit, such as 0.8; without it there is no alert before."""

    max_per_hour: Decimal | None = None
    max_per_session: Decimal | None = None
    max_total: Decimal | None = None
    alert_threshold: Decimal | None = None
    action: Action = "alert"

    def __post_init__(self) -> None:
        for name, amount in (
            ("maxPerHour", self.max_per_hour),
            ("maxPerSession", self.max_per_session),
            ("maxTotal", self.max_total),
        ):
            if amount is not None and not (amount.is_finite() and amount > 0):
                raise ValueError(f"{name} must be greater than 0 dollars, not {amount}")
        share = self.alert_threshold
        if share is not None and not (share.is_finite() and 0 < share <= 1):
            raise ValueError(f"alertThreshold must be a fraction of the limits, greater than 0 and at most 1, not {share}")


class Crossing(Struct, frozen=True):
    """A mark was reached: to be published as `budget.exceeded`. With `spent_usd` below `limit_usd` it is the alert before."""

    budget: Scope
    limit_usd: Decimal
    spent_usd: Decimal
    action: Action  # `alert` for the alert before, whatever the budget says
    session_id: str | None = None


class _Mark(IntEnum):
    NONE = 0
    ALERT = 1
    LIMIT = 2


_Key = tuple[Scope, str | None]


class BudgetWatch:
    """Told of what is spent and of the time. Feed it the past first, and drop what it answers, to begin where it stood."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        self._total = Decimal(0)
        self._sessions: dict[str, Decimal] = {}
        self._hour: list[tuple[int, int, Decimal]] = []  # a heap by time; the count keeps equal times apart
        self._hour_total = Decimal(0)
        self._count = 0
        self._now_ms = 0
        self._marks: dict[_Key, _Mark] = {}

    def set_budget(self, budget: Budget, now_ms: int) -> list[Crossing]:
        """Another budget is begun anew: what is reached under it already is told now."""
        if budget != self.budget:
            self.budget = budget
            self._marks.clear()
        return self.clock_says(now_ms)

    def spend(self, session_id: str, usd: Decimal, at_ms: int) -> list[Crossing]:
        self._total += usd
        self._sessions[session_id] = self._sessions.get(session_id, Decimal(0)) + usd
        self._count += 1
        heapq.heappush(self._hour, (at_ms, self._count, usd))
        self._hour_total += usd
        return self.clock_says(max(at_ms, self._now_ms))

    def clock_says(self, now_ms: int) -> list[Crossing]:
        self._now_ms = max(self._now_ms, now_ms)
        while self._hour and self._hour[0][0] <= self._now_ms - HOUR_MS:
            self._hour_total -= heapq.heappop(self._hour)[2]
        return list(self._compare())

    def end_session(self, session_id: str) -> None:
        """Its limit holds nobody back any more; what it cost stays in the total."""
        self._sessions.pop(session_id, None)
        self._marks.pop(("session", session_id), None)

    @property
    def is_spawning_paused(self) -> bool:
        return self.budget.action != "alert" and any(mark is _Mark.LIMIT for mark in self._marks.values())

    @property
    def is_stopping(self) -> bool:
        return self.budget.action == "stop-all" and self.is_spawning_paused

    def _compare(self) -> Iterator[Crossing]:
        for scope, session_id, limit, spent in self._limits():
            before = self._marks.get((scope, session_id), _Mark.NONE)
            now = self._mark(limit, spent)
            self._marks[(scope, session_id)] = now
            if limit is not None and now > before:
                yield Crossing(scope, limit, spent, self.budget.action if now is _Mark.LIMIT else "alert", session_id)

    def _limits(self) -> Iterator[tuple[Scope, str | None, Decimal | None, Decimal]]:
        yield "hour", None, self.budget.max_per_hour, self._hour_total
        yield "total", None, self.budget.max_total, self._total
        for session_id, spent in self._sessions.items():
            yield "session", session_id, self.budget.max_per_session, spent

    def _mark(self, limit: Decimal | None, spent: Decimal) -> _Mark:
        if limit is None:
            return _Mark.NONE
        if spent >= limit:
            return _Mark.LIMIT
        share = self.budget.alert_threshold
        return _Mark.ALERT if share is not None and spent >= limit * share else _Mark.NONE
