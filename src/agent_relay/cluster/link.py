"""A link between an edge and the seat: ops in order, each once, over subjects that may lose and repeat.

What is said in one turn is one packet: numbered, acknowledged by whatever comes back, and sent again until it is. A packet is
`(link, number, acknowledged, ops)` in msgpack; number 0 carries nothing and is not acknowledged. A link begins with packet 1 at
the edge, which introduces it; nothing follows until that is acknowledged. Whoever hears a later packet of a link it does not know
answers `RESET`, and the edge begins another. So words of clients that were held up by a cut network are never taken for new ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum

import msgspec

from agent_relay.cluster.figures import Figures

RESEND_MS = 200
KEEPALIVE_MS = 1_000
DEAD_MS = 6_000
FORGOTTEN_MS = (
    5_000  # at the seat, before the edge gives up: what a client said over a dead link must not arrive once it may be elsewhere
)
RESET = -1
_PACKET_BYTES = 512 * 1024  # a larger turn becomes several packets; a server takes at least a mebibyte
_IN_FLIGHT = 64  # packets that are not acknowledged; what is said meanwhile gathers


class OpKind(IntEnum):
    OPEN = 0  # data: who connects
    DATA = 1
    CLOSE = 2  # after what was said before
    CREDIT = 3  # data: so many bytes more, as text
    ABORT = 4  # at once
    RUNS = 5  # data: the agent and the process that the connection runs
    RULES = 6  # data: the rules of the edge's host; before anything else
    WHO = 7  # to the edge: who is it? Back: the agent in whose terminal it runs, and whether it is lost
    HTTP = 8  # of no connection. To the seat: the edge's HTTP. Back: the keys of its pages


Op = tuple[int, int, bytes]  # kind, connection, data
Packet = tuple[str, int, int, list[Op]]


class _PacketFields(msgspec.Struct, array_like=True, gc=False):
    """As it is read: what a later version adds at its end is not looked at."""

    link: str
    number: int
    acknowledged: int
    ops: list[Op]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_PacketFields).decode


def read_packet(payload: bytes) -> Packet | None:
    try:
        found = _decode(payload)
    except msgspec.MsgspecError:
        return None
    return found.link, found.number, found.acknowledged, found.ops


def reset_packet(link: str) -> bytes:
    return _encode((link, RESET, 0, []))


class Link:
    """One end. `send` hands a packet to the wire, and may lose it; `take` gets the ops of a packet, each packet once."""

    def __init__(
        self, name: str, send: Callable[[bytes], object], take: Callable[[list[Op]], None], now: int,
        figures: Figures | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self._send = send
        self._take = take
        self._now = now
        self._heard_at = now
        self._said_at = now
        self._sent_at = now  # the oldest packet that is not acknowledged
        self._gathered: list[Op] = []
        self._gathered_bytes = 0
        self._unacked: deque[tuple[int, list[Op]]] = deque()
        self._next = 1
        self._heard_to = 0
        self._owes_ack = False
        self._is_confirmed = False  # the other end has heard of it
        self._figures = figures or Figures()

    @property
    def silent_ms(self) -> int:
        return self._now - self._heard_at

    def say(self, kind: OpKind, connection: int, data: bytes = b"") -> None:
        """Goes out with `flush`."""
        self._gathered.append((int(kind), connection, data))
        self._gathered_bytes += len(data) + 16

    def flush(self) -> None:
        """Ends a turn."""
        while self._gathered and len(self._unacked) < (_IN_FLIGHT if self._is_confirmed else 1):
            ops = self._take_packet()
            if not self._unacked:
                self._sent_at = self._now
            self._unacked.append((self._next, ops))
            self._transmit(self._next, ops)
            self._next += 1
        if self._owes_ack:
            self._transmit(0, [])

    def _take_packet(self) -> list[Op]:
        if self._gathered_bytes <= _PACKET_BYTES:
            ops, self._gathered, self._gathered_bytes = self._gathered, [], 0
            return ops
        size = count = 0
        while count < len(self._gathered) and (not count or size + len(self._gathered[count][2]) <= _PACKET_BYTES):
            size += len(self._gathered[count][2]) + 16
            count += 1
        ops, self._gathered = self._gathered[:count], self._gathered[count:]
        self._gathered_bytes -= size
        return ops

    def _transmit(self, number: int, ops: list[Op]) -> None:
        self._owes_ack = False
        self._said_at = self._now
        packet = _encode((self.name, number, self._heard_to, ops))
        self._figures.link_sent_bytes += len(packet)
        self._send(packet)

    def heard(self, number: int, acknowledged: int, ops: list[Op]) -> None:
        self._heard_at = self._now
        progress = False
        while self._unacked and self._unacked[0][0] <= acknowledged:
            self._unacked.popleft()
            progress = True
        if progress:
            self._is_confirmed = True
            self._sent_at = self._now
        if number > 0:
            self._owes_ack = True
            if number == self._heard_to + 1:
                self._heard_to = number
                self._take(ops)
        if progress and self._gathered:
            self.flush()

    def clock_says(self, now: int) -> None:
        self._now = now
        if self._unacked and now - self._sent_at >= RESEND_MS:
            self.resend()
        elif self._owes_ack or now - self._said_at >= KEEPALIVE_MS:
            self._transmit(0, [])

    def resend(self) -> None:
        self._sent_at = self._now
        self._figures.packets_resent += len(self._unacked)
        for number, ops in self._unacked:
            self._transmit(number, ops)
