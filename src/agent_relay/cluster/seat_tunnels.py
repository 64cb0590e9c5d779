"""The seat's ends of tunnels: a transport for each client of another host, and a link for each host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec

from agent_relay.cluster.figures import Figures
from agent_relay.cluster.link import FORGOTTEN_MS, Link, Op, OpKind, read_packet, reset_packet
from agent_relay.cluster.tunnels import NO_CONNECTION, PIECE_BYTES, BadOp, host_of, read_count, read_op, window_of
from agent_relay.ports.callers import VIA_HTTP, Caller
from agent_relay.ports.cluster import EdgeHttp, Introduced, Keys, Opening
from agent_relay.ports.log import Log

Send = Callable[[str, bytes], object]  # subject, packet


class TunnelTransport(asyncio.Transport):
    """The seat's end of one connection."""

    def __init__(self, link: _SeatLink, number: int, opening: Opening) -> None:
        super().__init__({"opening": opening} | _addresses(opening))
        self._host = opening.host
        self._link = link
        self._number = number
        self._protocol: asyncio.Protocol | None = None
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._room = window_of(opening)
        self._is_stalled = False
        self._is_reading = True
        self._held: list[bytes] = []
        self._is_closing = False
        self._is_over = False
        self._askers: list[asyncio.Future[Caller]] = []

    def begin(self, protocol: asyncio.Protocol) -> None:
        self._protocol = protocol
        protocol.connection_made(self)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast("asyncio.Protocol", protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

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

    def is_reading(self) -> bool:
        return self._is_reading

    def can_write_eof(self) -> bool:
        return False

    def resume_reading(self) -> None:
        """Gives what was held back in a turn of its own, as with a socket: whoever calls this is in the middle of something."""
        if not self._is_reading:
            self._is_reading = True
            self._link.later(self._feed_held)

    def _feed_held(self) -> None:
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

    def ask_caller(self) -> asyncio.Future[Caller]:
        """Asks who has the client's end, as its host sees it now."""
        asked = asyncio.get_running_loop().create_future()
        if self._is_over:
            asked.set_result(Caller(via=VIA_HTTP, is_lost=True, host=self._host))
            return asked
        if not self._askers:
            self._link.say(OpKind.WHO, self._number)
        self._askers.append(asked)
        return asked

    # --- from the link --------------------------------------------------------------------------------------------------

    def caller_is(self, agent: str | None, *, is_lost: bool) -> None:
        askers, self._askers = self._askers, []
        for asked in askers:
            if not asked.done():
                asked.set_result(Caller(agent, VIA_HTTP, is_lost, self._host))

    def feed(self, data: bytes) -> None:
        if self._is_closing or self._protocol is None:
            return
        if not self._is_reading or self._held:
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
            for start in range(0, len(data), PIECE_BYTES):
                self._link.say(OpKind.DATA, self._number, data[start : start + PIECE_BYTES])
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
        self.caller_is(None, is_lost=True)
        self._link.later(self._tell_lost)  # as with a socket: never from inside a call of the protocol's own

    def _tell_lost(self) -> None:
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.connection_lost(None)


def _addresses(opening: Opening) -> dict[str, Any]:
    """Of a connection of HTTP, as servers ask for them. An address is that host's own: loopback is there on every one."""
    if opening.kind != "http":
        return {}
    address, port = opening.peer
    return {"peername": (f"{opening.host}/{address}", port), "sockname": opening.at}


class _SeatLink:
    """The seat's end of a link, with its connections."""

    def __init__(self, seat: SeatTunnels, name: str, subject: str, now: int) -> None:
        self._seat = seat
        self.link = Link(name, lambda packet: seat.send(subject, packet), self._take, now, seat.figures)
        self.transports: dict[int, TunnelTransport] = {}
        self.host = host_of(name)
        self._is_over = False

    def say(self, kind: OpKind, connection: int, data: bytes = b"") -> None:
        if not self._is_over:
            self.link.say(kind, connection, data)
            self._seat.will_flush(self)

    def later(self, callback: Callable[[], None]) -> None:
        self._seat.turn(callback)

    def keep_keys(self, keys: Keys) -> None:
        self.say(OpKind.HTTP, NO_CONNECTION, msgspec.msgpack.encode(dict(keys)))

    def forget(self, connection: int) -> None:
        self.transports.pop(connection, None)

    def break_off(self) -> None:
        self._is_over = True
        for transport in list(self.transports.values()):
            transport.gone()

    def _take(self, ops: list[Op]) -> None:
        for kind, connection, data in ops:
            transport = self.transports.get(connection)
            if kind == OpKind.RULES:
                self._seat.learn(self.host, data)
            elif kind == OpKind.HTTP:
                self._seat.introduced(self.host, read_op(data, EdgeHttp), self.keep_keys)
            elif kind == OpKind.OPEN and transport is None:
                opening = read_op(data, Opening)
                if opening.host != self.host:  # rules hold for the host that said them
                    raise BadOp("it speaks for another host")
                transport = self.transports[connection] = TunnelTransport(self, connection, opening)
                transport.begin(self._seat.accept(opening))
            elif transport is None:
                continue
            elif kind == OpKind.DATA:
                transport.feed(data)
            elif kind == OpKind.CREDIT:
                transport.credit(read_count(data))
            elif kind == OpKind.WHO:
                agent, is_lost = read_op(data, tuple[str | None, bool])
                transport.caller_is(agent, is_lost=is_lost)
            elif kind in {OpKind.CLOSE, OpKind.ABORT}:
                transport.gone()


class SeatTunnels:
    """All links of the seat. `accept` makes the protocol of a new connection; `turn` calls what it is given when
    this turn of the loop is over; `learn` is told the rules of each host that is linked, and None when it is not any more;
    `introduced` hears how each edge serves HTTP."""

    def __init__(
        self, send: Send, accept: Callable[[Opening], asyncio.Protocol], subject_of: Callable[[str], str],
        turn: Callable[[Callable[[], None]], object], log: Log, now: int,
        learn: Callable[[str, bytes | None], object] | None = None, introduced: Introduced = lambda *_: None,
        figures: Figures | None = None,
    ) -> None:  # fmt: skip
        self.send = send
        self.figures = figures or Figures()
        self.accept = accept
        self._learn = learn
        self._subject_of = subject_of
        self.turn = turn
        self.introduced = introduced
        self._log = log
        self._now = now
        self.excluded: frozenset[str] = frozenset()  # hosts that are not linked
        self._links: dict[str, _SeatLink] = {}
        self._unflushed: dict[_SeatLink, None] = {}

    @property
    def links(self) -> int:
        return len(self._links)

    @property
    def connections(self) -> int:
        return sum(len(link.transports) for link in self._links.values())

    def learn(self, host: str, rules: bytes | None) -> None:
        if self._learn is not None:
            self._learn(host, rules)

    def heard(self, payload: bytes) -> None:
        self.figures.link_received_bytes += len(payload)
        packet = read_packet(payload)
        if packet is None:
            return
        name, number, acknowledged, ops = packet
        host = host_of(name)
        if host in self.excluded:
            return
        found = self._links.get(name)
        if found is None:
            if number != 1:
                if number > 0 or acknowledged:
                    self.send(self._subject_of(host), reset_packet(name))
                return
            found = self._links[name] = _SeatLink(self, name, self._subject_of(host), self._now)
            self._log.note("cluster_edge_linked", host=host)
        try:
            found.link.heard(number, acknowledged, ops)
        except BadOp as error:
            self._log.note("cluster_edge_unreadable", host=host, error=str(error))
            del self._links[name]
            found.break_off()
            self.send(self._subject_of(host), reset_packet(name))
            return
        self.will_flush(found)

    def will_flush(self, link: _SeatLink) -> None:
        if not self._unflushed:
            self.turn(self.flush)
        self._unflushed[link] = None

    def flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, {}
        for link in unflushed:
            link.link.flush()

    def clock_says(self, now: int) -> None:
        self._now = now
        for name, link in list(self._links.items()):
            link.link.clock_says(now)
            if link.link.silent_ms >= FORGOTTEN_MS or link.host in self.excluded:
                del self._links[name]
                self._log.note("cluster_edge_lost", link=name)
                link.break_off()
                if not any(other.host == link.host for other in self._links.values()):
                    self.learn(link.host, None)

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
