"""One agent over a WebSocket: a peer of the relay like any other, in the words of ARC.

Implements `ports.Connection` for the relay and asyncio's protocol for the loop. A message counts as delivered when the client has
answered a ping that followed it; whatever it has not is kept for its next connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.connection import FULL_BYTES, REGISTERED_UID
from agent_relay.ports.relay import Handed, PeerHandle
from agent_relay.protocol import envelope as e
from agent_relay.protocol.arc.codes import ArcCode, ArcProblem, CloseCode
from agent_relay.protocol.decode import decode_daemon_frame
from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.framing import HEADER_BYTES
from agent_relay.protocol.states import CloseReason, advance
from agent_relay.transports.arc.frames import TEXT, FrameReader, Kind, encode_close, encode_frame, read_close
from agent_relay.transports.arc.incoming import Incoming
from agent_relay.transports.arc.outbox import Outbox
from agent_relay.transports.arc.phases import CLOSES, PHASES, REASONS, Phase, PhaseEvent
from agent_relay.transports.arc.receipts import explain_refusal
from agent_relay.transports.arc.unread import Unread

if TYPE_CHECKING:
    from agent_relay.transports.arc.hub import Hub
    from agent_relay.transports.arc.registrar import Record


T = TypeVar("T")

_OVER = frozenset({Phase.CLOSING, Phase.GONE})
_CATCH_UP_BYTES = 256 * 1024
_CLOSE_GRACE_S = 10.0  # how long a closed connection may take to read its last words
_MOST_ANSWERS_BYTES = 8 * 1024 * 1024  # that wait for a client which asks on; beyond that it is ended as too slow

log = logging.getLogger(__name__)


class ArcConnection(asyncio.Protocol):
    __slots__ = (
        "_early", "_hub", "_incoming", "_is_holding", "_out", "_peer", "_queued", "_reader", "_transport", "_unread",
        "_unsent_bytes", "_was_held", "address", "agent_id", "catching_up", "changes", "closed_with", "heard_ms", "is_full",
        "lookups", "notify_drained", "opened_ms", "phase", "pinged_ms", "record",
    )  # fmt: skip

    def __init__(self, hub: Hub, record: Record, transport: asyncio.Transport, address: str) -> None:
        self._hub = hub
        self.record = record
        self.agent_id = record.agent_id
        self.address = address
        self._transport = transport
        self._out = Outbox(transport)
        self._reader = FrameReader(hub.settings.max_bytes, hub.settings.hard_bytes)
        self._peer: PeerHandle | None = None
        self._early: list[bytes] = []  # what came before the relay had opened the session
        self._queued = False  # the pump will call flush at the end of this turn
        self._incoming = Incoming(hub, self)
        self._was_held = False
        self._unread = Unread()
        self.catching_up = True
        self.closed_with: CloseCode | None = None  # what the close said, once it is closing
        self.phase = Phase.OPENING
        self.lookups = 0  # commands that are being answered
        self.changes = 0  # of its subscriptions, that are being stored
        self.opened_ms = self.heard_ms = self.pinged_ms = hub.pump.steady_ms
        self._unsent_bytes = 0
        self._is_holding = False  # the relay keeps the rest of what it stored until what we have is gone
        self.is_full = False
        self.notify_drained = False

    @property
    def is_open(self) -> bool:
        return self.phase is Phase.OPEN

    @property
    def is_flooded(self) -> bool:
        """It asks on and does not read the answers."""
        return self._out.unsent_bytes > _MOST_ANSWERS_BYTES

    def _advance(self, event: PhaseEvent) -> None:
        self.phase = advance(PHASES, self.phase, event)

    def begin(self) -> None:
        """The upgrade is answered; now the relay has to know who came."""
        self._hub.pump.begin_turn()
        relay = self._hub.pump.relay
        self._peer = relay.accepted(self, REGISTERED_UID, self._hub.settings.peer_traits, self._deliver)
        payload = {"agent": self.agent_id, "cli": "arc", "version": 2, "capabilities": {}}
        hello = encode_envelope("HELLO", "hello", self._hub.clock.wall_ms(), payload)
        self.tell(relay.received, [hello[HEADER_BYTES:]])

    # --- from the loop --------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Never called: we take over a connection that is there."""

    def data_received(self, data: bytes) -> None:
        self._hub.pump.begin_turn()
        self.heard_ms = self._hub.pump.steady_ms
        if self.phase is Phase.OPENING:
            self._early.append(data)
            self._transport.pause_reading()
            return
        frames = self._reader.feed(data)
        if self.phase is not Phase.OPEN:
            self._look_for_close(frames)
        elif frames:
            self._hear(frames)
        if self._reader.broken is not None and self.phase is Phase.OPEN:
            self.end(self._reader.broken[0], self._reader.broken[1])

    def _look_for_close(self, frames: list[tuple[int, bytes]]) -> None:
        """Whatever else it still says is not heard any more, but read: to close with unread bytes is a reset."""
        if any(kind == Kind.CLOSE for kind, _ in frames):
            self._flush_last()

    def _hear(self, frames: list[tuple[int, bytes]]) -> None:
        incoming = self._incoming
        ping: bytes | None = None
        left = iter(frames)
        while (frame := incoming.skim(left)) is not None:
            kind, content = frame
            if kind == TEXT:
                incoming.hear(content)
            elif kind == Kind.PONG:
                self._hear_pong(content)
            elif kind == Kind.PING:
                ping = content  # of several at once only the last is answered
            elif kind == Kind.CLOSE:
                incoming.pass_on()
                self._hear_close(content)
                return
            elif kind == Kind.BINARY:
                incoming.turn_down(ArcProblem(ArcCode.INVALID_MESSAGE, "Binary frames are not accepted; send JSON as text."))
            elif kind == Kind.OVERSIZE:
                most = self._hub.settings.max_bytes
                sentence = f"A message of {content.decode()} bytes is too large; this relay accepts {most}."
                incoming.turn_down(ArcProblem(ArcCode.MESSAGE_TOO_LARGE, sentence))
            if self.phase is not Phase.OPEN:
                return  # what was said before is passed on, and nothing follows a close
        if ping is not None:
            self.write(encode_frame(Kind.PONG, ping))
        incoming.pass_on()

    def tell(self, tell: Callable[[PeerHandle, list[T]], None], said: list[T]) -> None:
        peer = self._peer
        if peer is None:
            return
        try:
            tell(peer, said)
        except Exception:
            log.exception("internal_error")
            self._hub.pump.relay.crashed(peer)

    def _hear_pong(self, content: bytes) -> None:
        unread = self._unread
        count = unread.answered(content)
        if count and self._peer is not None:
            self._hub.pump.relay.read(self._peer, count)
        if unread.should_ask or (self._is_holding and not unread.is_too_much):
            self._will_flush()

    def _hear_close(self, content: bytes) -> None:
        self._part(CloseReason.CLIENT_GONE)
        self.closed_with = CloseCode.NORMAL
        self._advance(PhaseEvent.ENDED)
        self.write(encode_close(read_close(content), ""))
        self._flush_last()
        asyncio.get_running_loop().call_later(_CLOSE_GRACE_S, self.abort)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._out.is_stalled = True

    def resume_writing(self) -> None:
        """Flushed with the others of this turn, and once: after a second time it would seem to have caught up."""
        self._out.is_stalled = False
        self._will_flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why it ended makes no difference
        self._out.drop()
        self._part(CloseReason.CLIENT_GONE)
        self._advance(PhaseEvent.LOST)
        self._hub.forget(self)

    def _part(self, reason: CloseReason) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            self._hub.pump.begin_turn()
            self._hub.pump.relay.disconnected(peer, reason)
            self._hub.parted(self)

    # --- from the relay -------------------------------------------------------------------------------------------------

    def _deliver(self, messages: list[Handed]) -> None:
        frames = self._hub.deliveries.encode(messages, self.agent_id, self.opened_ms)
        self._unread.gave(len(messages), len(frames))
        self.write(frames)

    def send(self, frame: bytes) -> None:
        match decode_daemon_frame(frame[HEADER_BYTES:]):
            case e.Welcome():
                self._welcomed()
            case e.Nack() as nack:
                problem = explain_refusal(nack.payload, self._incoming.find_ref(nack.payload.nack_id))
                if problem is not None:
                    self.refuse(problem)
            case _:
                pass  # what else the relay says is for clients that ask for it, or comes before a `close`

    def send_all(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.send(frame)

    def _welcomed(self) -> None:
        self._advance(PhaseEvent.WELCOMED)
        self.opened_ms = self._hub.pump.steady_ms
        self.write(self._hub.encode_welcome(self))
        self._hub.joined(self)
        if self._early:
            asyncio.get_running_loop().call_soon(self._hear_early)

    def _hear_early(self) -> None:
        early, self._early = self._early, []
        if self.phase is not Phase.GONE:
            self._transport.resume_reading()
        for data in early:
            self.data_received(data)

    def caller(self) -> Caller:
        return OWNER

    def runs(self, agent: str, pid: int | None) -> None:
        """Nobody asks."""

    def close(self, reason: CloseReason) -> None:
        self._peer = None
        self._hub.parted(self)
        self.end(CLOSES.get(reason, CloseCode.INTERNAL_ERROR), REASONS.get(reason, ""))

    # --- writing --------------------------------------------------------------------------------------------------------

    def refuse(self, problem: ArcProblem) -> None:
        self.write(self._hub.encode_error(self, problem))

    def write(self, frames: bytes) -> None:
        """Encoded frames, all of them whole, to be written with the others of this turn."""
        self._out.put(frames)
        self._unsent_bytes += len(frames)
        if self._unread.is_too_much or (self.catching_up and (self._is_holding or self._unsent_bytes > _CATCH_UP_BYTES)):
            self._hold()
        else:
            self.is_full = self._is_holding or self._unsent_bytes > FULL_BYTES
        self._will_flush()

    def _hold(self) -> None:
        """The relay keeps the rest until this is gone, and read. It is our haste that is held, not slowness of the peer."""
        self.catching_up = self._was_held = True
        self._is_holding = self.is_full = True

    def _will_flush(self) -> None:
        if not self._queued:
            self._queued = True
            self._hub.pump.will_flush(self)

    def ping(self) -> None:
        self.write(encode_frame(Kind.PING, self._unread.ask()))

    def flush(self) -> None:
        self._queued = False
        if self.phase is Phase.GONE:
            return
        if self._unread.should_ask and self._peer is not None:
            self._out.put(encode_frame(Kind.PING, self._unread.ask()))  # right behind the messages it asks about
        self._out.flush(self._hub.pump.steady_ms)
        unsent = self._unsent_bytes = self._out.unsent_bytes
        self._is_holding = False
        self.is_full = unsent > FULL_BYTES
        if self.phase is Phase.CLOSING:
            if self._reader.broken is not None and not unsent:
                self._hang_up()  # its own close cannot be read
            return
        if self._unread.is_too_much:
            self._hold()
        elif not unsent:
            self._drained()
        elif self.catching_up:  # it is our haste, not its slowness
            if unsent > _CATCH_UP_BYTES:
                self._is_holding = self.is_full = True
        elif unsent > self._hub.settings.slow_bytes:
            self.end_slow()

    def _drained(self) -> None:
        if self._was_held:
            self._was_held = False  # there may be more of what was stored
        elif self.is_open and not (self._peer is not None and self._hub.pump.relay.waits(self._peer)):
            self.catching_up = False
        if self.notify_drained and self._peer is not None:
            self.notify_drained = False
            self._hub.pump.begin_turn()
            self._hub.pump.relay.drained(self._peer)

    def stalled_ms(self, now_ms: int) -> int:
        return self._out.stalled_ms(now_ms)

    # --- the end --------------------------------------------------------------------------------------------------------

    def end_slow(self) -> None:
        """The peer does not read fast enough."""
        self._give_up("Too slow: reconnect to continue.", CloseReason.SLOW_CONSUMER)

    def end_silent(self) -> None:
        """The peer does not even answer pings."""
        seconds = self._hub.settings.silence_ms / 1000
        self._give_up(f"Silent for {seconds:g} s, not even a pong: reconnect to continue.", CloseReason.HEARTBEAT_TIMEOUT)

    def _give_up(self, sentence: str, reason: CloseReason) -> None:
        """It does not read. What waits for it is dropped here and stays with the relay."""
        self._part(reason)
        self._out.drop()
        self.end(CloseCode.SLOW_CONSUMER, sentence)

    def end(self, code: CloseCode, reason: str, closing: CloseReason = CloseReason.CLIENT_GONE) -> None:
        """Says why, and closes once the peer has answered, or has had time to."""
        if self.phase in _OVER:
            return
        self.closed_with = code
        self._part(closing)
        self._advance(PhaseEvent.ENDED)
        self.write(encode_close(code, reason))
        asyncio.get_running_loop().call_later(_CLOSE_GRACE_S, self.abort)
        self._transport.resume_reading()

    def _flush_last(self) -> None:
        self.flush()
        if self.phase is not Phase.GONE:
            self._transport.close()  # it writes what is left first

    def _hang_up(self) -> None:
        """There is nothing more to say; what it still sends is read and dropped until it hangs up too, or its time is over."""
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def abort(self) -> None:
        if self.phase is not Phase.GONE:
            self._transport.abort()


class RemoteArcConnection(ArcConnection):
    """Of an agent at another host of the cluster. Implements `ports.connection.RemoteConnection`."""

    __slots__ = ()

    @property
    def host(self) -> str:
        return self.address.partition("/")[0]

    @property
    def owner_proof(self) -> str:
        return ""  # no token makes an agent over ARC the owner
