"""Agents that crashed and are to be started again: when, and how often still.

Only those whose start said so, and only after a crash: one that ended by itself or was released stays ended. Everything needed is
in the saved rows, so the next daemon goes on where this one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_relay.core.context import Context
from agent_relay.ports.agents import EndReason, SessionRow, SessionStatus
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.names import fold_name

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

TASK_ID = "task-ses_"  # the ids of tasks begin so
_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 1_000, 60_000  # doubled after each crash: what crashes at once is not started in a rush
STEADY_MS = 600_000  # one that ran for so long did not crash for the old reason: its count begins anew


class Restarts:
    """`start` starts the successor of a session; raises RelayError where that is not possible now."""

    def __init__(self, context: Context, start: Callable[[SessionRow], None]) -> None:
        self._context = context
        self._start = start
        self._due: dict[str, tuple[int, SessionRow]] = {}  # by the folded name

    def begin(self, rows: Iterable[SessionRow]) -> None:
        """Of the daemon before us: the newest session of each name counts."""
        newest = {fold_name(row.name): row for row in rows}
        for row in newest.values():
            if row.status is SessionStatus.ENDED:
                self._plan(row)

    def note_end(self, session: SessionRow) -> None:
        if (session.ended_at or 0) - session.started_at >= STEADY_MS:
            session.restarts = 0
        self._plan(session)

    def _plan(self, session: SessionRow) -> None:
        never_ran = session.is_failed and session.restarts == 0  # whoever asked for it was told
        if session.reason is EndReason.CRASHED and not never_ran and session.restarts < session.restart_limit:
            pause = min(_LONGEST_PAUSE_MS, _FIRST_PAUSE_MS << min(session.restarts, 16))
            self._due[fold_name(session.name)] = (self._context.steady_ms + pause, session)

    def find(self, name: str) -> SessionRow | None:
        return self._due.get(fold_name(name), (0, None))[1]

    def cancel(self, name: str) -> SessionRow | None:
        """The session that would have had a successor."""
        _, session = self._due.pop(fold_name(name), (0, None))
        if session is not None:
            session.restart_limit = 0  # nor after the next start of the daemon
        return session

    def clock_says(self, now: int) -> None:
        for key, (due, session) in list(self._due.items()):
            if now < due:
                continue
            del self._due[key]
            try:
                self._start(session)
            except RelayError as error:
                self._context.log.note("restart_failed", agent=session.name, reason=error.message)
                if error.code.retryable:
                    self._due[key] = (now + (error.retry_after_ms or _LONGEST_PAUSE_MS), session)
                else:
                    session.restarts += 1
                    self._plan(session)


def succeed(session: SessionRow, agent: Agent | None, id_: str, now_ms: int) -> SessionRow:
    """The next session of the same agent. It gets its task again, unless that still waits for it: its program knows nothing of
    the last one's."""
    waiting = [] if agent is None else [*agent.mailbox.inflight.values(), *agent.mailbox.all_waiting()]
    is_task_waiting = any(each.message.row.client_id.startswith(TASK_ID) for each in waiting)
    return replace(
        session, id=id_, started_at=now_ms, status=SessionStatus.STARTING, request_id="", is_task_sent=is_task_waiting, pid=0,
        pid_started="", released_by="", release_id="", release_note="", ended_at=None, reason=None, exit_code=None,
        is_failed=False, failure="", restarts=session.restarts + 1,
    )  # fmt: skip
