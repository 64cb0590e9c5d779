"""Connections through a link: a client of an edge talks to the core at the seat as if it had connected there.

At the edge a `Tunnel` has the client's bytes; at the seat a `TunnelTransport` gives them to an ordinary protocol of asyncio.
Each direction of a connection has a window: so many bytes may be on their way that the other end has not taken yet. A slow
client therefore fills nothing but its own connection, and the core sees it as it sees a slow one of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from agent_relay.cluster.link import RESET, Link, Op, OpKind, read_packet, reset_packet
from agent_relay.ports.cluster import LocalEnd, Opening
from agent_relay.ports.log import Log

WINDOW_BYTES = 256 * 1024
_PIECE_BYTES = 256 * 1024

Send = Callable[[str, bytes], object]  # subject, packet


class Tunnel:
    """One client of this edge."""

    def __init__(self, edge: EdgeTunnels, number: int, end: LocalEnd) -> None:
        self._edge = edge
        self._number = number
        self.end = end
        self._room = WINDOW_BYTES
        self._is_held = False

    def send(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE_BYTES):
            self._edge.say(OpKind.DATA, self._number, data[start : start + _PIECE_BYTES])
        self._room -= len(data)
        if self._room <= 0 and not self._is_held:
            self._is_held = True
            self.end.hold(True)

    def taken(self, count: int) -> None:
        self._edge.say(OpKind.CREDIT, self._number, str(count).encode())

    def close(self) -> None:
        self._edge.forget(self._number)
        self._edge.say(OpKind.CLOSE, self._number)

    def credit(self, count: int) -> None:
        self._room += count
        if self._is_held and self._room > 0:
            self._is_held = False
            self.end.hold(False)


def link_name(host: str, mark: str) -> str:
    return f"{host}/{mark}"


def host_of(link: str) -> str:
    return link.partition("/")[0]


class EdgeTunnels:
    """The edge's end of one link to one seat. `broken` is called once: then every client has been let go."""

    def __init__(
        self, name: str, send: Callable[[bytes], object], turn: Callable[[Callable[[], None]], object],
        broken: Callable[[], None], now: int,
    ) -> None:  # fmt: skip
        self._link = Link(name, send, self._take, now)
        self._turn = turn
        self._broken = broken
        self._tunnels: dict[int, Tunnel] = {}
        self._last = 0
        self._is_over = False
        self._is_flushing = False

    def open(self, opening: Opening, end: LocalEnd) -> Tunnel:
        self._last += 1
        tunnel = self._tunnels[self._last] = Tunnel(self, self._last, end)
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

    def heard(self, payload: bytes) -> None:
        packet = read_packet(payload)
        if packet is None or packet[0] != self._link.name or self._is_over:
            return
        if packet[1] == RESET:
            self.break_off()
            return
        self._link.heard(packet[1], packet[2], packet[3])
        self.flush()

    def clock_says(self, now: int) -> None:
        if not self._is_over:
            self._link.clock_says(now)
            if self._link.is_dead:
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
            tunnel = self._tunnels.get(connection)
            if tunnel is None:
                continue
            match kind:
                case OpKind.DATA:
                    tunnel.end.give(data)
                case OpKind.CREDIT:
                    tunnel.credit(int(data))
                case OpKind.CLOSE | OpKind.ABORT:
                    self.forget(connection)
                    tunnel.end.end(at_once=kind == OpKind.ABORT)
                case OpKind.RUNS:
                    agent, pid = msgspec.msgpack.decode(data, type=tuple[str, int | None])
                    tunnel.end.runs(agent, pid)
                case _:
                    pass


