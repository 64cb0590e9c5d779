"""One connection over a byte stream: frames in, frames out, and what to do with a reader that does not read.

Nothing is given to the system before it has taken what it was given last, so `unsent_bytes` is all that stands between
us and the peer, and a peer that stops reading stops only its own deliveries.
"""

from __future__ import annotations

import asyncio
import logging
from typing import cast

import msgspec

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.connection import FULL_BYTES
from agent_relay.ports.relay import PeerHandle
from agent_relay.protocol.framing import HEADER_BYTES, FrameDecoder
from agent_relay.protocol.states import CloseReason
from agent_relay.transports.pump import Pump

_STOP_READING_BYTES = 32 * 1024 * 1024  # a client that sends and never reads its receipts is not read from beyond this
_CLOSE_GRACE_S = 5.0  # how long a closed connection may take to read its last words

log = logging.getLogger(__name__)


class _Outline(msgspec.Struct):
    type: str = "?"
    id: str = "?"
    to: str | list[str] | None = None


_decode = msgspec.json.Decoder(_Outline).decode


def trace(what: str, frames: list[bytes]) -> None:
    """For `--debug`: the type and the ids of every frame, and nothing else of it."""
    for frame in frames:
        try:
            outline = _decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            outline = _Outline()
        fields = {"type": outline.type[:64], "id": outline.id[:128], "to": outline.to, "bytes": len(frame)}
        log.debug(what, extra={"relay_fields": fields})


class StreamConnection(asyncio.Protocol):
    """Implements `ports.Connection` for the relay and asyncio's protocol for the loop."""

    __slots__ = (
        "_closing",
        "_decoder",
        "_out",
        "_peer",
        "_pump",
        "_queued",
        "_reading_paused",
        "_seen_at",
        "_seen_bytes",
        "_stalled",
        "_transport",
        "is_full",
        "notify_drained",
        "unsent_bytes",
    )  # fmt: skip

    def __init__(self, pump: Pump, max_frame_bytes: int) -> None:
        self._pump = pump
        self._decoder = FrameDecoder(max_frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._peer: PeerHandle | None = None
        self._out: list[bytes] = []
        self._queued = False  # the pump will call flush at the end of this turn
        self._stalled = False  # the system has not taken the last write yet
        self._closing: CloseReason | None = None
        self._reading_paused = False
        self._seen_bytes = 0
        self._seen_at = 0
        self.unsent_bytes = 0  # queued and not yet taken by the system
        self.is_full = False
        self.notify_drained = False

    # --- from the loop --------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(
            high=0
        )  # pause_writing says that something is left, resume_writing that all is gone
        uid = self.identify(self._transport)
        if uid is None:
            self._closing = CloseReason.UID_REFUSED
            self._transport.abort()
            return
        self._pump.begin_turn()
        self._peer = self._pump.relay.accepted(self, uid)

    def identify(self, transport: asyncio.Transport) -> int | None:
        """The user at the other end; None: nobody we talk to."""
        raise NotImplementedError

    def caller(self) -> Caller:
        return OWNER

    def runs(self, agent: str, pid: int | None) -> None:
        """Nobody asks."""

    def data_received(self, data: bytes) -> None:
        if self._closing is not None or self._peer is None:
            return
        self._pump.begin_turn()
        relay, peer = self._pump.relay, self._peer
        frames = self._decoder.feed(data)
        if log.isEnabledFor(logging.DEBUG):
            trace("heard", frames)
        try:
            relay.received(peer, frames)  # also when none is whole yet: bytes are a sign of life
            if self._decoder.oversize_bytes is not None:
                relay.oversized(peer, self._decoder.oversize_bytes)
        except Exception:
            log.exception("internal_error")
            relay.crashed(peer)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._stalled = True

    def resume_writing(self) -> None:
        self._stalled = False
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why it ended makes no difference
        self._transport = None
        self._out.clear()
        if self._closing is None and self._peer is not None:
            self._closing = CloseReason.CLIENT_GONE
            self._pump.begin_turn()
            self._pump.relay.disconnected(self._peer, CloseReason.CLIENT_GONE)

    # --- from the relay -------------------------------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        self.send_all([frame])

    def send_all(self, frames: list[bytes]) -> None:
        self._out += frames
        self.unsent_bytes += sum(map(len, frames))
        self.is_full = self.unsent_bytes > FULL_BYTES
        if not self._queued:
            self._queued = True
            self._pump.will_flush(self)

    def close(self, reason: CloseReason) -> None:
        if self._closing is not None:
            return
        self._closing = reason
        if self._transport is None:
            return
        if reason in {CloseReason.SLOW_CONSUMER, CloseReason.HEARTBEAT_TIMEOUT}:
            self._transport.abort()
            return
        asyncio.get_running_loop().call_later(_CLOSE_GRACE_S, self._abort)
        if not self._queued:
            self._queued = True
            self._pump.will_flush(self)

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # --- writing --------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """One write of everything that is queued, unless the last one is still under way."""
        self._queued = False
        transport = self._transport
        if transport is None:
            return
        if self._stalled:
            self._stop_reading_if_full(transport)
            return
        if self._out:
            if log.isEnabledFor(logging.DEBUG):
                trace("said", [frame[HEADER_BYTES:] for frame in self._out])
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            transport.write(data)
        self.unsent_bytes = transport.get_write_buffer_size()
        self.is_full = self.unsent_bytes > FULL_BYTES
        if self._closing is not None:
            transport.close()  # it writes what is left first
        elif not self.unsent_bytes:
            self._drained(transport)
        else:
            self._stop_reading_if_full(transport)

    def _stop_reading_if_full(self, transport: asyncio.Transport) -> None:
        if self.unsent_bytes > _STOP_READING_BYTES and not self._reading_paused and self._closing is None:
            self._reading_paused = True
            transport.pause_reading()

    def _drained(self, transport: asyncio.Transport) -> None:
        if self._reading_paused:
            self._reading_paused = False
            transport.resume_reading()
        if self.notify_drained and self._peer is not None:
            self.notify_drained = False
            self._pump.begin_turn()
            self._pump.relay.drained(self._peer)

    # --- slow readers -----------------------------------------------------------------------------------------------------

    def is_stuck(self, now_ms: int, patience_ms: int) -> bool:
        """True: bytes wait, and not one of them has left for that long."""
        left = 0 if self._transport is None else self._transport.get_write_buffer_size()
        if left == 0 or left != self._seen_bytes:
            self._seen_bytes, self._seen_at = left, now_ms
            return False
        return now_ms - self._seen_at >= patience_ms

    def give_up(self) -> None:
        """The peer does not read: its messages wait for its next connection."""
        if self._closing is None and self._peer is not None:
            self._pump.begin_turn()
            self._pump.relay.disconnected(self._peer, CloseReason.SLOW_CONSUMER)
            self._closing = CloseReason.SLOW_CONSUMER
            if self._transport is not None:
                self._transport.abort()

    @property
    def ended(self) -> bool:
        return self._transport is None
