"""A stream of terminals over readers of its own: frames, several agents, a reader that is slow, and the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from agent_relay.ports.watchers import LiveNews, LivePlace
from agent_relay.transports.http import terminal_stream
from agent_relay.transports.http.terminal_stream import TerminalStream


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
    async with asyncio.timeout(10):
        return read_frames(await anext(parts))


def play(scene: Coroutine[Any, Any, None]) -> None:
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

    play(scene())


def test_silence_is_broken_by_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_stream, "HEARTBEAT_S", 0.01)

    async def scene() -> None:
        parts = TerminalStream(Screens(), ["Ann"], lambda _: None).parts()
        await next_frames(parts)
        async with asyncio.timeout(10):
            assert await anext(parts) == b": heartbeat\n\n"

    play(scene())


def test_one_who_does_not_read_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_stream, "LOST_S", 0.01)

    async def scene() -> None:
        stream = TerminalStream(Screens(Ann=["a"]), ["Ann"], lambda _: None)
        parts = stream.parts()
        await next_frames(parts)
        await next_frames(parts)  # given, and nothing more is asked for
        async with asyncio.timeout(10):
            await stream.wait_until_lost()

    play(scene())


def test_one_who_reads_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_stream, "LOST_S", 0.2)
    monkeypatch.setattr(terminal_stream, "HEARTBEAT_S", 0.0)
    monkeypatch.setattr(terminal_stream, "LOOK_S", 0.01)

    async def scene() -> None:
        stream = TerminalStream(Screens(), ["Ann"], lambda _: None)
        parts = stream.parts()
        lost = asyncio.create_task(stream.wait_until_lost())
        ends = asyncio.get_running_loop().time() + 0.6
        while asyncio.get_running_loop().time() < ends:
            await next_frames(parts)
        assert not lost.done()
        lost.cancel()

    play(scene())


def test_it_ends_when_it_is_told_to() -> None:
    async def scene() -> None:
        closed: list[TerminalStream] = []
        stream = TerminalStream(Screens(Ann=["a"]), ["Ann"], closed.append)
        parts = stream.parts()
        await next_frames(parts)
        stream.end()
        async with asyncio.timeout(10):
            assert [part async for part in parts] == []
        stream.close()
        assert closed == [stream]

    play(scene())
