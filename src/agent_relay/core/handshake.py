"""HELLO and RESUME: who a connection is, and where it goes on.

The session is durable before it is welcomed, so a token that a client holds is one the daemon knows, whatever happens.
What the client says meanwhile is held and heard in order once the session is open.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any

from agent_relay.core.agents import Agent, Traits
from agent_relay.core.context import Context
from agent_relay.core.delivery import Ledger
from agent_relay.core.rate import Allowance
from agent_relay.core.registry import Registry
from agent_relay.core.resume import Resumption
from agent_relay.core.rights import NAMES, Rights, is_persons_name
from agent_relay.core.sending import Sending
from agent_relay.core.tokens import Tokens, TokenVerdict
from agent_relay.ports.connection import NOBODY_UID, RemoteConnection, StandIn
from agent_relay.ports.store import Batch, MemberRow, StoreError
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_agent_name, fold_name, is_own, show
from agent_relay.protocol.negotiation import negotiate_capabilities, negotiate_version, negotiate_window
from agent_relay.protocol.states import CloseReason, DaemonEvent
from agent_relay.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope

SERVER_NAME = "agent-relay"


class Handshake:
    def __init__(
        self, context: Context, registry: Registry, tokens: Tokens, sending: Sending, ledger: Ledger, resumption: Resumption,
        end: Callable[[Peer, CloseReason], None], opened: Callable[[Peer], None],
        session_for: Callable[[str, dict[str, Any]], str | None], rights: Rights, owner_token: str | None,
    ) -> None:  # fmt: skip
        self._rights = rights
        self._owner_token = owner_token  # None: nobody can show that they are the owner
        self._context = context
        self._registry = registry
        self._tokens = tokens
        self._committer = sending.committer
        self._recall = sending.repetitions.recall
        self._prepare = ledger.prepare
        self._resumption = resumption
        self._end = end
        self._opened = opened
        self._session_for = session_for  # by name and meta: the session that was promised to it
        self._arriving: dict[str, Agent] = {}  # new names whose first session is being stored: nobody can write to them yet

    # --- HELLO --------------------------------------------------------------------------------------------------------

    def hello(self, peer: Peer, frame: envelope.Hello) -> None:
        payload = frame.payload
        try:
            peer.version = negotiate_version(payload.version)
            check_agent_name(payload.agent)
            traits = Traits(
                meta=payload.meta or {},
                capabilities=_capabilities(peer, payload.capabilities),
                version=peer.version,
                max_inflight=negotiate_window(payload.capabilities, self._context.limits.max_inflight),
            )
            if payload.mode == "observer":
                self._open_observer(peer, frame, traits)
                return
            token = payload.session.resume_token if payload.session is not None else None
            agent = self._registry.find(payload.agent) or self._arriving.get(fold_name(payload.agent))
            resumes = token is not None and self._may_resume(peer, agent, token, payload.agent)
            is_owner = False
            traits.wrapped = "control" in traits.capabilities or (agent is not None and agent.traits.wrapped)
            if not resumes:
                is_owner = self._is_owner(peer, payload.session.owner_token if payload.session is not None else None)
                self._check_claim(peer, payload.agent, agent, traits, is_owner=is_owner)
        except RelayError as error:
            self._refuse_surely(peer, error, frame.id)
            return
        joins = payload.join_defaults and not peer.guest
        self._open(
            peer, frame.id, agent, payload.agent, payload.cli, traits, token if resumes else None, is_owner=is_owner, joins=joins
        )

    def is_arriving(self, name: str) -> bool:
        return fold_name(name) in self._arriving

    def _open_observer(self, peer: Peer, frame: envelope.Hello, traits: Traits) -> None:
        peer.observer = True
        self._equip(peer, traits)
        peer.advance(DaemonEvent.GREETED)
        session = "ses_" + self._context.ids.reserve(self._context.wall_ms)[0]
        self._welcome(peer, frame.id, session, self._context.entropy.token(), traits, frame.payload.agent)

    def _may_resume(self, peer: Peer, agent: Agent | None, token: str, name: str) -> bool:
        """True: the session goes on. False: as if no token had been given. Raises where that would be wrong."""
        match self._tokens.judge(agent, token, peer.uid):
            case TokenVerdict.GOOD:
                return True
            case TokenVerdict.UNKNOWN:
                return False
            case TokenVerdict.EXPIRED:
                raise _Stale(ErrorCode.RESUME_TOO_OLD, "The session ended too long ago; send HELLO without its token.")
            case TokenVerdict.FOREIGN:
                raise RelayError(ErrorCode.PERMISSION_DENIED, f"That token does not belong to {name}.", reason="bad_token")
            case TokenVerdict.REPLAYED:
                assert agent is not None
                self._revoke(agent)
                raise RelayError(
                    ErrorCode.PERMISSION_DENIED,
                    "That token was used before, so somebody has a copy. The session is revoked; send HELLO without a token.",
                    reason="token_reused",
                )

    def _is_owner(self, peer: Peer, shown: str | None) -> bool:
        if not shown or not self._owner_token or peer.connection.caller().agent is not None:
            return False
        token = shown.encode("utf-8", "replace")
        if isinstance(peer.connection, RemoteConnection):
            return hmac.compare_digest(hashlib.sha256(token).hexdigest(), peer.connection.owner_proof)
        return hmac.compare_digest(token, self._owner_token.encode())

    def _check_claim(self, peer: Peer, name: str, agent: Agent | None, traits: Traits, *, is_owner: bool) -> None:
        """Whether somebody without the session's token may come under this name at all; raises where not."""
        self._rights.check(peer.connection.caller(), NAMES)
        is_persons = is_persons_name(name, self._context.limits.owner)
        if (is_own(name) or is_persons) and not is_owner:
            raise RelayError(
                ErrorCode.INVALID_TARGET, f"The name {name!r} is reserved for the relay's owner; choose another.", name=name
            )
        if is_persons and "control" in traits.capabilities:
            raise RelayError(
                ErrorCode.INVALID_TARGET, f"{name} is your own name here; your messages are sent under it. Give the agent "
                "another name with -n.", name=name,
            )  # fmt: skip
        if is_persons and agent is not None and agent.traits.wrapped:
            raise _in_use(agent)  # an agent had it before names of people were theirs
        if agent is not None and not agent.connected and agent.traits.wrapped and not is_owner:
            raise RelayError(
                ErrorCode.PERMISSION_DENIED, f"The name {agent.name} belongs to an agent that the relay ran. Only its own token "
                "can take it over, or the owner, with the token in the file api-token of the state directory.",
                reason="name_owned", name=agent.name,
            )  # fmt: skip

    def _revoke(self, agent: Agent) -> None:
        self._context.log.note("session_revoked", agent=agent.name, session_id=agent.session_id)
        self._tokens.revoke(agent)
        if agent.peer is not None:
            agent.peer.say("BYE", {"reason": "revoked"})
            self._end(agent.peer, CloseReason.REVOKED)

    def _open(
        self, peer: Peer, request_id: str, agent: Agent | None, name: str, cli: str | None, traits: Traits, token: str | None,
        *, is_owner: bool, joins: bool,
    ) -> None:  # fmt: skip
        try:
            self._claim(peer, agent, resumes=token is not None, is_owner=is_owner)
        except RelayError as error:
            self._refuse_surely(peer, error, request_id)
            return
        if agent is None:
            agent = Agent(name, peer.uid, self._context.wall_ms, self._context.limits.dedup_ids)
            self._arriving[agent.key] = agent
        before = (agent.session_id, agent.token_hash, agent.previous_token_hash)
        if token is None:
            promised = self._session_for(name, traits.meta)
            agent.session_id = promised or "ses_" + self._context.ids.reserve(self._context.wall_ms)[0]
            agent.notices.clear()
        traits.first_number = agent.traits.first_number
        channels = self._default_channels() if joins and not agent.traits.has_defaults else []
        traits.has_defaults = agent.traits.has_defaults or bool(channels)
        traits.at_leisure = agent.traits.at_leisure
        agent.traits = traits
        agent.cli = cli if cli is not None else agent.cli
        agent.last_seen_at = self._context.wall_ms
        fresh = self._tokens.issue(agent, token)
        self._hold(peer, agent, traits)

        def settled(error: StoreError | None) -> None:
            if agent.peer is peer or agent.peer is None:
                self._arriving.pop(agent.key, None)
            if error is None:
                self._registry.add(agent)
                for channel in channels:
                    self._registry.join(agent, channel)
                if not peer.closed:
                    self._welcome(peer, request_id, agent.session_id, fresh, traits, agent.name)
                return
            if self._registry.find(agent.name) is None and agent.key not in self._arriving:
                self._tokens.drop(agent)
            if agent.peer is peer:
                self._undo(peer, agent, before)
                traits.has_defaults = traits.has_defaults and not channels
                self._refuse(peer, _unavailable(error), request_id)

        self._save(agent, settled, [MemberRow(channel, agent.name) for channel in channels])

    def _default_channels(self) -> list[str]:
        """As they are spelled by whoever was there first."""
        known = ((self._registry.channel(name), name) for name in self._context.limits.default_channels)
        return [name if found is None else found.name for found, name in known]

    def _claim(self, peer: Peer, agent: Agent | None, *, resumes: bool, is_owner: bool = False) -> None:
        """Makes the name free for this connection, or raises."""
        if agent is None:
            return
        if agent.uid == NOBODY_UID:
            agent.begin_anew(peer.uid, self._context.wall_ms, self._context.ids.reserve(self._context.wall_ms)[1])
            agent.hidden = False
            return
        if agent.uid != peer.uid:
            raise RelayError(
                ErrorCode.PERMISSION_DENIED,
                f"The name {agent.name} belongs to another user.",
                reason="name_in_use",
                name=agent.name,
            )
        if agent.peer is None:
            return
        if not resumes and not (is_owner and _yields(agent.peer)):
            raise _in_use(agent)
        agent.peer.say("BYE", {"reason": "superseded"})
        self._end(agent.peer, CloseReason.SUPERSEDED)

    def _undo(self, peer: Peer, agent: Agent, before: tuple[str, str, str | None]) -> None:
        peer.agent = None
        agent.peer = None
        agent.session_id = before[0]
        self._tokens.restore(agent, before[1], before[2])

    # --- RESUME -------------------------------------------------------------------------------------------------------

    def resume(self, peer: Peer, frame: envelope.Resume) -> None:
        payload = frame.payload
        agent = self._registry.find(payload.agent)
        try:
            if agent is None:
                raise _Stale(ErrorCode.RESUME_TOO_OLD, f"There is no session of {show(payload.agent)}; send HELLO.")
            if not self._may_resume(peer, agent, payload.resume_token, payload.agent):
                raise RelayError(ErrorCode.PERMISSION_DENIED, f"That token does not belong to {agent.name}.", reason="bad_token")
            if payload.session_id is not None and payload.session_id != agent.session_id:
                raise _Stale(ErrorCode.RESUME_TOO_OLD, "That session has ended; send HELLO.")
        except RelayError as error:
            self._refuse_surely(peer, error, frame.id)
            return
        traits = agent.traits
        if payload.version is not None:
            traits.version = min(max(payload.version, 1), 2)
        if payload.capabilities is not None:
            traits.capabilities = _capabilities(peer, payload.capabilities)
            traits.max_inflight = negotiate_window(payload.capabilities, self._context.limits.max_inflight)
        peer.version = traits.version
        self._claim(peer, agent, resumes=True)
        before = (agent.session_id, agent.token_hash, agent.previous_token_hash)
        fresh = self._tokens.issue(agent, payload.resume_token)
        agent.last_seen_at = self._context.wall_ms
        self._hold(peer, agent, traits)

        def settled(error: StoreError | None) -> None:
            if peer.closed:
                return
            if error is not None:
                self._undo(peer, agent, before)
                self._refuse(peer, _unavailable(error), frame.id)
                return
            self._resumption.start(agent, payload.streams, replayed)

        def replayed(points: list[dict[str, Any]] | RelayError) -> None:
            if peer.closed:
                return
            if isinstance(points, RelayError):
                peer.agent = None
                agent.peer = None
                peer.held.clear()
                peer.advance(DaemonEvent.REFUSED)
                peer.say_nack(points, frame.id)
                return
            peer.say(
                "SYNC",
                {"session_id": agent.session_id, "resume_token": fresh, "streams": points, "reply_to": frame.id},
            )
            self._begin(peer)

        self._save(agent, settled)

    # --- common -------------------------------------------------------------------------------------------------------

    def _hold(self, peer: Peer, agent: Agent, traits: Traits) -> None:
        peer.agent = agent
        agent.peer = peer
        traits.host = peer.cluster_host
        self._equip(peer, traits)
        peer.advance(DaemonEvent.GREETED)

    def _equip(self, peer: Peer, traits: Traits) -> None:
        peer.acks = "ack" in traits.capabilities
        peer.backpressure = "backpressure" in traits.capabilities
        peer.takes_control = "control" in traits.capabilities
        peer.hears_events = "events" in traits.capabilities
        peer.window = traits.max_inflight
        limit = self._context.limits.rate_limit
        peer.allowance = Allowance(limit, self._context.steady_ms) if limit else None

    def _save(
        self, agent: Agent, settled: Callable[[StoreError | None], None], members: Sequence[MemberRow] = ()
    ) -> None:  # fmt: skip
        def fill(batch: Batch) -> None:
            batch.agents.append(agent.row())
            batch.members += members

        def recalled(error: StoreError | None) -> None:
            if error is None:
                self._prepare(agent, lambda: settled(None))
            else:
                settled(error)

        self._committer.change(fill, lambda error: self._recall(agent, recalled) if error is None else settled(error))

    def _welcome(self, peer: Peer, request_id: str, session_id: str, token: str, traits: Traits, name: str) -> None:
        limits = self._context.limits
        peer.say(
            "WELCOME",
            {
                "session_id": session_id,
                "resume_token": token,
                "negotiated_version": peer.version,
                "capabilities": traits.capabilities,
                "agent": name,
                "server": {
                    "max_frame_bytes": limits.max_frame_bytes,
                    "heartbeat_ms": limits.heartbeat_ms,
                    "name": SERVER_NAME,
                    "version": __version__,
                    "queue_capacity": limits.queue_capacity,
                    "max_inflight": limits.max_inflight,
                },
                "reply_to": request_id,
            },
        )
        self._begin(peer)

    def _begin(self, peer: Peer) -> None:
        peer.confirmed = peer.agent is None
        peer.advance(DaemonEvent.OPENED)
        self._opened(peer)

    def _refuse_surely(self, peer: Peer, error: RelayError, request_id: str) -> None:
        """Tells why a token or a name is refused once a batch behind it is stored: a daemon that cannot store may be one
        of several hosts, and no longer the one that knows."""
        if error.code not in {ErrorCode.PERMISSION_DENIED, ErrorCode.RESUME_TOO_OLD}:
            self._refuse(peer, error, request_id)
            return
        peer.advance(DaemonEvent.GREETED)

        def settled(failure: StoreError | None) -> None:
            if peer.closed:
                return
            if failure is None and isinstance(error, _Stale):
                peer.held.clear()
                peer.advance(DaemonEvent.REFUSED)
                peer.say_nack(error, request_id)
            else:
                self._refuse(peer, error if failure is None else _unavailable(failure), request_id)

        self._committer.change(lambda _batch: None, settled)

    def _refuse(self, peer: Peer, error: RelayError, request_id: str) -> None:
        peer.say_error(error, request_id, fatal=True)
        self._end(peer, CloseReason.HANDSHAKE_REFUSED)


class _Stale(RelayError):  # noqa: N818 - named by the condition
    """A session that is over; the same connection may start a new one."""


def _yields(peer: Peer) -> bool:
    return isinstance(peer.connection, StandIn) and peer.connection.yields


def _in_use(agent: Agent) -> RelayError:
    return RelayError(
        ErrorCode.PERMISSION_DENIED, f"An agent named {agent.name} is connected; choose another name, or resume with its token.",
        reason="name_in_use", name=agent.name,
    )  # fmt: skip


def _unavailable(error: StoreError) -> RelayError:
    return RelayError(ErrorCode.SERVICE_UNAVAILABLE, f"The session could not be stored ({error}).", retry_after_ms=1_000)


def _capabilities(peer: Peer, asked: dict[str, Any]) -> list[str]:
    """The relay runs no agent of another user."""
    return [one for one in negotiate_capabilities(asked) if one != "control" or not peer.guest]
