"""The connection by itself: what it writes, and when."""

from __future__ import annotations

import asyncio

from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.envelope import DaemonFrame, Pong
from agent_relay.protocol.framing import DELIVER_HEADROOM_BYTES, encode_length
from agent_relay.sdk.connection import Connection
from agent_relay.sdk.ids import IdSource


class Wire(asyncio.Transport):
    """Notes every write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.ended = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.ended

    def close(self) -> None:
        self.ended = True

    abort = close


def open_on_a_wire(frames: list[DaemonFrame]) -> tuple[Connection, Wire]:
    connection, wire = Connection(IdSource(), frames.append, lambda reason: None), Wire()
    connection.connection_made(wire)
    return connection, wire


def test_all_frames_of_one_turn_leave_in_one_write() -> None:
    async def main() -> None:
        connection, wire = open_on_a_wire([])
        for frame in (b"a", b"b", b"c"):
            connection.send(frame)
        assert wire.writes == []
        await asyncio.sleep(0)
        assert wire.writes == [b"abc"]
        connection.send(b"d")
        await asyncio.sleep(0)
        assert wire.writes == [b"abc", b"d"]
        connection.connection_lost(None)

    asyncio.run(main())


def test_closing_writes_what_is_queued_and_nothing_after() -> None:
    async def main() -> None:
        connection, wire = open_on_a_wire([])
        connection.send(b"last words")
        connection.close()
        connection.send(b"too late")
        await asyncio.sleep(0)
        assert (wire.writes, wire.ended) == ([b"last words"], True)
        connection.connection_lost(None)
        assert connection.gone.result() == "The daemon closed the connection."

    asyncio.run(main())


def test_frames_may_be_larger_than_the_daemons_limit_by_the_headroom_and_no_more() -> None:
    async def main() -> None:
        frames: list[DaemonFrame] = []
        connection, wire = open_on_a_wire(frames)
        connection.welcome(max_frame_bytes=1_000, heartbeat_ms=60_000)
        empty = len(encode_envelope("PONG", "p", 1, {"nonce": ""})) - 4
        connection.data_received(encode_envelope("PONG", "p", 1, {"nonce": "x" * (1_000 + DELIVER_HEADROOM_BYTES - empty)}))
        assert [type(frame) for frame in frames] == [Pong]
        assert not wire.ended
        connection.data_received(encode_length(1_000 + DELIVER_HEADROOM_BYTES + 1))
        assert wire.ended
        connection.connection_lost(None)
        assert "5097 bytes" in connection.gone.result()

    asyncio.run(main())


def test_the_greeting_may_come_byte_by_byte() -> None:
    async def main() -> None:
        frames: list[DaemonFrame] = []
        connection, _ = open_on_a_wire(frames)
        for byte in encode_envelope("PONG", "p1", 1, {"nonce": 1}) + encode_envelope("PONG", "p2", 1, {"nonce": 2}):
            connection.data_received(bytes([byte]))
        assert [frame.id for frame in frames] == ["p1", "p2"]
        connection.connection_lost(None)

    asyncio.run(main())
