"""A relay that records what a transport tells it, and a server on a real socket with a loop of either kind."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from agent_relay.ports.connection import Connection
from agent_relay.protocol.framing import encode_frame
from agent_relay.protocol.states import CloseReason
from agent_relay.testing.clock import ManualClock
from agent_relay.transports.pump import Pump
from agent_relay.transports.unix import UnixServer

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
DEADLINE_S = 60.0  # a loaded machine takes many times what an idle one does


class RecordingPeer:
    def __init__(self, connection: Connection, uid: int) -> None:
        self.connection = connection
        self.uid = uid
        self.frames: list[bytes] = []
        self.told: list[Any] = []  # what happened to it, in order


class RecordingRelay:
    """`ports.RelayCore`. `answer`, if set, is called with every peer that has sent frames."""

    def __init__(self) -> None:
        self.peers: list[RecordingPeer] = []
        self.turns = 0
        self.moments: list[tuple[int, int]] = []
        self.answer: Callable[[RecordingPeer, list[bytes]], None] | None = None
        self.at_turn_end: Callable[[], None] | None = None
        self.is_gathering = False

    def clock_says(self, steady_ms: int, wall_ms: int) -> None:
        self.moments.append((steady_ms, wall_ms))

    def accepted(self, connection: Connection, uid: int) -> RecordingPeer:
        self.peers.append(RecordingPeer(connection, uid))
        return self.peers[-1]

    def received(self, peer: RecordingPeer, frames: list[bytes]) -> None:
        peer.frames += frames
        if self.answer is not None and frames:
            self.answer(peer, frames)

    def oversized(self, peer: RecordingPeer, size_bytes: int) -> None:
        peer.told.append(("oversized", size_bytes))

    def drained(self, peer: RecordingPeer) -> None:
        peer.told.append("drained")

    def crashed(self, peer: RecordingPeer) -> None:
        peer.told.append("crashed")

    def disconnected(self, peer: RecordingPeer, reason: CloseReason) -> None:
        peer.told.append(reason)

    def turn_ended(self) -> None:
        self.turns += 1
        if self.at_turn_end is not None:
            self.at_turn_end()

    def gathered(self) -> None:
        self.is_gathering = False


class CountingTransport:
    """A connection's transport, with the writes it was given."""

    def __init__(self, inner: asyncio.Transport) -> None:
        self._inner = inner
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(bytes(data))
        self._inner.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def count_writes(peer: RecordingPeer) -> CountingTransport:
    connection: Any = peer.connection
    connection._transport = CountingTransport(connection._transport)
    return connection._transport  # type: ignore[no-any-return]


def run(kind: str, test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(test(), 2 * DEADLINE_S)

    with asyncio.Runner(loop_factory=LOOPS[kind]) as runner:
        runner.run(limited())


async def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.001)


class Served:
    def __init__(self, path: str, **options: Any) -> None:
        self.relay = RecordingRelay()
        self.clock = ManualClock()
        self.pump: Pump = Pump(asyncio.get_running_loop(), self.relay, self.clock)
        settings = {"max_frame_bytes": 65_536, "allowed_uids": frozenset[int](), "slow_consumer_ms": 30_000} | options
        self.server: UnixServer = UnixServer(self.pump, path, self.clock, **settings)
        self._clients: list[socket.socket] = []

    async def connect(self, receive_bytes: int | None = None) -> tuple[socket.socket, RecordingPeer]:
        """A client, and what the relay knows of it."""
        client, known = self.dial(), len(self.relay.peers)
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        await until(lambda: len(self.relay.peers) > known)
        return client, self.relay.peers[-1]

    def dial(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._clients.append(client)
        client.connect(self.server.path)
        client.setblocking(False)
        return client

    async def read(self, client: socket.socket, count: int) -> bytes:
        found = b""
        while len(found) < count:
            chunk = await asyncio.get_running_loop().sock_recv(client, 1 << 20)
            if not chunk:
                break
            found += chunk
        return found

    async def read_to_end(self, client: socket.socket) -> bytes:
        return await self.read(client, 1 << 62)

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.server.stop_listening()


@asynccontextmanager
async def serve(path: str, **options: Any) -> AsyncIterator[Served]:
    served = Served(path, **options)
    await served.server.start()
    try:
        yield served
    finally:
        served.close()
        await until(lambda: not served.server.connections)


FRAME = encode_frame(b'{"type":"PING"}')
