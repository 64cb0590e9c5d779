"""A client at an edge and a protocol at the seat, with both ends of the tunnel and a link between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from agent_relay.cluster.link import OpKind
from agent_relay.cluster.seat_tunnels import SeatTunnels, TunnelTransport
from agent_relay.cluster.tunnels import (
    HTTP_WINDOW_BYTES,
    WINDOW_BYTES,
    EdgeTunnels,
    Tunnel,
    link_name,
)
from agent_relay.ports.callers import Caller
from agent_relay.ports.cluster import EdgeHttp, Keys, Opening

HTTP = EdgeHttp("127.0.0.1", 3889, "http", "hash", frozenset(), "agent-relay-1", {"key": 1})


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
        self.caller = Caller()

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

    def find_caller(self) -> None:
        assert self.tunnel is not None
        self.tunnel.tell_caller(self.caller)


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
        self.held_up: list[bytes] | None = None  # by the network, on their way to the seat
        self.learned: list[tuple[str, bytes | None]] = []
        self.introduced: list[tuple[str, EdgeHttp, Callable[[Keys], None]]] = []
        self.keys: list[Keys] = []
        self.seat = SeatTunnels(
            self._to_edge, self._accept, str, self._later.append, Notes(), 0, lambda *said: self.learned.append(said),
            lambda *words: self.introduced.append(words),
        )  # fmt: skip
        self.edge = EdgeTunnels(
            link_name("b", "1"), self._to_seat, self._later.append, self._broke, 0, b"rules of b", http=HTTP,
            keep_keys=self.keys.append,
        )  # fmt: skip

    def _to_seat(self, packet: bytes) -> None:
        if self.held_up is not None:
            self.held_up.append(packet)
        elif not self.is_cut:
            self._later.append(lambda: self.seat.heard(packet))

    def _to_edge(self, host: str, packet: bytes) -> None:
        assert host == "b"
        if not self.is_cut and self.held_up is None:
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

    def connect(self, opening: Opening = Opening("b", is_owner=True, agent="Bob")) -> tuple[Client, Tunnel, Server]:  # noqa: B008
        client = Client()
        tunnel = self.edge.open(opening, client)
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


def test_the_seat_knows_the_rules_of_a_host_as_long_as_it_is_linked() -> None:
    scene = Scene()
    scene.settle()  # before any client has come
    assert scene.learned == [("b", b"rules of b")]
    scene.is_cut = True
    scene.pass_time(7_000)
    assert scene.learned == [("b", b"rules of b"), ("b", None)]


# --- HTTP ---------------------------------------------------------------------------------------------------------------


def test_the_seat_learns_how_the_edge_serves_http_and_the_edge_keeps_its_pages_keys() -> None:
    scene = Scene()
    scene.edge.flush()
    scene.settle()
    ((host, http, keep),) = scene.introduced
    assert (host, http) == ("b", HTTP)
    keep({"key": 2, "new": 3})
    scene.settle()
    assert scene.keys == [{"key": 2, "new": 3}]


def test_http_has_a_larger_window() -> None:
    scene = Scene()
    client, _, server = scene.connect(Opening("b", is_owner=False, kind="http"))
    client.takes = False
    assert server.transport is not None
    server.transport.write(bytes(2 * HTTP_WINDOW_BYTES))
    scene.settle()
    assert len(client.got) == HTTP_WINDOW_BYTES
    assert server.is_stalled


def test_addresses_of_http_are_those_of_the_edge() -> None:
    scene = Scene()
    opening = Opening("b", is_owner=False, kind="http", peer=("127.0.0.1", 5000), at=("127.0.0.1", 3889))
    _, _, server = scene.connect(opening)
    assert server.transport is not None
    assert server.transport.get_extra_info("peername") == ("b/127.0.0.1", 5000)
    assert server.transport.get_extra_info("sockname") == ("127.0.0.1", 3889)
    assert server.transport.get_extra_info("socket") is None


def test_the_edge_is_asked_who_has_a_connection() -> None:
    async def ask() -> None:
        scene = Scene()
        client, tunnel, server = scene.connect(Opening("b", is_owner=False, kind="http"))
        client.caller = Caller("Bob")
        assert server.transport is not None
        first, second = server.transport.ask_caller(), server.transport.ask_caller()
        scene.settle()
        assert first.result() == second.result() == Caller("Bob", "http", host="b")
        unanswered = server.transport.ask_caller()
        tunnel.close()
        scene.is_cut = True
        scene.pass_time(7_000)
        assert unanswered.result() == Caller(via="http", is_lost=True, host="b")
        assert server.transport.ask_caller().result().is_lost

    asyncio.run(ask())


def test_a_protocol_hears_nothing_from_inside_its_own_calls() -> None:
    """As with a socket: servers count on it."""
    scene = Scene()
    _, tunnel, server = scene.connect()
    transport = server.transport
    assert transport is not None
    transport.pause_reading()
    tunnel.send(b"first ")
    scene.settle()
    transport.resume_reading()
    assert server.got == b""
    tunnel.send(b"second")
    scene.settle()
    assert server.got == b"first second"
    transport.abort()
    assert not server.is_gone
    scene.settle()
    assert server.is_gone


def test_another_protocol_may_take_over() -> None:
    scene = Scene()
    _, tunnel, server = scene.connect()
    other = Server()
    assert server.transport is not None
    server.transport.set_protocol(other)
    assert server.transport.get_protocol() is other
    tunnel.send(b"for the other")
    scene.settle()
    assert (server.got, other.got) == (b"", b"for the other")


@pytest.mark.parametrize("kind", [OpKind.OPEN, OpKind.CREDIT, OpKind.HTTP, OpKind.WHO])
def test_an_edge_that_says_nonsense_is_not_believed_any_more(kind: OpKind) -> None:
    scene = Scene()
    client, _, server = scene.connect()
    scene.edge.say(kind, 9 if kind == OpKind.OPEN else 1, b"\xc1 nonsense")
    scene.settle()
    assert server.is_gone
    assert client.ended is True
    assert scene.is_broken


def test_a_link_speaks_for_its_own_host_alone() -> None:
    scene = Scene()
    client, _, server = scene.connect()
    other = Client()
    scene.edge.open(Opening("c", is_owner=True), other)
    scene.settle()
    assert len(scene.servers) == 1
    assert server.is_gone
    assert client.ended is other.ended is True


@pytest.mark.parametrize("is_old", [True, False], ids=["link from before the cut", "link made during the cut"])
def test_a_greeting_that_was_held_up_is_not_taken_for_a_new_one(is_old: bool) -> None:
    scene = Scene()
    if is_old:
        scene.settle()
    scene.held_up = []
    tunnel = scene.edge.open(Opening("b", is_owner=True), Client())
    tunnel.send(b"hello, with a token")
    scene.pass_time(7_000)
    assert scene.is_broken  # the client goes to another host
    for packet in scene.held_up:
        scene.seat.heard(packet)
    scene.held_up = None
    scene.pass_time(7_000)
    assert scene.openings == []
