"""Streams of events on a bus of their own: heartbeats, places, and the end.

A stream of terminals over readers of its own: frames, several agents, a reader that is slow, and the end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from agent_relay.events.bus import MAX_BEHIND, EventBus, ReadDone
from agent_relay.events.codec import encode_event
from agent_relay.events.filter import EventFilter
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.types import AgentState
from agent_relay.ports.watchers import LiveNews, LivePlace
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.transports.http import sse
from agent_relay.transports.http.sse import Streams, TerminalStream


class Nothing:
    """A source without a past."""

    last_seq = 0

    def read(self, query: EventQuery, done: ReadDone) -> None:
        asyncio.get_running_loop().call_soon(done, EventPage([], query.after_seq, 1, is_end=True))


def line(seq: int) -> bytes:
    return encode_event(AgentState(seq=seq, ts=1, state="idle"))


def publish(bus: EventBus, *seqs: int) -> None:
    bus.published(seqs[0], len(seqs), b"".join(line(seq) + b"\n" for seq in seqs))


async def take(parts: object, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(120):
        async for part in parts:  # type: ignore[attr-defined]
            found.append(part)
            if len(found) == count:
                break
    return found


def test_silence_is_broken_by_heartbeats() -> None:
    async def play() -> None:
        bus = EventBus(Nothing())
        stream = Streams(bus, 1, heartbeat_s=0.01).open(EventFilter(), None, None)
        parts = stream.parts()
        assert await take(parts, 3) == [b": events follow\n\n", b": heartbeat\n\n", b": heartbeat\n\n"]
        publish(bus, 1, 2)
        (part,) = await take(parts, 1)
        assert part == b"".join(b"event: agent.state\nid: %d\ndata: %b\n\n" % (seq, line(seq)) for seq in (1, 2))
        stream.close()

    asyncio.run(play())


def test_a_place_is_taken_until_the_stream_is_closed() -> None:
    async def play() -> None:
        streams = Streams(EventBus(Nothing()), 2)
        first, _ = streams.open(EventFilter(), None, None), streams.open(EventFilter(), None, None)
        with pytest.raises(RelayError) as refused:
            streams.open(EventFilter(), None, None)
        assert refused.value.code is ErrorCode.SERVICE_UNAVAILABLE
        first.close()
        first.close()
        assert streams.count == 1
        streams.open(EventFilter(), None, None)

    asyncio.run(play())


def test_who_falls_behind_is_told_at_once_also_while_nothing_is_taken() -> None:
    async def play() -> None:
        bus = EventBus(Nothing())
        stream = Streams(bus, 1).open(EventFilter(), None, None)
        for seq in range(1, MAX_BEHIND + 2):
            publish(bus, seq)
        async with asyncio.timeout(120):
            await stream.wait_until_lost()
        parts = b"".join([part async for part in stream.parts()])
        assert parts.count(b"event: ") == MAX_BEHIND

    asyncio.run(play())


def test_at_the_end_every_stream_ends() -> None:
    async def play() -> None:
        streams = Streams(EventBus(Nothing()), 5)
        open_ones = [streams.open(EventFilter(), None, None) for _ in range(3)]
        reading = [asyncio.create_task(take(stream.parts(), 9)) for stream in open_ones]
        await asyncio.sleep(0)
        streams.stop()
        assert [await each for each in reading] == [[b": events follow\n\n"]] * 3
        with pytest.raises(RelayError, match="stopping"):
            streams.open(EventFilter(), None, None)

    asyncio.run(play())


def test_who_does_not_read_what_was_loses_its_place_as_well() -> None:
    async def play() -> None:
        bus = EventBus(Nothing())
        publish(bus, *range(1, 1_000))
        stream = Streams(bus, 1, lost_s=0.05).open(EventFilter(), 0, None)
        parts = stream.parts()
        assert len(await take(parts, 2)) == 2  # the rest is for whoever asks for it
        assert not stream._subscription.is_live
        async with asyncio.timeout(120):
            await stream.wait_until_lost()

    asyncio.run(play())


def test_who_reads_keeps_its_place() -> None:
    async def play() -> None:
        bus = EventBus(Nothing())
        publish(bus, *range(1, 1_000))
        stream = Streams(bus, 1, lost_s=0.5).open(EventFilter(), 0, None)
        reading = asyncio.create_task(take(stream.parts(), 9))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await stream.wait_until_lost()
        stream.end()
        assert sum(part.count(b"event: ") for part in await reading) == 999

    asyncio.run(play())


# --- terminals ---------------------------------------------------------------------------------------------------------


class Screens:
    """What each agent shows: texts in order. A reader who comes gets all of them as one drawing."""

    def __init__(self, **shown: list[str]) -> None:
        self.shown = shown
        self.ended: set[str] = set()

    def read(self, agent: str, place: LivePlace | None) -> LiveNews | None:
        texts = self.shown.get(agent)
        if texts is None:
            return None
        reached = LivePlace("one", len(texts), (1, len(texts), int(agent in self.ended)))
        if place == reached:
            return None
        start = 0 if place is None else place.offset
        size = (80, 24) if place is None else None
        return LiveNews(reached, "".join(texts[start:]), size, agent in self.ended)


def read_frames(part: bytes) -> list[tuple[str, dict[str, Any]]]:
    frames = []
    for block in part.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if lines:
            frames.append((lines["event"], json.loads(lines["data"])))
    return frames


async def next_frames(parts: AsyncIterator[bytes]) -> list[tuple[str, dict[str, Any]]]:
    async with asyncio.timeout(120):
        return read_frames(await anext(parts))


def perform(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def test_each_is_drawn_first_and_then_followed() -> None:
    async def scene() -> None:
        screens = Screens(Ann=["a"], Bob=["b"])
        stream = TerminalStream(screens, ["Ann", "Bob", "Nobody"], lambda _: None)
        parts = stream.parts()
        assert await next_frames(parts) == [("gone", {"agent": "Nobody"})]
        assert await next_frames(parts) == [
            ("snapshot", {"agent": "Ann", "columns": 80, "rows": 24, "text": "a"}),
            ("snapshot", {"agent": "Bob", "columns": 80, "rows": 24, "text": "b"}),
        ]
        screens.shown["Bob"] += ["\x1b[31m<script>\r\n\n", "more"]
        assert await next_frames(parts) == [("output", {"agent": "Bob", "text": "\x1b[31m<script>\r\n\nmore"})]
        screens.ended.add("Ann")
        assert await next_frames(parts) == [("end", {"agent": "Ann"})]
        screens.shown["Nobody"] = ["late"]
        assert [event for event, _ in await next_frames(parts)] == ["snapshot"]

    perform(scene())


def test_silence_of_terminals_is_broken_by_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "TERMINAL_HEARTBEAT_S", 0.01)

    async def scene() -> None:
        parts = TerminalStream(Screens(), ["Ann"], lambda _: None).parts()
        await next_frames(parts)
        async with asyncio.timeout(120):
            assert await anext(parts) == b": heartbeat\n\n"

    perform(scene())


def test_one_who_does_not_read_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LOST_S", 0.01)

    async def scene() -> None:
        stream = TerminalStream(Screens(Ann=["a"]), ["Ann"], lambda _: None)
        parts = stream.parts()
        await next_frames(parts)
        await next_frames(parts)  # given, and nothing more is asked for
        async with asyncio.timeout(120):
            await stream.wait_until_lost()

    perform(scene())


def test_one_who_reads_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LOST_S", 0.2)
    monkeypatch.setattr(sse, "TERMINAL_HEARTBEAT_S", 0.0)
    monkeypatch.setattr(sse, "LOOK_S", 0.01)

    async def scene() -> None:
        stream = TerminalStream(Screens(), ["Ann"], lambda _: None)
        parts = stream.parts()
        lost = asyncio.create_task(stream.wait_until_lost())
        ends = asyncio.get_running_loop().time() + 0.6
        while asyncio.get_running_loop().time() < ends:
            await next_frames(parts)
        assert not lost.done()
        lost.cancel()

    perform(scene())


def test_it_ends_when_it_is_told_to() -> None:
    async def scene() -> None:
        closed: list[TerminalStream] = []
        stream = TerminalStream(Screens(Ann=["a"]), ["Ann"], closed.append)
        parts = stream.parts()
        await next_frames(parts)
        stream.end()
        async with asyncio.timeout(120):
            assert [part async for part in parts] == []
        stream.close()
        assert closed == [stream]

    perform(scene())
