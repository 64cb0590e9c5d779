"""The path of a message through the daemon's own parts, in one thread and without a kernel: connections over transports that
keep what they are given, the pump, the core, SQLite in memory, events as lines of JSON. And the bare forwarder beside it.

What is left out is what depends on the machine and its other work: sockets, flushes, threads that wake each other.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from agent_relay.core.limits import Limits
from agent_relay.core.relay import Relay
from agent_relay.events.drafts import Draft, encode_drafts
from agent_relay.events.recorder import Recorder
from agent_relay.ports.store import Batch, MessageStore, Snapshot, WriteDone
from agent_relay.storage.sqlite.backlog import write_backlog
from agent_relay.storage.sqlite.insert import write_messages
from agent_relay.storage.sqlite.migrate import apply_migrations
from agent_relay.storage.sqlite.rows import write_rest
from agent_relay.storage.sqlite.snapshot import load_snapshot
from agent_relay.testing.clock import ManualClock
from agent_relay.transports.pump import Pump
from agent_relay.transports.stream import StreamConnection
from bench.forwarder import Side
from bench.relay_wire import cut_frames, encode_frame
from tests.support.harness import FixedEntropy, RecordingLog

AT_ONCE = 50  # messages that arrive together
_FRAMES = 2_000  # through the forwarder, one by one, in about the time that those take
_BODY = "x" * 200
_WINDOW = 1_000


class KeepingTransport:
    """What a connection or the forwarder writes to."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def writelines(self, data: list[bytes]) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int) -> None:
        """Nothing waits here."""

    def take(self) -> bytes:
        data, self.written = b"".join(self.written), []
        return data


class OwnConnection(StreamConnection):
    def identify(self, transport: asyncio.Transport) -> int | None:
        return 1_000


class InlineStore:
    """The part of `ports.MessageStore` that a stored and acknowledged message needs, with SQLite's own statements."""

    trouble: str | None = None

    def __init__(self, later: Callable[[Callable[[], None]], None]) -> None:
        self._later = later
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=256)

    def open(self) -> Snapshot:
        apply_migrations(self._connection)
        return load_snapshot(self._connection)

    def write(self, batch: Batch, done: WriteDone) -> None:
        self._connection.execute("BEGIN")
        write_messages(self._connection, batch.messages)
        write_rest(self._connection, batch)
        write_backlog(self._connection, batch)
        self._connection.execute("COMMIT")
        self._later(lambda: done(None))


class OwnLoop:
    """As much of a loop as the pump needs; the test makes it go round."""

    def __init__(self) -> None:
        self._ready: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()

    def call_soon(self, callback: Callable[..., None], *arguments: Any) -> None:
        self._ready.append((callback, arguments))

    def run(self) -> None:
        while self._ready:
            callback, arguments = self._ready.popleft()
            callback(*arguments)


class MessagePath:
    def __init__(self) -> None:
        self._clock, self._loop = ManualClock(), OwnLoop()
        loop = cast("asyncio.AbstractEventLoop", self._loop)
        store = InlineStore(lambda callback: self._loop.call_soon(self._pump.run, callback))
        snapshot = store.open()
        self._events: list[Draft] = []
        self._recorder = Recorder(self._events.extend, lambda _flush: None)
        limits = Limits(queue_capacity=1_000_000, max_inflight=_WINDOW, heartbeat_ms=10**9)
        relay = Relay(
            limits, cast("MessageStore", store), FixedEntropy(), RecordingLog(), snapshot, self._clock.steady_ms(),
            self._clock.wall_ms(), events=self._recorder,
        )  # fmt: skip
        self._pump = Pump(loop, relay, self._clock, lambda _seconds: None)
        self._sent = self._event_seq = 0
        self._alice, self._to_alice = self._connect("Alice")
        self._bob, self._to_bob = self._connect("Bob")

    def _connect(self, name: str) -> tuple[OwnConnection, KeepingTransport]:
        connection, transport = OwnConnection(self._pump, 1 << 20), KeepingTransport()
        connection.connection_made(cast("asyncio.Transport", transport))
        capabilities = {"ack": True, "sequences": True, "max_inflight": _WINDOW}
        hello = encode_frame("HELLO", f"hello-{name}", {"agent": name, "version": 2, "capabilities": capabilities})
        self._give(connection, hello)
        assert b'"WELCOME"' in transport.take()
        return connection, transport

    def _give(self, connection: OwnConnection, data: bytes) -> None:
        connection.data_received(data)
        self._loop.run()

    def measure(self) -> float:
        """Nanoseconds of processor time a message, from its bytes to those of its answer, and to its acknowledgement."""
        self._clock.advance(10)
        first, self._sent = self._sent, self._sent + AT_ONCE
        sends = b"".join(
            encode_frame("SEND", f"m-{number}", {"kind": "message", "body": _BODY}, to="Bob")
            for number in range(first, self._sent)
        )
        began = time.thread_time_ns()
        self._give(self._alice, sends)
        spent = time.thread_time_ns() - began
        assert len(list(cut_frames(self._to_alice.take()))) == AT_ONCE
        ids = [frame.partition(b'"id":"')[2].partition(b'"')[0].decode() for frame in cut_frames(self._to_bob.take())]
        assert len(ids) == AT_ONCE
        acks = b"".join(encode_frame("ACK", f"a-{id_}", {"ack_id": id_}) for id_ in ids)
        began = time.thread_time_ns()
        self._give(self._bob, acks)
        self._recorder.flush()
        lines, _ = encode_drafts(self._events, self._event_seq + 1, 0)
        spent += time.thread_time_ns() - began
        self._event_seq += len(self._events)
        self._events.clear()
        assert lines.count(b'"message.delivered"') == AT_ONCE
        return spent / AT_ONCE


class ForwarderPath:
    """The same frames, one by one, from one side to the other."""

    def __init__(self) -> None:
        self._frame = encode_frame("SEND", "m-1", {"kind": "message", "body": _BODY}, to="Bob")
        self._out = KeepingTransport()
        one, other = Side(), Side()
        one.connection_made(cast("asyncio.Transport", KeepingTransport()))
        other.connection_made(cast("asyncio.Transport", self._out))
        self._side = one

    def measure(self) -> float:
        """Nanoseconds of processor time a frame."""
        receive, frame = self._side.data_received, self._frame
        began = time.thread_time_ns()
        for _ in range(_FRAMES):
            receive(frame)
        spent = time.thread_time_ns() - began
        assert len(self._out.take()) == _FRAMES * len(frame)
        return spent / _FRAMES
