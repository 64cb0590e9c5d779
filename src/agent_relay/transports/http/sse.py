"""Streams of server-sent events: each follows the feed of events from where its reader was, and never waits for others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from agent_relay.events.bus import EventBus, Subscription
from agent_relay.events.filter import EventFilter
from agent_relay.events.record import Record
from agent_relay.ports.watchers import LiveScreens
from agent_relay.transports.http.errors import unavailable
from agent_relay.transports.http.terminal_stream import LOST_S, TerminalStream

HEARTBEAT_S = 30.0
_AT_ONCE = 256
_FIRST = b": events follow\n\n"  # so that whoever is between passes the answer's head on at once
_HEARTBEAT = b": heartbeat\n\n"


class Streams:
    def __init__(self, bus: EventBus, most: int, heartbeat_s: float = HEARTBEAT_S, lost_s: float = LOST_S) -> None:
        self._bus = bus
        self._most = most
        self._heartbeat_s = heartbeat_s
        self._lost_s = lost_s
        self._open: set[EventStream | TerminalStream] = set()
        self._stopping = False

    @property
    def count(self) -> int:
        return len(self._open)

    def open(self, wanted: EventFilter, after_seq: int | None, since_ms: int | None) -> EventStream:
        """Raises RelayError where there are too many."""
        self._check_room()
        stream = EventStream(self._bus, wanted, after_seq, since_ms, self._heartbeat_s, self._lost_s, self._open.discard)
        self._open.add(stream)
        return stream

    def open_terminals(self, screens: LiveScreens, agents: Sequence[str]) -> TerminalStream:
        """Raises RelayError where there are too many."""
        self._check_room()
        stream = TerminalStream(screens, agents, self._open.discard)
        self._open.add(stream)
        return stream

    def _check_room(self) -> None:
        if self._stopping:
            raise unavailable("The daemon is stopping.")
        if len(self._open) >= self._most:
            raise unavailable(f"{self._most} streams are open, which is the maximum; see max_sse.")

    def stop(self) -> None:
        self._stopping = True
        self.end_all()

    def end_all(self) -> None:
        for stream in list(self._open):
            stream.end()


class EventStream:
    """Holds its place from the moment it is made until `close`."""

    def __init__(
        self, bus: EventBus, wanted: EventFilter, after_seq: int | None, since_ms: int | None, heartbeat_s: float,
        lost_s: float, on_close: Callable[[EventStream], None],
    ) -> None:  # fmt: skip
        self._news = asyncio.Event()
        self._lost = asyncio.Event()
        self._heartbeat_s = heartbeat_s
        self._lost_s = lost_s
        self._on_close = on_close
        self._is_over = False
        self._subscription: Subscription = bus.subscribe(
            wanted, after_seq=after_seq, since_ms=since_ms, on_news=self._hear
        )  # fmt: skip

    async def parts(self) -> AsyncIterator[bytes]:
        yield _FIRST
        subscription, loop = self._subscription, asyncio.get_running_loop()
        while not self._is_over:
            self._news.clear()
            records = subscription.take(_AT_ONCE)
            if records:
                losing = loop.call_later(self._lost_s, self._lost.set)  # of a replay nobody falls behind
                yield b"".join(map(encode_sse, records))
                losing.cancel()
            elif subscription.is_over:
                return  # too far behind, or the store cannot be read: the reader comes again with Last-Event-ID
            else:
                try:
                    async with asyncio.timeout(self._heartbeat_s):
                        await self._news.wait()
                except TimeoutError:
                    yield _HEARTBEAT

    def _hear(self) -> None:
        self._news.set()
        if self._subscription.is_over:
            self._lost.set()

    async def wait_until_lost(self) -> None:
        """Returns when the reader fell too far behind, or has not read for a long time; it may not notice, as it does not read
        what we say."""
        await self._lost.wait()

    def end(self) -> None:
        """Lets the reader go, at the daemon's end."""
        self._is_over = True
        self._news.set()

    def close(self) -> None:
        self._subscription.close()
        self._on_close(self)


def encode_sse(record: Record) -> bytes:
    return b"event: %b\nid: %d\ndata: %b\n\n" % (record.type.encode(), record.seq, record.line)
