"""A client at an edge and a protocol at the seat, with both ends of the tunnel and a link between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent_relay.cluster.tunnels import WINDOW_BYTES, EdgeTunnels, SeatTunnels, Tunnel, TunnelTransport, link_name
from agent_relay.ports.cluster import Opening


class Notes:
    def note(self, what: str, **fields: object) -> None: ...


class Client:
    """The client's own connection at the edge; takes what it is given at once unless told otherwise."""

    def __init__(self) -> None:
        self.got = b""
        self.is_held = False
        self.ended: bool | None = None
        self.takes = True
        self.tunnel: Tunnel | None = None
        self.ran: list[tuple[str, int | None]] = []

    def give(self, data: bytes) -> None:
        self.got += data
        if self.takes and self.tunnel is not None:
            self.tunnel.taken(len(data))

    def hold(self, is_held: bool) -> None:
        self.is_held = is_held

    def end(self, *, at_once: bool) -> None:
        self.ended = at_once

    def runs(self, agent: str, pid: int | None) -> None:
        self.ran.append((agent, pid))


class Server(asyncio.Protocol):
    def __init__(self) -> None:
        self.got = b""
        self.is_stalled = self.is_gone = False
        self.transport: TunnelTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, TunnelTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data

    def pause_writing(self) -> None:
        self.is_stalled = True

    def resume_writing(self) -> None:
        self.is_stalled = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone = True


class Scene:
    def __init__(self) -> None:
        self.servers: list[Server] = []
        self.openings: list[Opening] = []
        self.is_broken = False
        self._later: list[Callable[[], object]] = []
        self.now = 0
        self.is_cut = False
        self.seat = SeatTunnels(self._to_edge, self._accept, str, self._later.append, Notes(), 0)
        self.edge = EdgeTunnels(link_name("b", "1"), self._to_seat, self._later.append, self._broke, 0)

    def _to_seat(self, packet: bytes) -> None:
        if not self.is_cut:
            self._later.append(lambda: self.seat.heard(packet))

    def _to_edge(self, host: str, packet: bytes) -> None:
        assert host == "b"
        if not self.is_cut:
            self._later.append(lambda: self.edge.heard(packet))

    def _accept(self, opening: Opening) -> asyncio.Protocol:
        self.openings.append(opening)
        self.servers.append(Server())
        return self.servers[-1]

    def _broke(self) -> None:
        self.is_broken = True

    def settle(self) -> None:
        while self._later:
            self._later.pop(0)()

    def pass_time(self, ms: int) -> None:
        for _ in range(ms // 50):
            self.now += 50
            self.settle()
            self.edge.clock_says(self.now)
            self.seat.clock_says(self.now)
        self.settle()

    def connect(self) -> tuple[Client, Tunnel, Server]:
        client = Client()
        tunnel = self.edge.open(Opening("b", is_owner=True, agent="Bob"), client)
        client.tunnel = tunnel
        self.settle()
        return client, tunnel, self.servers[-1]


def test_bytes_go_both_ways_and_the_seat_learns_who_it_is() -> None:
    scene = Scene()
    client, tunnel, server = scene.connect()
    tunnel.send(b"hello")
    scene.settle()
    assert server.got == b"hello"
    assert server.transport is not None
    server.transport.write(b"welcome")
    server.transport.runs("Bob", 7)
    scene.settle()
    assert client.got == b"welcome"
    assert client.ran == [("Bob", 7)]
    assert scene.openings == [Opening("b", is_owner=True, agent="Bob")]


def test_a_client_that_does_not_read_stalls_its_own_connection_alone() -> None:
    scene = Scene()
    client, _, server = scene.connect()
    other, _, another = scene.connect()
    client.takes = False
    assert server.transport is not None
    assert another.transport is not None
    server.transport.write(bytes(3 * WINDOW_BYTES))
    scene.settle()
    assert len(client.got) == WINDOW_BYTES
    assert server.is_stalled
    assert server.transport.get_write_buffer_size() == 2 * WINDOW_BYTES
    another.transport.write(b"here")
    scene.settle()
    assert other.got == b"here"
    client.takes = True
    assert client.tunnel is not None
    client.tunnel.taken(WINDOW_BYTES)
    scene.settle()
    assert len(client.got) == 3 * WINDOW_BYTES
    assert not server.is_stalled


def test_a_client_that_sends_faster_than_the_seat_reads_is_held() -> None:
    scene = Scene()
    client, tunnel, server = scene.connect()
    assert server.transport is not None
    server.transport.pause_reading()
    tunnel.send(bytes(WINDOW_BYTES))
    scene.settle()
    assert client.is_held
    server.transport.resume_reading()
    scene.settle()
    assert not client.is_held
    assert len(server.got) == WINDOW_BYTES


def test_either_end_may_close() -> None:
    scene = Scene()
    client, _, server = scene.connect()
    assert server.transport is not None
    server.transport.write(b"bye")
    server.transport.close()
    scene.settle()
    assert (client.got, client.ended, server.is_gone) == (b"bye", False, True)
    client, tunnel, server = scene.connect()
    tunnel.close()
    scene.settle()
    assert server.is_gone
    client, _, server = scene.connect()
    assert server.transport is not None
    server.transport.write(b"x")
    server.transport.abort()
    scene.settle()
    assert client.ended is True


def test_a_link_that_is_cut_lets_everybody_go_on_both_sides() -> None:
    scene = Scene()
    client, _, server = scene.connect()
    scene.is_cut = True
    scene.pass_time(7_000)
    assert client.ended is True
    assert server.is_gone
    assert scene.is_broken


def test_a_seat_that_does_not_know_the_link_says_so() -> None:
    scene = Scene()
    client, tunnel, _ = scene.connect()
    scene.seat.close()
    tunnel.send(b"anybody?")
    scene.settle()
    assert client.ended is True
    assert scene.is_broken
