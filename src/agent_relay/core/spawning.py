"""SPAWN and RELEASE: which agents the daemon started, how they are, and how they ended.

The work is done by `ports.AgentService`, and written into the book (`session_book`). An agent's session begins here, so the id
is known before its wrapper has connected, and the wrapper's HELLO takes it up (`session_for`). The task is the first message from
whoever asked for the agent. All of it outlives the daemon: the wrapper runs on, and the next daemon finds it in the saved rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from agent_relay.core.context import Context
from agent_relay.core.leases import Leases
from agent_relay.core.rate import check_rate
from agent_relay.core.registry import Registry
from agent_relay.core.removal import Removal
from agent_relay.core.restarts import Restarts, succeed
from agent_relay.core.rights import SPAWN, SPAWN_ANY, Rights
from agent_relay.core.sending import Sending
from agent_relay.core.session_book import SHOWN_TASK, SessionBook, agent_in, name_asker, note_program, start_failed
from agent_relay.core.session_counts import SessionCounts
from agent_relay.core.spawn_checks import Pace, check_name, check_wish, choose_wall
from agent_relay.core.spawn_places import Places
from agent_relay.core.team_rules import TeamRules
from agent_relay.ports.agents import AgentService, EndReason, HostBook, SessionRow, SessionStatus
from agent_relay.ports.callers import OWNER, Caller
from agent_relay.protocol import envelope
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name, show

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import payloads

START_MS = 60_000  # a CLI on a loaded machine; beyond that nobody waits for it
STOP_MS = 20_000  # for a program to end by itself after it was released
BY_DAEMON = "daemon"
_TASK_AGAIN_MS = 1_000

Tell: TypeAlias = Callable[[SessionRow, RelayError | None], None]
OnChange: TypeAlias = Callable[[SessionRow], None]  # it runs, or it has ended


class Spawning(SessionBook):
    def __init__(
        self, context: Context, registry: Registry, sending: Sending, rights: Rights, on_change: OnChange, removal: Removal,
        rules: TeamRules, counts: SessionCounts,
    ) -> None:  # fmt: skip
        super().__init__()
        self._counts = counts
        self._removal = removal
        self._context = context
        self._rights = rights
        self._registry = registry
        self._sending = sending
        self._on_change = on_change
        self._pace = Pace(context)
        self._rules = rules
        self._restarts = Restarts(context, self._start_again)
        self._leases = Leases(context, registry)
        self._places = Places(context, rights, None)
        self._tells: dict[str, list[Tell]] = {}  # by id: who waits for the start, or for the end
        self._due: dict[str, int] = {}  # by id: when the start or the end has taken too long
        self._tasks_at = 0
        self._hold = ""  # why nothing is started now

    def begin(self, service: AgentService, rows: Sequence[SessionRow], hosts: HostBook | None = None) -> None:
        """Before anybody connects. `rows`: what the daemon before us saved."""
        self._service = service
        self._places = Places(self._context, self._rights, hosts)
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

    def pause(self, reason: str) -> None:
        """Nothing is started any more until `resume`; the reason is a sentence."""
        self._hold = reason

    def resume(self) -> None:
        self._hold = ""

    # --- the wire -------------------------------------------------------------------------------------------------------

    def receive(self, peer: Peer, frame: envelope.Spawn | envelope.Release) -> None:
        kind = "SPAWN" if isinstance(frame, envelope.Spawn) else "RELEASE"

        def tell(session: SessionRow, error: RelayError | None) -> None:
            if error is not None:
                peer.say_error(error, frame.id)
                return
            more = {"session_id": session.id} if kind == "SPAWN" else {}
            peer.say(f"{kind}_RESULT", {"name": session.name, "success": True, **more, "reply_to": frame.id})

        try:
            if self._service is None:
                error = RelayError(ErrorCode.FEATURE_UNSUPPORTED, f"This daemon does not offer {kind}.")
                error.details = {"type": kind}
                raise error
            if peer.allowance is not None:
                check_rate(self._context, peer.allowance)
            caller = self._rights.caller_of(peer)
            if isinstance(frame, envelope.Spawn):
                self.spawn(frame.payload, peer.agent, frame.id, tell, caller)
            else:
                self.release(frame.payload, peer.agent, frame.id, tell, caller)
        except RelayError as error:
            peer.say_error(error, frame.id)

    # --- asked for ------------------------------------------------------------------------------------------------------

    def spawn(
        self, asked: payloads.SpawnPayload, by: Agent | None, request_id: str, tell: Tell, caller: Caller = OWNER
    ) -> None:  # fmt: skip
        """Raises RelayError where it may not be; else `tell` is called once, when the program runs or could not be started."""
        self._rights.check(caller, SPAWN)
        chosen = asked.permission_mode, asked.model, asked.team, asked.budget_usd
        if asked.environment or asked.restarts or chosen != (None,) * 4:
            self._rights.check(caller, SPAWN_ANY)
        self._rules.check_caller(SPAWN, caller, asked.name)
        spawner = name_asker(by, caller)
        wish = (fold_name(asked.name), spawner, request_id)
        again = [s for s in self._sessions.values() if (fold_name(s.name), s.spawned_by, s.request_id) == wish]
        if again:
            self._wait_for_start(again[-1], tell)
            return
        if self._hold:
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, self._hold, reason="spawning_paused")
        host = self._places.choose(asked, caller)
        is_here = host == self._context.host
        (check_wish if is_here else check_name)(asked, self._context.limits)  # its own host looks at the rest
        if asked.task and by is None:
            raise RelayError(ErrorCode.PERMISSION_DENIED, "Observers cannot send messages, so they cannot give a task.")
        if asked.run is not None and by is None:
            raise RelayError(ErrorCode.PERMISSION_DENIED, "Observers have no session that could own a run.", field="payload.run")
        self._check_name(asked.name)
        self._pace.check(sum(session.host == host for session in self._live()) if is_here else 0)
        session = SessionRow(
            id="ses_" + self._context.ids.reserve(self._context.wall_ms)[0], name=asked.name, cli=asked.cli, cwd=asked.cwd or "",
            backend=asked.backend, spawned_by=spawner, started_at=self._context.wall_ms, request_id=request_id,
            permission_mode=asked.permission_mode, sandbox=choose_wall(asked, self._registry.find(caller.agent or "")),
            task=asked.task or None, is_ephemeral=asked.ephemeral, host=host, asked_on=caller.host or self._context.host,
            model=asked.model, role=asked.role, team=asked.team, restart_limit=asked.restarts, budget_usd=asked.budget_usd,
            environment=asked.environment if asked.restarts else {}, variables=sorted(asked.environment), run=asked.run or "",
            run_by=by.name if asked.run and by else "", run_session=by.session_id if asked.run and by else "",
            transport=asked.transport,
        )  # fmt: skip
        self._restarts.cancel(session.name)  # whoever crashed under this name has its successor now
        self._open(session, asked.environment)
        self._wait_for_start(session, tell)

    def _open(self, session: SessionRow, environment: Mapping[str, str]) -> None:
        assert self._service is not None
        self._service.start(session, environment)
        self._pace.note()
        self._sessions[session.id] = session
        self._counts.begin(session.id)
        self._due[session.id] = self._context.steady_ms + START_MS
        self._context.log.note("spawning", agent=session.name, cli=session.cli, by=session.spawned_by, session_id=session.id)
        self._save()

    def _start_again(self, crashed: SessionRow) -> None:
        """After a crash; raises RelayError."""
        if self._hold:
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, self._hold, reason="spawning_paused")
        self._check_name(crashed.name)
        self._pace.check(sum(session.host == crashed.host for session in self._live()))
        id_ = "ses_" + self._context.ids.reserve(self._context.wall_ms)[0]
        self._open(succeed(crashed, self._registry.find(crashed.name), id_, self._context.wall_ms), crashed.environment)

    def _wait_for_start(self, session: SessionRow, tell: Tell) -> None:
        if session.status is SessionStatus.STARTING:
            self._tells.setdefault(session.id, []).append(tell)
        elif session.status is SessionStatus.ENDED:
            tell(session, start_failed(session, "It has already ended."))
        else:
            tell(session, None)

    def _check_name(self, name: str) -> None:
        known = self._registry.find(name)
        if self._live_one(name) is not None or (known is not None and known.connected):
            raise RelayError(
                ErrorCode.PERMISSION_DENIED, f"An agent {name} already exists; choose another name.", reason="name_in_use",
                name=name,
            )  # fmt: skip

    def release(
        self, asked: payloads.ReleasePayload, by: Agent | None, request_id: str, tell: Tell, caller: Caller = OWNER
    ) -> None:  # fmt: skip
        """Raises RelayError where there is nothing to end; else `tell` is called once, when it has ended."""
        name, releaser = asked.name, name_asker(by, caller)
        again = [s for s in self._sessions.values() if (s.name, s.released_by, s.release_id) == (name, releaser, request_id)]
        session = self._live_one(name) or (again[-1] if again else None)
        if session is None and (session := self._cancel_restart(name, caller)) is not None:
            tell(session, None)
            return
        if session is None:
            known = self._registry.find(name)
            if known is None:
                raise RelayError(ErrorCode.AGENT_NOT_FOUND, f"No agent {show(name)} has ever connected.", name=show(name, 80))
            sentence = f"{known.name} was not started by the daemon, or has ended; use `stop` for an agent that a person started."
            raise RelayError(ErrorCode.INVALID_TARGET, sentence, name=known.name, reason="not_spawned")
        right = SPAWN if caller.agent == agent_in(session.spawned_by) else SPAWN_ANY
        self._rights.check_on(caller, right, session.host)
        assert self._service is not None
        if session.status is SessionStatus.ENDED:
            tell(session, None)
            return
        if session.status is not SessionStatus.ENDING:
            self._stop(session, releaser, request_id, asked.reason or "")
        self._tells.setdefault(session.id, []).append(tell)

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

    def _cancel_restart(self, name: str, caller: Caller) -> SessionRow | None:
        """Of one that has crashed, and would be started again."""
        crashed = self._restarts.find(name)
        if crashed is not None:
            self._rights.check_on(caller, SPAWN if caller.agent == agent_in(crashed.spawned_by) else SPAWN_ANY, crashed.host)
            self._restarts.cancel(name)
            self._save()
        return crashed

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

    def _tell(self, session: SessionRow, error: RelayError | None) -> None:
        for tell in self._tells.pop(session.id, ()):
            tell(session, error)

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

    # --- the rest -----------------------------------------------------------------------------------------------------------

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
