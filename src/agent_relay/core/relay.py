"""The relay's front: everything that happens comes in here, and is passed to the part whose business it is.

The order of a turn: frames arrive (`received`), then `turn_ended` hands what was accepted to the store and fills the
windows of the recipients. The store calls back when a batch is durable, which begins and ends a turn of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from agent_relay.core.agents import Agent, tell_what_was_missed
from agent_relay.core.announcements import publish_request, publish_session, publish_state
from agent_relay.core.backpressure import Backpressure
from agent_relay.core.consensus.proposals import Proposals
from agent_relay.core.context import Context
from agent_relay.core.controls import Controls
from agent_relay.core.correlation import Correlations
from agent_relay.core.dead_letters import DeadLetters
from agent_relay.core.delivery import Ledger
from agent_relay.core.erasure import Erasure
from agent_relay.core.excluded_hosts import ExcludedHosts, read_excluded
from agent_relay.core.frame_dispatch import FrameDispatch
from agent_relay.core.handshake import Handshake
from agent_relay.core.housekeeping import Housekeeping
from agent_relay.core.journal import Journal
from agent_relay.core.limits import Limits
from agent_relay.core.lookups.queries import Queries
from agent_relay.core.loops import Loops
from agent_relay.core.membership import Membership
from agent_relay.core.peer import PaceEvent, Peer
from agent_relay.core.policy import Policy
from agent_relay.core.reception import Reception
from agent_relay.core.recovery import recover
from agent_relay.core.registered_names import RegisteredNames
from agent_relay.core.registry import Registry
from agent_relay.core.removal import Removal
from agent_relay.core.reports import OnInput, Reports
from agent_relay.core.requests import PendingRequest, Requests
from agent_relay.core.rest import Rest
from agent_relay.core.resume import Resumption
from agent_relay.core.rights import Rights
from agent_relay.core.sending import Sending
from agent_relay.core.spawned.counts import SessionCounts
from agent_relay.core.spawned.orders import Spawning
from agent_relay.core.teams.rules import TeamRules
from agent_relay.core.teams.shadow_notices import ShadowNotices
from agent_relay.core.teams.shadows import Shadows
from agent_relay.core.tokens import Tokens
from agent_relay.core.topic_lines import TopicLines
from agent_relay.core.watchers import Watchers
from agent_relay.events.bus import EventBus
from agent_relay.ports.connection import Connection
from agent_relay.ports.entropy import Entropy
from agent_relay.ports.events import EventSink, EventStats
from agent_relay.ports.leavings import Leavings, NoLeavings
from agent_relay.ports.log import Log
from agent_relay.ports.names import NameTraits
from agent_relay.ports.relay import PLAIN, Deliver, PeerTraits, ReadSend, Told
from agent_relay.ports.store import MessageStore, Snapshot
from agent_relay.protocol import envelope as e
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.states import CloseReason, DaemonEvent, DaemonState

PAUSE_MS = 1_000  # between two ticks, which are some 50 ms apart


class Relay:
    def __init__(
        self, limits: Limits, store: MessageStore, entropy: Entropy, log: Log, snapshot: Snapshot, steady_ms: int, wall_ms: int,
        *, policy: Policy | None = None, events: EventSink | None = None, bus: EventBus | None = None,
        owner_token: str | None = None,
        leavings: Leavings | None = None,
        event_stats: Callable[[], EventStats] | None = None,
        project: str = "",
        registered: NameTraits | None = None,
        host: str = "",
    ) -> None:  # fmt: skip
        self.context = context = Context(
            limits, entropy, log, snapshot.last_number, steady_ms, wall_ms, events, snapshot.first_seq, host
        )  # fmt: skip
        registered = registered or NameTraits()
        self._peers: dict[Peer, None] = {}
        self._heartbeat_at = self._ticked_at = steady_ms
        self.registry = Registry()
        self.rights = Rights(context, policy)
        self.journal = Journal(context)
        self.tokens = Tokens(context, self.journal, snapshot.spent_tokens)
        self.backpressure = Backpressure(context)
        self.correlations = Correlations(context, self.journal)
        self.loops = Loops(context, self.journal, self._look_at_queue)
        rest = Rest(context, self.registry, store, self.journal, snapshot.last_number)
        self.ledger = Ledger(context, self.journal, self.correlations, self.backpressure, self.loops, rest)
        self.shadows = Shadows(context, self.registry)
        self.rules = TeamRules(context, self.rights, self.shadows, self.keep_document, snapshot.documents)
        self.sending = Sending(
            context, self.registry, store, self.journal, self.ledger, self.correlations, self.backpressure, self.rules,
            self.shadows, keeps_registered=registered.keeps_offline,
        )  # fmt: skip
        self._shadow_notices = ShadowNotices(
            context, self.registry, self.sending, self.shadows, self.keep_document, snapshot.documents
        )
        self.topic_lines = topic_lines = TopicLines(context, self.registry, self.rights, self.keep_document, snapshot.documents)
        self.rules.on_set.append(self._shadow_notices.changed)
        self._watchers = Watchers(context, bus)
        removal = Removal(context, self.registry, self.tokens, self.sending.committer, self.ledger.owed, registered)
        self.session_counts = counts = SessionCounts()
        self.spawning = Spawning(
            context,
            self.registry,
            self.sending,
            self.rights,
            partial(publish_session, context, counts),
            removal,
            self.rules,
            counts,
        )
        self.requests = Requests(context, self.rights.policy_of, self._request_changed)
        self.queries = Queries(
            context, self.registry, store, self.journal, self.sending, self.backpressure, self.loops, self.requests,
            self.spawning, self.rules, self.shadows, topic_lines, event_stats, project,
        )  # fmt: skip
        self.on_input: list[OnInput] = [self.loops.new_input]  # told of every agent that a person gave something new to do
        resumption = Resumption(context, self.registry, store, self.journal, self.ledger)
        self._handshake = Handshake(
            context, self.registry, self.tokens, self.sending, self.ledger, resumption, self._end, self._opened,
            self.spawning.session_for, self.rights, owner_token,
        )  # fmt: skip
        self.proposals = Proposals(
            context, self.registry, self.sending, self.backpressure, self.rights, self.keep_document, snapshot.documents
        )
        erasure = Erasure(
            context, self.registry, self.tokens, self.sending.committer, self.ledger.owed, self.spawning, store,
            leavings or NoLeavings(), self._handshake.is_arriving, self.rights, removal,
            self.proposals,
        )  # fmt: skip
        self.excluded = ExcludedHosts(context, self.rights, self.keep_document, read_excluded(snapshot.documents))
        self._controls = Controls(context, self.registry, self.requests, self.on_input, self.rights, self.rules)
        frames = FrameDispatch(
            context, self.sending, self.ledger, self.correlations, Membership(self.registry, self.sending.committer, self.rights),
            Reports(context, store, self.journal, self.requests, self.on_input, counts),
            self._controls, self.queries, DeadLetters(self.registry, store, self.journal, self.sending), self.spawning,
            self._watchers, erasure, self.rights, self._end, self.excluded, self.rules, self.proposals,
            topic_lines,
        )  # fmt: skip
        self._reception = Reception(context, self.tokens, self.sending, self.ledger, self._handshake, frames, self._end)
        self.names = RegisteredNames(
            context, self.registry, self.sending.committer, self.ledger.owed, registered.kind, self._handshake.is_arriving
        )
        self._housekeeping = Housekeeping(
            context, self.registry, self.tokens, self.journal, self.sending.committer, store, self.spawning
        )
        recover(snapshot, context, self.registry, self.tokens, self.journal, self.ledger)

    # --- what the transport says ----------------------------------------------------------------------------------------

    def accepted(self, connection: Connection, uid: int, traits: PeerTraits = PLAIN, deliver: Deliver | None = None) -> Peer:
        peer = Peer(self.context, connection, uid, traits, deliver)
        self.admit(peer)
        return peer

    def admit(self, peer: Peer) -> None:
        """One that somebody in this process has made."""
        self._peers[peer] = None

    def heard(self, peer: Peer, frame: e.ClientFrame) -> None:
        """One frame of a client in this process, which never was bytes."""
        self._reception.heard(peer, frame)

    def received(self, peer: Peer, frames: list[bytes]) -> None:
        self._reception.received(peer, frames)

    def sent(self, peer: Peer, sends: list[ReadSend]) -> None:
        self._reception.sent(peer, sends)

    def sent_asking(self, peer: Peer, send: ReadSend, told: Told) -> None:
        self._reception.sent_asking(peer, send, told)

    def sent_inside(
        self, peer: Peer, client_id: str, to: str | list[str] | None, topic: str, payload: dict[str, Any], meta: dict[str, Any],
        told: Told,
    ) -> None:  # fmt: skip
        self._reception.sent_inside(peer, client_id, to, topic, payload, meta, told)

    def oversized(self, peer: Peer, size_bytes: int) -> None:
        if peer.closed:
            return
        limit = self.context.limits.max_frame_bytes
        peer.say_error(
            RelayError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"A frame of {size_bytes} bytes is larger than the {limit} this daemon accepts.",
                size_bytes=size_bytes,
                max_frame_bytes=limit,
            ),
            fatal=True,
        )
        self._end(peer, CloseReason.FRAME_TOO_LARGE)

    def drained(self, peer: Peer) -> None:
        """Everything queued for this connection has left."""
        self.ledger.writable(peer)
        self._watchers.drained(peer)

    def read(self, peer: Peer, count: int) -> None:
        self.ledger.read(peer, count)

    def waits(self, peer: Peer) -> bool:
        return peer.agent is not None and peer.agent.mailbox.waiting > 0

    def crashed(self, peer: Peer) -> None:
        """Something of ours failed while hearing this client. It learns no more than that; the log has the rest."""
        if not peer.closed:
            peer.say_error(RelayError(ErrorCode.INTERNAL_ERROR), fatal=True)
            self._end(peer, CloseReason.INTERNAL_ERROR)

    def disconnected(self, peer: Peer, reason: CloseReason = CloseReason.CLIENT_GONE) -> None:
        """The connection is gone, whatever we still had to say."""
        if not peer.closed:
            self._part(peer, reason)

    def keep_document(self, name: str, content: bytes, then: Callable[[], None] | None = None) -> None:
        """Stores it with the next batch, for whoever opens the store next (`Snapshot.documents`); an empty one removes what was
        there. `then` is called once it is durable, however long that takes."""
        self.journal.keep(name, content)
        if then is not None:
            self.journal.then(then)

    def turn_ended(self) -> None:
        self.sending.committer.flush()
        self.ledger.pump()
        if self.journal.is_awaited:  # something ended while the windows were filled
            self.sending.committer.flush()
        self._watchers.pump()

    @property
    def is_gathering(self) -> bool:
        return self.sending.committer.gathering.is_holding

    def gathered(self) -> None:
        self.sending.committer.gathering.release()

    # --- what the clock says ----------------------------------------------------------------------------------------------

    def clock_says(self, steady_ms: int, wall_ms: int) -> None:
        """The moment of what follows. Cheap: call it at the start of every turn."""
        self.context.clock_says(steady_ms, wall_ms)

    def tick(self) -> None:
        """Does what has become due: several times a second. After a pause (the daemon was stopped, or had no processor) clients
        are heard first: nothing is due before the next tick, and nobody counts as silent for that long."""
        now = self.context.steady_ms
        pause, self._ticked_at = now - self._ticked_at, now
        if pause >= PAUSE_MS:
            for peer in self._peers:
                peer.last_heard += pause
                peer.greeted_at += pause
            self.turn_ended()
            return
        self.ledger.clock_says(now)
        self.loops.clock_says(now)
        self.requests.clock_says(now)
        self.spawning.clock_says(now)
        self._controls.clock_says(now)
        self.correlations.clock_says(now)
        self.sending.repetitions.clock_says(now)
        self.proposals.clock_says(now)
        if now - self._heartbeat_at >= min(self.context.limits.heartbeat_ms, self.context.limits.handshake_timeout_ms) // 8:
            self._heartbeat_at = now
            self._check_peers(now)
        self._housekeeping.clock_says(now)
        self.turn_ended()

    def _check_peers(self, now: int) -> None:
        limits = self.context.limits
        for peer in list(self._peers):
            silent = now - peer.last_heard
            if peer.traits.has_heartbeat:
                continue
            if peer.state is DaemonState.HANDSHAKING:
                if now - peer.greeted_at >= limits.handshake_timeout_ms:
                    self._end(peer, CloseReason.HANDSHAKE_TIMEOUT)
            elif silent >= 2 * limits.heartbeat_ms and not peer.closed:
                self._end(peer, CloseReason.HEARTBEAT_TIMEOUT)
            elif silent >= limits.heartbeat_ms and not peer.pinged and peer.active:
                peer.pinged = True
                peer.say("PING", {"nonce": self.context.frame_id()})

    # --- stopping -----------------------------------------------------------------------------------------------------------

    def begin_shutdown(self) -> None:
        """No new sessions, no new messages; what was accepted is still stored and answered."""
        self.context.stopping = True
        for peer in self._peers:
            peer.set_pace(PaceEvent.STOPPED)
        self.sending.committer.when_written(lambda: None)
        self.turn_ended()

    @property
    def settled(self) -> bool:
        """Nothing is on its way into the store."""
        return self.sending.committer.idle

    def say_goodbye(self) -> None:
        for peer in list(self._peers):
            peer.say("BYE", {"reason": "shutdown"})
            self._end(peer, CloseReason.SHUTDOWN)
        self.sending.committer.when_written(lambda: None)
        self.turn_ended()

    def _request_changed(self, request: PendingRequest, change: str, by: str, answer: str) -> None:
        publish_request(self.context, request, change, by, answer)
        self.context.log.note("request", agent=request.agent.name, id=request.id, change=change, by=by)

    def _look_at_queue(self, agent: Agent) -> None:
        self.ledger.wake(agent)

    # --- coming and going -------------------------------------------------------------------------------------------------------

    def _opened(self, peer: Peer) -> None:
        """WELCOME or SYNC is out: the agent is here."""
        agent = peer.agent
        if agent is not None:
            self.registry.connected[agent.key] = agent
            self.names.changed(agent, is_here=True)
            self.context.log.note("connected", agent=agent.name, session_id=agent.session_id, uid=peer.uid)
            tell_what_was_missed(agent)
            self.spawning.connected(agent)
            self.loops.connected(agent, guarded=peer.takes_control)
            if not peer.takes_control:  # a wrapper says itself what its agent is doing
                publish_state(self.context, agent)
            self._shadow_notices.opened(agent)
            self.ledger.wake(agent)
        held, peer.held = peer.held, []
        confirmed, peer.confirmed = peer.confirmed, True  # what was said before WELCOME does not show that it arrived
        self.received(peer, held)
        peer.confirmed = confirmed
        peer.set_pace(PaceEvent.CHANGED)

    def _end(self, peer: Peer, reason: CloseReason) -> None:
        """We close it."""
        if peer.closed:
            return
        self._part(peer, reason)
        peer.connection.close(reason)

    def _part(self, peer: Peer, reason: CloseReason) -> None:
        peer.advance(DaemonEvent.CLOSED)
        peer.close_reason = reason
        self._peers.pop(peer, None)
        self._watchers.parted(peer)
        agent = peer.agent
        if agent is None or agent.peer is not peer:
            return
        agent.peer = None
        agent.report = None
        agent.last_seen_at = self.context.wall_ms
        if self.registry.connected.pop(agent.key, None) is not None:
            publish_state(self.context, agent)
            self.names.changed(agent, is_here=False)
        self.requests.disconnected(agent)
        self.ledger.disconnected(agent, peer)
        if not peer.traits.keeps_offline:
            self.ledger.owed.drop(agent)
        self.journal.agent_changed(agent)
        self.spawning.parted(agent)
        self.context.log.note("disconnected", agent=agent.name, session_id=agent.session_id, reason=reason.value)
