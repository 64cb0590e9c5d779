"""SPAWN and RELEASE: starts and ends of agents that somebody asks for, and who may.

An agent's session begins here, so the id is known before its wrapper has connected, and the wrapper's HELLO takes it up
(`SessionLife.session_for`). What becomes of it is `session_life`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agent_relay.core.context import Context
from agent_relay.core.rate import check_rate
from agent_relay.core.registry import Registry
from agent_relay.core.removal import Removal
from agent_relay.core.rights import SPAWN, SPAWN_ANY, Rights
from agent_relay.core.sending import Sending
from agent_relay.core.spawned.book import agent_in, name_asker, start_failed
from agent_relay.core.spawned.checks import StartPace, check_name, check_wish, choose_wall
from agent_relay.core.spawned.counts import SessionCounts
from agent_relay.core.spawned.life import START_MS, OnChange, SessionLife, Tell
from agent_relay.core.spawned.places import Places
from agent_relay.core.spawned.restarts import succeed
from agent_relay.core.teams.rules import TeamRules
from agent_relay.ports.agents import AgentService, HostBook, SessionRow, SessionStatus
from agent_relay.ports.callers import OWNER, Caller
from agent_relay.protocol import envelope
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name, show

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import payloads


class Spawning(SessionLife):
    def __init__(
        self, context: Context, registry: Registry, sending: Sending, rights: Rights, on_change: OnChange, removal: Removal,
        rules: TeamRules, counts: SessionCounts,
    ) -> None:  # fmt: skip
        super().__init__(context, registry, sending, on_change, removal, counts, self._start_again)
        self._rights = rights
        self._rules = rules
        self._pace = StartPace(context)
        self._places = Places(context, rights, None)
        self._hold = ""  # why nothing is started now

    def begin(self, service: AgentService, rows: Sequence[SessionRow], hosts: HostBook | None = None) -> None:
        """Before anybody connects. `rows`: what the daemon before us saved."""
        self._places = Places(self._context, self._rights, hosts)
        self._take_up(service, rows)

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

    def _cancel_restart(self, name: str, caller: Caller) -> SessionRow | None:
        """Of one that has crashed, and would be started again."""
        crashed = self._restarts.find(name)
        if crashed is not None:
            self._rights.check_on(caller, SPAWN if caller.agent == agent_in(crashed.spawned_by) else SPAWN_ANY, crashed.host)
            self._restarts.cancel(name)
            self._save()
        return crashed
