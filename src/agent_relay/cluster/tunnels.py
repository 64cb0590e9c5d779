"""Connections through a link: a client of an edge talks to the core at the seat as if it had connected there.

At the edge a `Tunnel` has the client's bytes; at the seat (`cluster.seat_tunnels`) an ordinary protocol of asyncio gets them.
Each direction of a connection has a window: so many bytes may be on their way that the other end has not taken yet. A slow
client therefore fills nothing but its own connection, and the core sees it as it sees a slow one of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from agent_relay.cluster.figures import Figures
from agent_relay.cluster.link import DEAD_MS, RESET, Link, Op, OpKind, read_packet
from agent_relay.ports.callers import Caller
from agent_relay.ports.cluster import EdgeHttp, Keys, LocalEnd, Opening

WINDOW_BYTES = 256 * 1024
HTTP_WINDOW_BYTES = 1024 * 1024  # nearly what the system takes of a socket: ARC ends agents for whom a burst leaves much unsent
PIECE_BYTES = 256 * 1024
NO_CONNECTION = 0

T = TypeVar("T")


class BadOp(Exception):  # noqa: N818 - named by the condition
    """Words of the other end that cannot be read: nothing more of that link is believed."""


def read_op(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise BadOp(str(error)) from None


def read_count(data: bytes) -> int:
    if not data.isdigit():
        raise BadOp("not a count")
    return int(data[:20])


class Tunnel:
    """One client of this edge."""

    def __init__(self, edge: EdgeTunnels, number: int, end: LocalEnd, window_bytes: int) -> None:
        self._edge = edge
        self._number = number
        self.end = end
        self._room = window_bytes
        self._is_held = False

    def send(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE_BYTES):
            self._edge.say(OpKind.DATA, self._number, data[start : start + PIECE_BYTES])
        self._room -= len(data)
        if self._room <= 0 and not self._is_held:
            self._is_held = True
            self.end.hold(True)

    def taken(self, count: int) -> None:
        self._edge.say(OpKind.CREDIT, self._number, str(count).encode())

    def tell_caller(self, caller: Caller) -> None:
        self._edge.say(OpKind.WHO, self._number, msgspec.msgpack.encode((caller.agent, caller.is_lost)))

    def close(self) -> None:
        self._edge.forget(self._number)
        self._edge.say(OpKind.CLOSE, self._number)

    def credit(self, count: int) -> None:
        self._room += count
        if self._is_held and self._room > 0:
            self._is_held = False
            self.end.hold(False)


def window_of(opening: Opening) -> int:
    return HTTP_WINDOW_BYTES if opening.kind == "http" else WINDOW_BYTES


def link_name(host: str, mark: str) -> str:
    return f"{host}/{mark}"


def host_of(link: str) -> str:
    return link.partition("/")[0]


class EdgeTunnels:
    """The edge's end of one link to one seat. `broken` is called once: then every client has been let go. `http` is told to
    the seat at the beginning, and `keep_keys` what has become of its pages' keys there."""

    def __init__(
        self, name: str, send: Callable[[bytes], object], turn: Callable[[Callable[[], None]], object],
        broken: Callable[[], None], now: int, rules: bytes = b"", figures: Figures | None = None, *,
        http: EdgeHttp | None = None, keep_keys: Callable[[Keys], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._figures = figures or Figures()
        self._link = Link(name, send, self._take, now, self._figures)
        self._turn = turn
        self._broken = broken
        self._tunnels: dict[int, Tunnel] = {}
        self._last = 0
        self._is_over = False
        self._is_flushing = False
        self._keep_keys = keep_keys
        self.say(OpKind.RULES, NO_CONNECTION, rules)
        if http is not None:
            self.say(OpKind.HTTP, NO_CONNECTION, msgspec.msgpack.encode(http))
        self._link.flush()  # a packet of its own, without clients: it may arrive long after this link is given up

    def open(self, opening: Opening, end: LocalEnd) -> Tunnel:
        self._last += 1
        tunnel = self._tunnels[self._last] = Tunnel(self, self._last, end, window_of(opening))
        self.say(OpKind.OPEN, self._last, msgspec.msgpack.encode(opening))
        return tunnel

    def say(self, kind: OpKind, connection: int, data: bytes = b"") -> None:
        if self._is_over:
            return
        self._link.say(kind, connection, data)
        if not self._is_flushing:
            self._is_flushing = True
            self._turn(self.flush)

    def flush(self) -> None:
        self._is_flushing = False
        if not self._is_over:
            self._link.flush()

    def forget(self, number: int) -> None:
        self._tunnels.pop(number, None)

    @property
    def connections(self) -> int:
        return len(self._tunnels)

    def heard(self, payload: bytes) -> None:
        self._figures.link_received_bytes += len(payload)
        packet = read_packet(payload)
        if packet is None or packet[0] != self._link.name or self._is_over:
            return
        if packet[1] == RESET:
            self.break_off()
            return
        try:
            self._link.heard(packet[1], packet[2], packet[3])
        except BadOp:
            self.break_off()
        self.flush()

    def clock_says(self, now: int) -> None:
        if not self._is_over:
            self._link.clock_says(now)
            if self._link.silent_ms >= DEAD_MS:
                self.break_off()

    def reconnected(self) -> None:
        if not self._is_over:
            self._link.resend()

    def break_off(self) -> None:
        """Lets every client go: it resumes, over another link."""
        if self._is_over:
            return
        self._is_over = True
        tunnels, self._tunnels = self._tunnels, {}
        for tunnel in tunnels.values():
            tunnel.end.end(at_once=True)
        self._broken()

    def _take(self, ops: list[Op]) -> None:
        for kind, connection, data in ops:
            if kind == OpKind.HTTP:
                self._keep_keys(read_op(data, dict[str, int]))
            tunnel = self._tunnels.get(connection)
            if tunnel is None:
                continue
            match kind:
                case OpKind.DATA:
                    tunnel.end.give(data)
                case OpKind.CREDIT:
                    tunnel.credit(read_count(data))
                case OpKind.CLOSE | OpKind.ABORT:
                    self.forget(connection)
                    tunnel.end.end(at_once=kind == OpKind.ABORT)
                case OpKind.RUNS:
                    agent, pid = read_op(data, tuple[str, int | None])
                    tunnel.end.runs(agent, pid)
                case OpKind.WHO:
                    tunnel.end.find_caller()
                case _:
                    pass
