"""What waits to be written: given in pieces, dropped between frames."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop

from agent_relay.transports.arc.outbox import PIECE_BYTES, Outbox


class Sink:
    """A transport whose system takes as many bytes as the test lets it."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken = b""
        self.held = b""

    def get_extra_info(self, name: str) -> None:
        """It is a plain socket."""

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        assert (high, low) == (0, 0)

    def write(self, data: bytes) -> None:
        self.held += data
        self.let(0)

    def let(self, more: int) -> None:
        self.room += more
        now, self.held = self.held[: self.room], self.held[self.room :]
        self.room -= len(now)
        self.taken += now

    def get_write_buffer_size(self) -> int:
        return len(self.held)


def make(room: int) -> tuple[Outbox, Any]:
    sink: Any = Sink(room)
    return Outbox(sink), sink


def test_everything_goes_in_one_write_where_there_is_room() -> None:
    out, sink = make(1_000)
    for frame in (b"one ", b"two ", b"three"):
        out.put(frame)
    assert out.unsent_bytes == 13
    out.flush(0)
    assert (sink.taken, out.unsent_bytes, out.is_stalled) == (b"one two three", 0, False)


def test_what_the_transport_has_is_bounded_and_the_rest_can_be_dropped() -> None:
    out, sink = make(100)
    frames = [bytes([65 + number]) * 100_000 for number in range(10)]
    for frame in frames:
        out.put(frame)
    out.flush(7)
    assert out.is_stalled
    assert len(sink.taken) == 100
    assert len(sink.held) <= PIECE_BYTES + 100_000
    assert out.unsent_bytes == 999_900
    assert (out.stalled_ms(10_007), out.stalled_ms(7)) == (10_000, 0)
    out.drop()
    out.put(b"last words")
    out.flush(8)
    assert b"last words" not in sink.held  # nothing is given before the rest is taken
    sink.let(10**9)
    out.is_stalled = False
    out.flush(9)
    assert sink.taken == b"".join(frames[:3]) + b"last words"
    assert out.unsent_bytes == 0


FILES = Path(__file__).parents[3] / "data" / "tls"
FRAMES = [bytes([65 + number % 26]) * (1 + number * number * 97 % 70_001) for number in range(60)]


class Writer(asyncio.Protocol):
    """The server's end: writes what is asked for, with the marks that the transport gives."""

    def __init__(self, is_there: asyncio.Future[Writer]) -> None:
        self._is_there = is_there
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.out = Outbox(self.transport)
        self._is_there.set_result(self)

    def data_received(self, data: bytes) -> None:
        self.heard.put_nowait(data)

    def say(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.out.put(frame)
        self.out.flush(0)

    def pause_writing(self) -> None:
        self.out.is_stalled = True

    def resume_writing(self) -> None:
        self.out.is_stalled = False
        self.out.flush(0)


async def talk(server: Writer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for number, frame in enumerate(FRAMES):  # it hears something none to three times before it speaks
        for _ in range(number % 4):
            writer.write(b"?")
            assert await server.heard.get() == b"?"
        server.say([frame])
        assert await reader.readexactly(len(frame)) == frame
    server.say(FRAMES * 10)  # more than the system takes
    assert await reader.readexactly(sum(map(len, FRAMES)) * 10) == b"".join(FRAMES) * 10
    assert (server.out.unsent_bytes, server.out.is_stalled) == (0, False)


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_real_transport_never_leaves_it_stalled(make_loop: Callable[[], asyncio.AbstractEventLoop], is_tls: bool) -> None:
    async def main() -> None:
        ours = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        ours.load_cert_chain(FILES / "cert.pem", FILES / "key.pem")
        theirs = ssl.create_default_context(cafile=str(FILES / "cert.pem"))
        loop = asyncio.get_running_loop()
        is_there: asyncio.Future[Writer] = loop.create_future()
        server = await loop.create_server(lambda: Writer(is_there), "127.0.0.1", 0, ssl=ours if is_tls else None)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=theirs if is_tls else None)
        writing = await is_there
        try:
            await asyncio.wait_for(talk(writing, reader, writer), 30)
        finally:  # all of it, or uvloop would wait for ever when it is closed
            writing.transport.abort()
            writer.transport.abort()
            server.close()
            await asyncio.wait_for(server.wait_closed(), 10)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
