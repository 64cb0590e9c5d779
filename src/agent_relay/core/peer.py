"""One connection, from the core's side: how far its handshake is, what it can do, whose it is."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from agent_relay.core.context import Context
from agent_relay.ports.connection import Connection, RemoteConnection
from agent_relay.ports.relay import PLAIN, PeerTraits
from agent_relay.protocol.encode import encode_envelope, encode_stored
from agent_relay.protocol.errors import RelayError, error_payload
from agent_relay.protocol.states import DAEMON, CloseReason, DaemonEvent, DaemonState, advance

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery
    from agent_relay.core.rate import Allowance
    from agent_relay.ports.relay import Deliver
    from agent_relay.ports.store import MessageRow


class Pace(StrEnum):
    """The closeness with which the next frame of an active connection is looked at."""

    CHECKED = "checked"  # who speaks, and whether its new token has arrived
    FAST = "fast"  # in the middle of its work: a SEND or an ACK needs no second look at who is speaking
    STOPPING = "stopping"  # the daemon stops: nothing new is accepted


class PaceEvent(StrEnum):
    HEARD = "heard"  # a sound frame
    CHANGED = "changed"  # its session has changed, or a frame was malformed
    STOPPED = "stopped"  # the daemon has begun to stop


PACE: dict[Pace, dict[PaceEvent, Pace]] = {
    Pace.CHECKED: {PaceEvent.HEARD: Pace.FAST, PaceEvent.CHANGED: Pace.CHECKED, PaceEvent.STOPPED: Pace.STOPPING},
    Pace.FAST: {PaceEvent.HEARD: Pace.FAST, PaceEvent.CHANGED: Pace.CHECKED, PaceEvent.STOPPED: Pace.STOPPING},
    Pace.STOPPING: {PaceEvent.HEARD: Pace.STOPPING, PaceEvent.CHANGED: Pace.STOPPING, PaceEvent.STOPPED: Pace.STOPPING},
}


class Peer:
    __slots__ = (
        "acks", "active", "agent", "allowance", "backpressure", "bad_frames", "close_reason", "closed",
        "confirmed", "connection", "context", "dedups", "deliver", "fast", "greeted_at", "guest", "hears_events", "held",
        "last_heard", "observer", "outgoing", "outgoing_bytes", "pace", "pinged",
        "state", "takes_control", "traits", "uid", "unwritten", "version", "window",
    )  # fmt: skip

    def __init__(
        self, context: Context, connection: Connection, uid: int, traits: PeerTraits = PLAIN, deliver: Deliver | None = None
    ) -> None:
        self.context = context
        self.connection = connection
        self.uid = uid
        self.deliver = deliver  # None: it is sent DELIVER
        self.traits = traits
        self.dedups = traits.dedups  # asked for every message
        self.guest = uid in context.limits.allowed_uids  # another user, who may send and read messages and nothing else
        self.state = DaemonState.HANDSHAKING
        self.active = False
        self.closed = False
        self.agent: Agent | None = None
        self.observer = False
        self.version = 1
        self.acks = False
        self.backpressure = False
        self.takes_control = False  # the relay runs this agent: it is sent CONTROL
        self.hears_events = False  # it may subscribe to events
        self.window = 0
        self.confirmed = True  # False: a new token was sent, and no frame has shown yet that it arrived
        self.greeted_at = context.steady_ms
        self.last_heard = context.steady_ms
        self.pinged = False
        self.bad_frames = 0
        self.pace = Pace.STOPPING if context.stopping else Pace.CHECKED
        self.fast = False  # its pace is FAST; asked for every frame
        self.held: list[bytes] = []  # frames that came before the session was durable
        self.outgoing: list[Delivery] = []  # put together for it right now
        self.outgoing_bytes = 0
        self.unwritten: list[Delivery] = []  # to a client that never acknowledges, until it has them: see `Ledger`
        self.allowance: Allowance | None = None
        self.close_reason: CloseReason | None = None

    @property
    def cluster_host(self) -> str:
        """The host of the cluster that its client is on; "": there is no cluster."""
        return self.connection.host if isinstance(self.connection, RemoteConnection) else self.context.host

    def advance(self, event: DaemonEvent) -> None:
        self.state = advance(DAEMON, self.state, event)
        self.active = self.state is DaemonState.ACTIVE
        self.closed = self.state is DaemonState.CLOSED
        self.set_pace(PaceEvent.CHANGED)

    def set_pace(self, event: PaceEvent) -> None:
        self.pace = advance(PACE, self.pace, event)
        self.fast = self.pace is Pace.FAST

    def say(self, kind: str, payload: Any) -> None:
        if self.closed:  # an answer that took longer than its asker stayed
            return
        context = self.context
        self.connection.send(encode_envelope(kind, context.frame_id(), context.wall_ms, payload, self.version))

    def say_error(self, error: RelayError, reply_to: str | None = None, *, fatal: bool = False) -> None:
        payload = error_payload(error, self.version) | {"fatal": fatal}
        if reply_to is not None:
            payload["reply_to"] = reply_to
        self.say("ERROR", payload)

    def say_nack(self, error: RelayError, nack_id: str, **more: Any) -> None:
        self.say("NACK", error_payload(error, self.version) | {"nack_id": nack_id} | more)

    def say_stored_again(self, row: MessageRow) -> None:
        """Of a SEND that came again."""
        if not self.closed:
            text, count, again = self.context.wall_text, len(row.addressed), self.context.frame_id()
            self.connection.send(encode_stored(self.version, text, row.client_id, row.id, count, row.queued, row.skipped, again))
