"""The life of a session that the daemon began: it runs, gets its task, ends, and what it leaves behind.

`ports.AgentService` does the work and says what came of it (`ports.AgentListener`); the book has every step, so that the next
daemon goes on where this one stopped. The task is the first message from whoever asked for the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from agent_relay.core.context import Context
from agent_relay.core.registry import Registry
from agent_relay.core.removal import Removal
from agent_relay.core.sending import Sending
from agent_relay.core.spawned.book import SHOWN_TASK, SessionBook, agent_in, note_program, start_failed
from agent_relay.core.spawned.counts import SessionCounts
from agent_relay.core.spawned.leases import Leases
from agent_relay.core.spawned.restarts import Restarts
from agent_relay.ports.agents import AgentService, EndReason, SessionRow, SessionStatus
from agent_relay.protocol.errors import RelayError

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

START_MS = 60_000  # a CLI on a loaded machine; beyond that nobody waits for it
STOP_MS = 20_000  # for a program to end by itself after it was released
BY_DAEMON = "daemon"
_TASK_AGAIN_MS = 1_000

Tell: TypeAlias = Callable[[SessionRow, RelayError | None], None]
OnChange: TypeAlias = Callable[[SessionRow], None]  # it runs, or it has ended


class SessionLife(SessionBook):
    """`start_again` starts the successor of a session that crashed; raises RelayError."""

    def __init__(
        self, context: Context, registry: Registry, sending: Sending, on_change: OnChange, removal: Removal,
        counts: SessionCounts, start_again: Callable[[SessionRow], None],
    ) -> None:  # fmt: skip
        super().__init__()
        self._context = context
        self._registry = registry
        self._sending = sending
        self._on_change = on_change
        self._removal = removal
        self._counts = counts
        self._restarts = Restarts(context, start_again)
        self._leases = Leases(context, registry)
        self._tells: dict[str, list[Tell]] = {}  # by id: who waits for the start, or for the end
        self._due: dict[str, int] = {}  # by id: when the start or the end has taken too long
        self._tasks_at = 0

    def _take_up(self, service: AgentService, rows: Sequence[SessionRow]) -> None:
        """Takes up the sessions that the daemon before us saved."""
        self._service = service
        for session in rows:
            self._sessions[session.id] = session
            if session.status is SessionStatus.ENDED:
                continue
            self._due[session.id] = self._context.steady_ms + START_MS
            self._counts.begin(session.id, is_whole=False)
            if session.pid:
                service.adopt(session)
                if session.status is SessionStatus.ENDING:
                    service.stop(session, force=False)
        self._restarts.begin(rows)
        self._save()

    def _stop(self, session: SessionRow, releaser: str, request_id: str, note: str) -> None:
        if session.status is SessionStatus.STARTING:
            self._tell(session, start_failed(session, "It was released before it ran."))
        session.status = SessionStatus.ENDING
        session.released_by, session.release_id, session.release_note = releaser, request_id, note
        self._due[session.id] = self._context.steady_ms + STOP_MS
        self._save()
        assert self._service is not None
        self._service.stop(session, force=False)

    def _end_lapsed_runs(self) -> None:
        lapsed = self._leases.find_lapsed(self._live())
        for session in lapsed:
            self._stop(session, BY_DAEMON, "", f"{session.run_by}, which ran {session.run}, is gone.")
        self._leases.publish_end(lapsed)
        for agent in self._leases.find_left_names(self._sessions.values()):
            self._removal.remove(agent, lambda _outcome: None, has_letters=False)

    # --- what became of it: ports.AgentListener ---------------------------------------------------------------------------

    def launched(self, session_id: str, pid: int, pid_started: str) -> None:
        session = self._sessions[session_id]
        session.pid, session.pid_started = pid, pid_started
        self._save()
        if session.status in {SessionStatus.ENDING, SessionStatus.ENDED} and self._service is not None:
            self._service.stop(session, force=session.status is SessionStatus.ENDED)

    def running(self, session_id: str) -> None:
        session = self._sessions[session_id]
        if session.status is not SessionStatus.STARTING:
            return
        session.status = SessionStatus.RUNNING
        note_program(session, self._registry.find(session.name))
        self._due.pop(session_id, None)
        self._on_change(session)
        self._save()
        self._tell(session, None)
        self._give_task(session)

    def failed(self, session_id: str, sentence: str) -> None:
        session = self._sessions[session_id]
        if session.status is SessionStatus.STARTING:
            session.is_failed = True
            self._tell(session, start_failed(session, sentence))
            self._end(session, None)
        else:
            self.ended(session_id, None)

    def ended(self, session_id: str, exit_code: int | None) -> None:
        session = self._sessions[session_id]
        if session.status is SessionStatus.STARTING:
            self._tell(session, start_failed(session, "It ended before it started."))
        if session.status is not SessionStatus.ENDED:
            self._end(session, exit_code)

    def refused(self, session_id: str, error: RelayError) -> None:
        """Its host did not do what it was asked, or does not answer."""
        session = self._sessions.get(session_id)
        if session is None or session.status is SessionStatus.ENDED:
            return
        self._tell(session, error)
        if session.status is SessionStatus.STARTING:
            session.is_failed = True
            self._end(session, None)

    def hear_runs(self, host: str, rows: Sequence[SessionRow]) -> None:
        """Everything that a host says of the agents it runs; of ended ones it speaks until we have heard it."""
        for row in rows:
            session = self._sessions.get(row.id)
            if session is None and row.status is not SessionStatus.ENDED and self._live_one(row.name) is None:
                session = self._sessions[row.id] = replace(row, host=host)  # the book that had it is lost
                self._counts.begin(row.id, is_whole=False)
                self._save()
            if session is not None and session.host == host:
                self._hear_run(session, row)
        said = {row.id for row in rows}
        for session in [s for s in self._live() if s.host == host and s.pid and s.id not in said]:
            self.ended(session.id, None)  # that host knows nothing of it any more

    def _hear_run(self, session: SessionRow, row: SessionRow) -> None:
        session.cwd, session.sandbox = row.cwd, row.sandbox
        if row.pid and not session.pid:
            self.launched(row.id, row.pid, row.pid_started)
        if row.status is SessionStatus.RUNNING:
            self.running(row.id)
        elif row.status is SessionStatus.ENDED and row.is_failed and session.status is not SessionStatus.ENDED:
            self.failed(row.id, row.failure)
        elif row.status is SessionStatus.ENDED:
            self.ended(row.id, row.exit_code)

    def _end(self, session: SessionRow, exit_code: int | None) -> None:
        ran = session.status is not SessionStatus.STARTING
        crashed = EndReason.COMPLETED if exit_code == 0 else EndReason.CRASHED
        session.reason = EndReason.RELEASED if session.status is SessionStatus.ENDING else crashed
        session.status = SessionStatus.ENDED
        session.exit_code = exit_code
        session.ended_at = self._context.wall_ms
        self._due.pop(session.id, None)
        self._context.log.note("session_ended", agent=session.name, session_id=session.id, reason=session.reason.value)
        if ran:
            self._on_change(session)
        self._restarts.note_end(session)
        self._counts.drop(session.id)
        self._forget_oldest()
        self._save()
        if not self._takes_name_along(session):
            self._tell(session, None)
        else:
            self._let_go(session)

    def _tell(self, session: SessionRow, error: RelayError | None) -> None:
        for tell in self._tells.pop(session.id, ()):
            tell(session, error)

    # --- leaving nothing ----------------------------------------------------------------------------------------------------

    def _takes_name_along(self, session: SessionRow) -> bool:
        """One that was to leave nothing; or one that never ran, and whose name nobody knew before."""
        agent = self._registry.find(session.name)
        if agent is None or agent.hidden or agent.session_id != session.id:
            return False
        never_ran = session.is_failed and agent.registered_at >= session.started_at and agent.mailbox.idle
        return session.is_ephemeral or never_ran

    def _let_go(self, session: SessionRow) -> None:
        agent = self._registry.find(session.name)
        if agent is not None and agent.peer is None:  # else it is about to be told that the connection ended
            self._removal.remove(agent, lambda _outcome: self._tell(session, None), has_letters=False)

    def parted(self, agent: Agent) -> None:
        session = self._sessions.get(agent.session_id)
        if session is not None and session.status is SessionStatus.ENDED and self._takes_name_along(session):
            self._let_go(session)

    # --- the agent itself ---------------------------------------------------------------------------------------------------

    def session_for(self, name: str, meta: dict[str, Any]) -> str | None:
        """The session that a HELLO of this name, from the wrapper that was started for it, belongs to."""
        session = self._live_one(name)
        return session.id if session is not None and meta.get("session") == session.id else None

    def connected(self, agent: Agent) -> None:
        session = self._live_one(agent.name)
        if session is None or session.id != agent.session_id or self._service is None:
            return
        pid = agent.traits.meta.get("pid")
        if not session.pid and isinstance(pid, int):  # the daemon before us died before it knew
            session.pid = pid
            self._service.adopt(session)
        if session.id not in self._tells and session.status is SessionStatus.STARTING:
            self.running(session.id)  # nobody is left who would be told
        self._give_task(session)

    def _give_task(self, session: SessionRow) -> None:
        agent, sender = self._registry.find(session.name), self._registry.find(agent_in(session.spawned_by))
        is_there = agent is not None and agent.connected and agent.session_id == session.id
        if session.task is None or session.is_task_sent or session.status is not SessionStatus.RUNNING:
            return
        if agent is None or sender is None or not is_there:
            return
        task = session.task

        def stored(is_stored: bool) -> None:
            if is_stored and not session.is_task_sent:
                session.is_task_sent = True
                if not session.restart_limit:  # else it is needed again
                    session.task = task[:SHOWN_TASK]  # the rest is in the history
                self._save()

        self._sending.post(sender, [agent], {"body": task}, f"task-{session.id}", stored)

    # --- time ---------------------------------------------------------------------------------------------------------------

    def clock_says(self, now: int) -> None:
        for id_ in [id_ for id_, due in self._due.items() if now >= due]:
            session = self._sessions[id_]
            self._due[id_] = now + STOP_MS
            if session.status is SessionStatus.STARTING:
                self._tell(session, start_failed(session, f"It did not start within {START_MS // 1000} seconds."))
            if session.status in {SessionStatus.STARTING, SessionStatus.ENDING}:
                if session.pid and self._service is not None:
                    self._service.stop(session, force=True)
                else:
                    self._end(session, None)
            else:
                del self._due[id_]
        self._restarts.clock_says(now)
        if self._sessions and now >= self._tasks_at:
            self._tasks_at = now + _TASK_AGAIN_MS
            for session in [session for session in self._ended() if self._takes_name_along(session)]:
                self._let_go(session)  # the daemon before us did not get to it, or the store failed
            self._end_lapsed_runs()
            for session in self._live():
                self._give_task(session)  # a store that failed may work again
