"""SPAWN and RELEASE: which agents the daemon started, how they are, and how they ended.

The work is done by `ports.AgentService`; this is the book about it. An agent's session begins here, so the id is known before
its wrapper has connected, and the wrapper's HELLO takes it up (`session_for`). The task is the first message from whoever
asked for the agent. All of it outlives the daemon: the wrapper runs on, and the next daemon finds it in the saved rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_relay.core.context import Context
from agent_relay.core.rate import check_rate
from agent_relay.core.registry import Registry
from agent_relay.core.removal import Removal
from agent_relay.core.rights import SPAWN, SPAWN_ANY, Rights
from agent_relay.core.sending import Sending
from agent_relay.core.spawn_checks import Pace, check_wish
from agent_relay.ports.agents import AgentService, EndReason, SessionRow, SessionStatus
from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.connection import RemoteConnection
from agent_relay.protocol import envelope
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name, show

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import payloads

START_MS = 60_000  # a CLI on a loaded machine; beyond that nobody waits for it
STOP_MS = 20_000  # for a program to end by itself after it was released
REMEMBERED = 100  # sessions that have ended
SHOWN_TASK = 200  # characters of a task in a list
BY_HUMAN = "human"
_TASK_AGAIN_MS = 1_000

Tell: TypeAlias = Callable[[SessionRow, RelayError | None], None]
OnChange: TypeAlias = Callable[[SessionRow], None]  # it runs, or it has ended


class Spawning:
    def __init__(
        self, context: Context, registry: Registry, sending: Sending, rights: Rights, on_change: OnChange, removal: Removal
    ) -> None:  # fmt: skip
        self._removal = removal
        self._context = context
        self._rights = rights
        self._registry = registry
        self._sending = sending
        self._on_change = on_change
        self._pace = Pace(context)
        self._service: AgentService | None = None
        self._sessions: dict[str, SessionRow] = {}  # by id, the oldest first
        self._tells: dict[str, list[Tell]] = {}  # by id: who waits for the start, or for the end
        self._due: dict[str, int] = {}  # by id: when the start or the end has taken too long
        self._tasks_at = 0
        self._hold = ""  # why nothing is started now

    def begin(self, service: AgentService, rows: Sequence[SessionRow]) -> None:
        """Before anybody connects. `rows`: what the daemon before us saved."""
        self._service = service
        for session in rows:
            self._sessions[session.id] = session
            if session.status is SessionStatus.ENDED:
                continue
            self._due[session.id] = self._context.steady_ms + START_MS
            if session.pid:
                service.adopt(session)
                if session.status is SessionStatus.ENDING:
                    service.stop(session, force=False)
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
            if isinstance(peer.connection, RemoteConnection):
                raise RelayError(
                    ErrorCode.FEATURE_UNSUPPORTED, "Agents of a cluster can be started and stopped only at the host that has the "
                    "seat; run this there, or wrap the agent here with `agent-relay -n NAME CLI`.",
                )  # fmt: skip
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
        if asked.environment or asked.permission_mode is not None:
            self._rights.check(caller, SPAWN_ANY)
        spawner = _name_of(by, caller)
        wish = (fold_name(asked.name), spawner, request_id)
        again = [s for s in self._sessions.values() if (fold_name(s.name), s.spawned_by, s.request_id) == wish]
        if again:
            self._wait_for_start(again[-1], tell)
            return
        if self._hold:
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, self._hold, reason="spawning_paused")
        check_wish(asked, self._context.limits)
        if asked.task and by is None:
            raise RelayError(ErrorCode.PERMISSION_DENIED, "Observers cannot send messages, so they cannot give a task.")
        self._check_name(asked.name)
        self._pace.check(len(self._live()))
        session = SessionRow(
            id="ses_" + self._context.ids.reserve(self._context.wall_ms)[0], name=asked.name, cli=asked.cli, cwd=asked.cwd or "",
            backend=asked.backend, spawned_by=spawner, started_at=self._context.wall_ms, request_id=request_id,
            permission_mode=asked.permission_mode, sandbox=self._wall_of(asked, caller), task=asked.task or None,
            is_ephemeral=asked.ephemeral,
        )  # fmt: skip
        assert self._service is not None
        self._service.start(session, asked.environment)
        self._pace.note()
        self._sessions[session.id] = session
        self._due[session.id] = self._context.steady_ms + START_MS
        self._wait_for_start(session, tell)
        self._context.log.note("spawning", agent=session.name, cli=session.cli, by=spawner, session_id=session.id)
        self._save()

    def _wall_of(self, asked: payloads.SpawnPayload, caller: Caller) -> dict[str, str] | None:
        """The wall around whoever asks: nobody behind one starts an agent in front of it."""
        spawner = None if caller.agent is None else self._registry.find(caller.agent)
        own = None if spawner is None else spawner.traits.meta.get("sandbox")
        if isinstance(own, dict):
            return {str(name): str(value) for name, value in own.items()}
        return {} if asked.sandbox else None

    def _wait_for_start(self, session: SessionRow, tell: Tell) -> None:
        if session.status is SessionStatus.STARTING:
            self._tells.setdefault(session.id, []).append(tell)
        elif session.status is SessionStatus.ENDED:
            tell(session, _start_failed(session, "It has already ended."))
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
        name, releaser = asked.name, _name_of(by, caller)
        again = [s for s in self._sessions.values() if (s.name, s.released_by, s.release_id) == (name, releaser, request_id)]
        session = self._live_one(name) or (again[-1] if again else None)
        if session is None:
            known = self._registry.find(name)
            if known is None:
                raise RelayError(ErrorCode.AGENT_NOT_FOUND, f"No agent {show(name)} has ever connected.", name=show(name, 80))
            sentence = f"{known.name} was not started by the daemon, or has ended; use `stop` for an agent that a person started."
            raise RelayError(ErrorCode.INVALID_TARGET, sentence, name=known.name, reason="not_spawned")
        self._rights.check(caller, SPAWN if caller.agent == _agent_in(session.spawned_by) else SPAWN_ANY)
        assert self._service is not None
        if session.status is SessionStatus.ENDED:
            tell(session, None)
            return
        if session.status is not SessionStatus.ENDING:
            if session.status is SessionStatus.STARTING:
                self._tell(session, _start_failed(session, "It was released before it ran."))
            session.status = SessionStatus.ENDING
            session.released_by, session.release_id = releaser, request_id
            session.release_note = asked.reason or ""
            self._due[session.id] = self._context.steady_ms + STOP_MS
            self._save()
            self._service.stop(session, force=False)
        self._tells.setdefault(session.id, []).append(tell)

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
        self._due.pop(session_id, None)
        self._on_change(session)
        self._save()
        self._tell(session, None)
        self._give_task(session)

    def failed(self, session_id: str, sentence: str) -> None:
        session = self._sessions[session_id]
        if session.status is SessionStatus.STARTING:
            session.is_failed = True
            self._tell(session, _start_failed(session, sentence))
            self._end(session, None)
        else:
            self.ended(session_id, None)

    def ended(self, session_id: str, exit_code: int | None) -> None:
        session = self._sessions[session_id]
        if session.status is SessionStatus.STARTING:
            self._tell(session, _start_failed(session, "It ended before it started."))
        if session.status is not SessionStatus.ENDED:
            self._end(session, exit_code)

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
        agent, sender = self._registry.find(session.name), self._registry.find(_agent_in(session.spawned_by))
        is_there = agent is not None and agent.connected and agent.session_id == session.id
        if session.task is None or session.is_task_sent or session.status is not SessionStatus.RUNNING:
            return
        if agent is None or sender is None or not is_there:
            return

        task = session.task

        def stored(is_stored: bool) -> None:
            if is_stored and not session.is_task_sent:
                session.is_task_sent = True
                session.task = task[:SHOWN_TASK]  # the rest is in the history
                self._save()

        self._sending.post(sender, agent, task, f"task-{session.id}", stored)

    # --- the rest -----------------------------------------------------------------------------------------------------------

    def clock_says(self, now: int) -> None:
        for id_ in [id_ for id_, due in self._due.items() if now >= due]:
            session = self._sessions[id_]
            self._due[id_] = now + STOP_MS
            if session.status is SessionStatus.STARTING:
                self._tell(session, _start_failed(session, f"It did not start within {START_MS // 1000} seconds."))
            if session.status in {SessionStatus.STARTING, SessionStatus.ENDING}:
                if session.pid and self._service is not None:
                    self._service.stop(session, force=True)
                else:
                    self._end(session, None)
            else:
                del self._due[id_]
        if self._sessions and now >= self._tasks_at:
            self._tasks_at = now + _TASK_AGAIN_MS
            for session in [session for session in self._ended() if self._takes_name_along(session)]:
                self._let_go(session)  # the daemon before us did not get to it, or the store failed
            for session in self._live():
                self._give_task(session)  # a store that failed may work again

    def describe(self) -> list[dict[str, Any]]:
        return [
            {
                "session_id": s.id, "agent": s.name, "cli": s.cli, "cwd": s.cwd, "backend": s.backend, "status": s.status.value,
                "permission_mode": s.permission_mode, "sandbox": s.sandbox is not None,
                "spawned_by": s.spawned_by, "task": s.task[:SHOWN_TASK] if s.task else None, "started_at": s.started_at,
                "pid": s.pid or None, "exit_code": s.exit_code,
                "ended_at": s.ended_at, "reason": s.reason.value if s.reason is not None else None,
            }
            for s in self._sessions.values()
        ]  # fmt: skip

    def _live(self) -> list[SessionRow]:
        return [session for session in self._sessions.values() if session.status is not SessionStatus.ENDED]

    def _live_one(self, name: str) -> SessionRow | None:
        key = fold_name(name)
        return next((session for session in self._live() if fold_name(session.name) == key), None)

    def is_live(self, name: str) -> bool:
        return self._live_one(name) is not None

    def forget(self, name: str) -> None:
        """Of an agent that has none now: its ended sessions, and what it was told to do in them."""
        key = fold_name(name)
        self._drop(session.id for session in self._ended() if fold_name(session.name) == key)

    def forget_old(self, before_ms: int) -> None:
        self._drop(session.id for session in self._ended() if (session.ended_at or 0) < before_ms)

    def _ended(self) -> list[SessionRow]:
        return [session for session in self._sessions.values() if session.status is SessionStatus.ENDED]

    def _drop(self, ids: Iterable[str]) -> None:
        gone = list(ids)
        for id_ in gone:
            del self._sessions[id_]
        if gone:
            self._save()

    def _forget_oldest(self) -> None:
        for session in self._ended()[:-REMEMBERED]:
            del self._sessions[session.id]

    def _save(self) -> None:
        if self._service is not None:
            self._service.save(list(self._sessions.values()))


def _name_of(by: Agent | None, caller: Caller) -> str:
    """For the record. What an agent asks of its wrapper is asked under its own name."""
    is_own = by is not None and caller.agent is not None and fold_name(caller.agent) == by.key
    if by is not None and (caller.agent is None or is_own):
        return by.name
    return caller.name or BY_HUMAN


def _agent_in(spawned_by: str) -> str:
    """The agent, by whichever way it asked."""
    return spawned_by.removeprefix("agent:").partition(" via ")[0]


def _start_failed(session: SessionRow, sentence: str) -> RelayError:
    return RelayError(
        ErrorCode.SERVICE_UNAVAILABLE, f"{session.name} could not be started. {sentence}", reason="start_failed"
    )  # fmt: skip
