"""Leases: agents that belong to a run last as long as the session of whoever started it.

A program that is killed releases nothing itself. So each of its agents says whose it is (`SessionRow.run_session`), and that is
looked at once a second: another session under the name ends the lease at once, a lost connection after `run_grace_ms`. The rows
outlive the daemon, so the next one finds the same; it begins to count anew, since nobody was connected to it before.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_relay.core.agents import Agent
from agent_relay.core.context import Context
from agent_relay.core.registry import Registry
from agent_relay.events.types import PatternEnded
from agent_relay.ports.agents import SessionRow, SessionStatus

EPHEMERAL = "ephemeral"  # in the meta of a client: its name goes with the last agent of its runs


class Leases:
    def __init__(self, context: Context, registry: Registry) -> None:
        self._context = context
        self._registry = registry
        self._missing_since: dict[str, int] = {}  # by session, of those who run something

    def find_lapsed(self, rows: Iterable[SessionRow]) -> list[SessionRow]:
        """The agents that are to be released now, as nobody will."""
        leased = [row for row in rows if row.run_session and row.status not in {SessionStatus.ENDING, SessionStatus.ENDED}]
        return [row for row in leased if self._is_gone(row)]

    def find_left_names(self, rows: Iterable[SessionRow]) -> list[Agent]:
        """Those who ran something, wanted to leave nothing, and are gone like their agents."""
        leased = [row for row in rows if row.run_session]
        live = {row.run_session for row in leased if row.status is not SessionStatus.ENDED}
        found = [self._registry.find(row.run_by) for row in leased if row.run_session not in live and self._is_gone(row)]
        names = {agent.key: agent for agent in found if agent is not None}
        return [
            agent
            for agent in names.values()
            if agent.traits.meta.get(EPHEMERAL) is True and not agent.hidden and not agent.connected
        ]

    def _is_gone(self, row: SessionRow) -> bool:
        owner, session = self._registry.find(row.run_by), row.run_session
        if owner is None or owner.session_id != session:
            return True
        if owner.connected:
            self._missing_since.pop(session, None)
            return False
        now = self._context.steady_ms
        return now - self._missing_since.setdefault(session, now) >= self._context.limits.run_grace_ms

    def publish_end(self, rows: Iterable[SessionRow]) -> None:
        """Of the runs of these agents: whoever ran them cannot say it any more."""
        if self._context.events is None:
            return
        for row in {row.run: row for row in rows}.values():
            event = PatternEnded(session_id=row.run_session, run_id=row.run, outcome="abandoned")
            self._context.events.publish(event, agent=row.run_by, session_id=row.run_session, at_ms=self._context.wall_ms)
