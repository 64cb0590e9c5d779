"""Budgets: limits on what may be spent, and the moments at which they are reached.

A limit knows two marks: the alert, at a share of it, and the limit itself. Each is told once when it is reached, and
again only after spending fell below it (the last hour moves on) and reached it anew, or under another budget. What follows
from it, refusing to start agents or stopping them, is for whoever asks. What has no known price cannot be held to a budget.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import IntEnum
from typing import Literal

from msgspec import Struct

from agent_relay.protocol.names import fold_name

HOUR_MS = 3_600_000

Action = Literal["alert", "pause-spawning", "stop-all"]
Follow = Literal["alert", "pause-spawning", "stop-all", "stop"]  # `stop`: of the one agent or team whose limit it is
Scope = Literal["hour", "session", "total", "agent", "team"]
_OF_SOME = frozenset({"agent", "team"})  # limits of single ones, which hold nobody else back


class Budget(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Dollars; None is no limit. `alert_threshold` is a share of a limit, such as 0.8; without it there is no alert before."""

    max_per_hour: Decimal | None = None
    max_per_session: Decimal | None = None
    max_total: Decimal | None = None
    alert_threshold: Decimal | None = None
    action: Action = "alert"
    agents: dict[str, Decimal] = {}  # by name, altogether; where all agents would be stopped, that one is
    teams: dict[str, Decimal] = {}  # by name, of its agents together

    def __post_init__(self) -> None:
        for name, amount in (
            *((f"agents.{name}", amount) for name, amount in self.agents.items()),
            *((f"teams.{name}", amount) for name, amount in self.teams.items()),
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
    action: Follow  # `alert` for the alert before, whatever the budget says
    session_id: str | None = None
    name: str = ""  # of the agent or team whose limit it is


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
        self._agents: dict[str, Decimal] = {}  # by folded name
        self._ended: dict[str, Decimal] = {}  # sessions that are over: their teams spent it all the same
        self.teams: Mapping[str, str] = {}  # the team of each session that is known to have one
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

    def spend(self, session_id: str, usd: Decimal, at_ms: int, agent: str = "") -> list[Crossing]:
        self._total += usd
        self._agents[fold_name(agent)] = self._agents.get(fold_name(agent), Decimal(0)) + usd
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
        spent = self._sessions.pop(session_id, None)
        if spent is not None:
            self._ended[session_id] = self._ended.get(session_id, Decimal(0)) + spent
        self._marks.pop(("session", session_id), None)

    @property
    def is_spawning_paused(self) -> bool:
        reached = (scope for (scope, _), mark in self._marks.items() if mark is _Mark.LIMIT)
        return self.budget.action != "alert" and any(scope not in _OF_SOME for scope in reached)

    @property
    def is_stopping(self) -> bool:
        return self.budget.action == "stop-all" and self.is_spawning_paused

    def is_over(self, agent: str, session_id: str) -> bool:
        """Whether this agent is to be stopped, for a limit of its own or of its team."""
        if self.budget.action != "stop-all":
            return False
        reached = {name for (scope, name), mark in self._marks.items() if mark is _Mark.LIMIT and scope == "agent"}
        teams = {name for (scope, name), mark in self._marks.items() if mark is _Mark.LIMIT and scope == "team"}
        return fold_name(agent) in {fold_name(name or "") for name in reached} or self.teams.get(session_id, "") in teams

    def _compare(self) -> Iterator[Crossing]:
        for scope, session_id, limit, spent in self._limits():
            before = self._marks.get((scope, session_id), _Mark.NONE)
            now = self._mark(limit, spent)
            self._marks[(scope, session_id)] = now
            if limit is not None and now > before:
                yield self._cross(scope, session_id, limit, spent, is_limit=now is _Mark.LIMIT)

    def _cross(self, scope: Scope, of: str | None, limit: Decimal, spent: Decimal, *, is_limit: bool) -> Crossing:
        if scope not in _OF_SOME:
            return Crossing(scope, limit, spent, self.budget.action if is_limit else "alert", of)
        follows: Follow = "stop" if is_limit and self.budget.action == "stop-all" else "alert"
        return Crossing(scope, limit, spent, follows, name=of or "")

    def _limits(self) -> Iterator[tuple[Scope, str | None, Decimal | None, Decimal]]:
        yield "hour", None, self.budget.max_per_hour, self._hour_total
        yield "total", None, self.budget.max_total, self._total
        for session_id, spent in self._sessions.items():
            yield "session", session_id, self.budget.max_per_session, spent
        for name, limit in self.budget.agents.items():
            yield "agent", name, limit, self._agents.get(fold_name(name), Decimal(0))
        for name, limit in self.budget.teams.items():
            yield "team", name, limit, self._spent_by_team(name)

    def _spent_by_team(self, name: str) -> Decimal:
        sessions = [session_id for session_id, team in self.teams.items() if team == name]
        return sum((self._sessions.get(each, Decimal(0)) + self._ended.get(each, Decimal(0)) for each in sessions), Decimal(0))

    def _mark(self, limit: Decimal | None, spent: Decimal) -> _Mark:
        if limit is None:
            return _Mark.NONE
        if spent >= limit:
            return _Mark.LIMIT
        share = self.budget.alert_threshold
        return _Mark.ALERT if share is not None and spent >= limit * share else _Mark.NONE
