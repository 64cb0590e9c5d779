"""Streams of server-sent events: the feed of events, from where its reader was, and live terminals. None waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from agent_relay.events.bus import EventBus, Subscription
from agent_relay.events.filter import EventFilter
from agent_relay.events.record import Record
from agent_relay.ports.watchers import LiveNews, LivePlace, LiveScreens
from agent_relay.protocol.encode import encode_json
from agent_relay.transports.http.errors import unavailable

HEARTBEAT_S = 30.0
LOST_S = 60.0  # one answer that is not taken for so long has no reader any more
TERMINAL_HEARTBEAT_S = 15.0
LOOK_S = 0.05  # between two looks at the terminals
_AT_ONCE = 256
_FIRST = b": events follow\n\n"  # so that whoever is between passes the answer's head on at once
_FIRST_OF_TERMINALS = b": terminals follow\n\n"
_HEARTBEAT = b": heartbeat\n\n"

Encode = Callable[[Record], bytes]


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

    def open(
        self, wanted: EventFilter, after_seq: int | None, since_ms: int | None, encode: Encode | None = None
    ) -> EventStream:  # fmt: skip
        """Raises RelayError where there are too many. `encode`: how a record is told, where it is not as an event of ours."""
        self._check_room()
        stream = EventStream(
            self._bus, wanted, after_seq, since_ms, self._heartbeat_s, self._lost_s, self._open.discard, encode or encode_sse
        )
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
        lost_s: float, on_close: Callable[[EventStream], None], encode: Encode,
    ) -> None:  # fmt: skip
        self._news = asyncio.Event()
        self._lost = asyncio.Event()
        self._heartbeat_s = heartbeat_s
        self._lost_s = lost_s
        self._on_close = on_close
        self._encode = encode
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
                yield b"".join(map(self._encode, records))
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


class TerminalStream:
    """Several agents' screens over one answer, each drawn first and then followed. Holds its place as the other does.

    Nothing waits here for a slow reader: what it has not been sent stays in the agents' files, and when these have moved on it
    gets the screen anew.
    """

    def __init__(self, screens: LiveScreens, agents: Sequence[str], on_close: Callable[[TerminalStream], None]) -> None:
        self._screens = screens
        self._places: dict[str, LivePlace | None] = dict.fromkeys(agents)
        self._on_close = on_close
        self._over = asyncio.Event()
        self._lost = asyncio.Event()

    async def parts(self) -> AsyncIterator[bytes]:
        yield _FIRST_OF_TERMINALS + b"".join(
            encode_frame("gone", {"agent": name}) for name in await asyncio.to_thread(self._missing)
        )
        loop = asyncio.get_running_loop()
        said_at = loop.time()
        while not self._over.is_set():
            news = await asyncio.to_thread(self._look)
            part = b"".join(frame for name, found in news for frame in encode_news(name, found))
            if part or loop.time() - said_at >= TERMINAL_HEARTBEAT_S:
                said_at = loop.time()
                losing = loop.call_later(LOST_S, self._lost.set)
                yield part or _HEARTBEAT
                losing.cancel()
            await self._pause(LOOK_S)

    def _missing(self) -> list[str]:
        return [name for name in self._places if self._screens.read(name, None) is None]

    def _look(self) -> list[tuple[str, LiveNews]]:
        found = []
        for name, place in self._places.items():
            news = self._screens.read(name, place)
            if news is not None:
                found.append((name, news))
        self._places |= {name: news.place for name, news in found}
        return found

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return

    async def wait_until_lost(self) -> None:
        """Returns when nobody has read for a long time."""
        await self._lost.wait()

    def end(self) -> None:
        self._over.set()

    def close(self) -> None:
        self._on_close(self)


def encode_news(agent: str, news: LiveNews) -> list[bytes]:
    frames = []
    if news.size is not None:
        columns, rows = news.size
        frames.append(encode_frame("snapshot", {"agent": agent, "columns": columns, "rows": rows, "text": news.text}))
    elif news.text:
        frames.append(encode_frame("output", {"agent": agent, "text": news.text}))
    if news.is_over:
        frames.append(encode_frame("end", {"agent": agent}))
    return frames


def encode_frame(event: str, data: dict[str, Any]) -> bytes:
    """JSON has no line breaks of its own, so it is one line of the stream."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), encode_json(data))
