"""HTTP at an edge: bytes go into tunnels and come out of them, and last words arrive."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_relay.ports.callers import Caller
from agent_relay.ports.cluster import EdgeHttp, LocalEnd, Opening
from agent_relay.transports.callers import Callers
from agent_relay.transports.http.callers import HttpTracer
from agent_relay.transports.http.forwarding import HttpForwarder


class Tunnel:
    def __init__(self, opening: Opening, end: LocalEnd) -> None:
        self.opening = opening
        self.end = end
        self.got = b""
        self.took = 0
        self.is_closed = False
        self.caller: Caller | None = None

    def send(self, data: bytes) -> None:
        self.got += data

    def taken(self, count: int) -> None:
        self.took += count

    def tell_caller(self, caller: Caller) -> None:
        self.caller = caller

    def close(self) -> None:
        self.is_closed = True


class Edge:
    """Implements `ports.cluster.Tunnels`."""

    def __init__(self, folder: Path) -> None:
        self.opened: list[Tunnel] = []
        self.is_linked = True
        self.callers = Callers(str(folder / "seats.json"), str(folder / "relay.sock"))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.server = HttpForwarder(
            EdgeHttp("127.0.0.1", self.port, "http", None, frozenset(), "c", {}), HttpTracer(self.callers),
            lambda peer, at: Opening("b", is_owner=False, kind="http", peer=peer, at=at),
            lambda: self if self.is_linked else None, lambda: "It is cut off.", lambda: 0,
        )  # fmt: skip

    def open(self, opening: Opening, end: LocalEnd) -> Tunnel:
        self.opened.append(Tunnel(opening, end))
        return self.opened[-1]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Tunnel]:
        before = len(self.opened)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        await until(lambda: len(self.opened) > before)
        return reader, writer, self.opened[-1]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def play(folder: Path, act: Callable[[Edge], Awaitable[None]]) -> None:
    async def main() -> None:
        edge = Edge(folder)
        await edge.server.start(edge.listener, None)
        try:
            async with asyncio.timeout(120):
                await act(edge)
        finally:
            edge.server.stop()

    asyncio.run(main())


def test_bytes_pass_both_ways_with_the_clients_address(tmp_path: Path) -> None:
    async def act(edge: Edge) -> None:
        reader, writer, tunnel = await edge.connect()
        assert tunnel.opening.peer == writer.get_extra_info("sockname")
        assert tunnel.opening.at == ("127.0.0.1", edge.port)
        writer.write(b"GET")
        await until(lambda: tunnel.got == b"GET")
        tunnel.end.give(b"200")
        assert await reader.readexactly(3) == b"200"
        assert tunnel.took == 3
        writer.close()
        await until(lambda: tunnel.is_closed)

    play(tmp_path, act)


def test_last_words_arrive_although_the_client_still_sends(tmp_path: Path) -> None:
    async def act(edge: Edge) -> None:
        reader, writer, tunnel = await edge.connect()
        tunnel.end.hold(True)  # bytes pile up unread, which a plain close would answer with a reset
        writer.write(b"x" * 300_000)
        await asyncio.sleep(0)
        tunnel.end.give(b"last words")
        tunnel.end.end(at_once=False)
        writer.write(b"y" * 300_000)
        assert await reader.read() == b"last words"
        writer.close()
        await until(lambda: not edge.server.clients)

    play(tmp_path, act)


def test_a_broken_link_ends_a_connection_at_once(tmp_path: Path) -> None:
    async def act(edge: Edge) -> None:
        reader, writer, tunnel = await edge.connect()
        tunnel.end.end(at_once=True)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()

    play(tmp_path, act)


def test_the_process_at_the_other_end_is_looked_for_here(tmp_path: Path) -> None:
    async def act(edge: Edge) -> None:
        _, writer, tunnel = await edge.connect()
        tunnel.end.find_caller()
        await until(lambda: tunnel.caller is not None)
        assert tunnel.caller == Caller(via="http")
        writer.close()
        await until(lambda: tunnel.is_closed)
        tunnel.end.find_caller()  # asked for when it is gone already: nobody is told, and nothing breaks

    play(tmp_path, act)


def test_without_a_link_the_reason_is_told(tmp_path: Path) -> None:
    async def act(edge: Edge) -> None:
        edge.is_linked = False
        reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        writer.write(f"GET /ready HTTP/1.1\r\nHost: 127.0.0.1:{edge.port}\r\n\r\n".encode())
        said = await reader.read()
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"It is cut off." in said
        writer.close()
        assert not edge.opened

    play(tmp_path, act)


def test_many_who_say_nothing_make_room(tmp_path: Path) -> None:
    async def act(edge: Edge) -> None:
        edge.is_linked = False
        lines = [await asyncio.open_connection("127.0.0.1", edge.port) for _ in range(260)]
        for reader, _ in lines[:3]:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        for _, writer in lines:
            writer.close()

    play(tmp_path, act)