class TunnelTransport(asyncio.Transport):
    """The seat's end of one connection."""

    def __init__(self, link: _SeatLink, number: int, opening: Opening) -> None:
        super().__init__({"opening": opening})
        self._link = link
        self._number = number
        self._protocol: asyncio.Protocol | None = None
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._room = WINDOW_BYTES
        self._is_stalled = False
        self._is_reading = True
        self._held: list[bytes] = []
        self._is_closing = False
        self._is_over = False

    def begin(self, protocol: asyncio.Protocol) -> None:
        self._protocol = protocol
        protocol.connection_made(self)

    # --- asyncio's words ------------------------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing:
            return
        self._out.append(bytes(data))
        self._out_bytes += len(data)
        self._push()

    def get_write_buffer_size(self) -> int:
        return self._out_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """As the protocol always asks: it is told when something is left, and when all is gone."""

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        held, self._held = self._held, []
        for data in held:
            self.feed(data)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._end_if_empty()

    def abort(self) -> None:
        if not self._is_over:
            self._is_closing = True
            self._out.clear()
            self._out_bytes = 0
            self._link.say(OpKind.ABORT, self._number)
            self._finish()

    def runs(self, agent: str, pid: int | None) -> None:
        """For the edge, where that process is."""
        self._link.say(OpKind.RUNS, self._number, msgspec.msgpack.encode((agent, pid)))

    # --- from the link --------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        if self._is_closing or self._protocol is None:
            return
        if not self._is_reading:
            self._held.append(data)
            return
        self._link.say(OpKind.CREDIT, self._number, str(len(data)).encode())
        self._protocol.data_received(data)

    def credit(self, count: int) -> None:
        self._room += count
        self._push()

    def gone(self) -> None:
        """The client, or its host."""
        self._is_closing = True
        self._finish()

    def _push(self) -> None:
        while self._out and self._room > 0:
            data = self._out.pop(0)
            if len(data) > self._room:
                self._out.insert(0, data[self._room :])
                data = data[: self._room]
            self._room -= len(data)
            self._out_bytes -= len(data)
            for start in range(0, len(data), _PIECE_BYTES):
                self._link.say(OpKind.DATA, self._number, data[start : start + _PIECE_BYTES])
        if self._out and not self._is_stalled:
            self._is_stalled = True
            if self._protocol is not None:
                self._protocol.pause_writing()
        elif not self._out and self._is_stalled:
            self._is_stalled = False
            if self._protocol is not None and not self._is_over:
                self._protocol.resume_writing()
        self._end_if_empty()

    def _end_if_empty(self) -> None:
        if self._is_closing and not self._out and not self._is_over:
            self._link.say(OpKind.CLOSE, self._number)
            self._finish()

    def _finish(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._link.forget(self._number)
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.connection_lost(None)


class _SeatLink:
    """The seat's end of a link, with its connections."""

    def __init__(self, seat: SeatTunnels, name: str, subject: str, now: int) -> None:
        self._seat = seat
        self.link = Link(name, lambda packet: seat.send(subject, packet), self._take, now)
        self.transports: dict[int, TunnelTransport] = {}

    def say(self, kind: OpKind, connection: int, data: bytes = b"") -> None:
        self.link.say(kind, connection, data)
        self._seat.will_flush(self)

    def forget(self, connection: int) -> None:
        self.transports.pop(connection, None)

    def break_off(self) -> None:
        for transport in list(self.transports.values()):
            transport.gone()

    def _take(self, ops: list[Op]) -> None:
        for kind, connection, data in ops:
            transport = self.transports.get(connection)
            if kind == OpKind.OPEN and transport is None:
                opening = msgspec.msgpack.decode(data, type=Opening)
                transport = self.transports[connection] = TunnelTransport(self, connection, opening)
                transport.begin(self._seat.accept(opening))
            elif transport is None:
                continue
            elif kind == OpKind.DATA:
                transport.feed(data)
            elif kind == OpKind.CREDIT:
                transport.credit(int(data))
            elif kind in {OpKind.CLOSE, OpKind.ABORT}:
                transport.gone()


class SeatTunnels:
    """All links of the seat. `accept` makes the protocol of a new connection; `turn` calls what it is given when
    this turn of the loop is over."""

    def __init__(
        self, send: Send, accept: Callable[[Opening], asyncio.Protocol], subject_of: Callable[[str], str],
        turn: Callable[[Callable[[], None]], object], log: Log, now: int,
    ) -> None:  # fmt: skip
        self.send = send
        self.accept = accept
        self._subject_of = subject_of
        self._turn = turn
        self._log = log
        self._now = now
        self._links: dict[str, _SeatLink] = {}
        self._unflushed: dict[_SeatLink, None] = {}

    def heard(self, payload: bytes) -> None:
        packet = read_packet(payload)
        if packet is None:
            return
        name, number, acknowledged, ops = packet
        host = host_of(name)
        found = self._links.get(name)
        if found is None:
            if number != 1:
                if number > 0 or acknowledged:
                    self.send(self._subject_of(host), reset_packet(name))
                return
            found = self._links[name] = _SeatLink(self, name, self._subject_of(host), self._now)
            self._log.note("cluster_edge_linked", host=host)
        found.link.heard(number, acknowledged, ops)
        self.will_flush(found)

    def will_flush(self, link: _SeatLink) -> None:
        if not self._unflushed:
            self._turn(self.flush)
        self._unflushed[link] = None

    def flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, {}
        for link in unflushed:
            link.link.flush()

    def clock_says(self, now: int) -> None:
        self._now = now
        for name, link in list(self._links.items()):
            link.link.clock_says(now)
            if link.link.is_dead:
                del self._links[name]
                self._log.note("cluster_edge_lost", link=name)
                link.break_off()

    def reconnected(self) -> None:
        for link in self._links.values():
            link.link.resend()

    def close(self) -> None:
        """Without a word: edges notice by the new term."""
        links, self._links = self._links, {}
        for link in links.values():
            link.break_off()

    def describe(self) -> list[dict[str, Any]]:
        return [{"link": name, "connections": len(link.transports)} for name, link in self._links.items()]
