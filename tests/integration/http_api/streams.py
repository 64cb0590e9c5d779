"""Readers of server-sent events, over plain sockets: a library would hide what is on the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import httpx

from .server import Server


@dataclass
class Event:
    type: str
    id: int
    data: dict[str, Any]


_opened: list[Stream] = []


def run(play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In a loop of its own; every stream is closed at the end."""

    async def whole() -> None:
        try:
            async with asyncio.timeout(110):
                await play()
        finally:
            await asyncio.gather(*(stream.close() for stream in _opened))
            _opened.clear()

    asyncio.run(whole())


class Stream:
    """One open stream. `comments` are what is said between events."""

    def __init__(self, server: Server) -> None:
        self._url = httpx.URL(server.url)
        self._token = server.daemon.api_headers
        self.status = 0
        self.headers: dict[str, str] = {}
        self.comments: list[str] = []

    async def open(self, target: str, **headers: str) -> Stream:
        self.reader, self.writer = await asyncio.open_connection(self._url.host, self._url.port, limit=2**22)
        _opened.append(self)
        lines = [
            f"GET {target} HTTP/1.1",
            f"Host: {self._url.host}:{self._url.port}",
            *(f"{name}: {value}" for name, value in (self._token | headers).items()),
        ]
        self.writer.write("\r\n".join([*lines, "", ""]).encode())
        self.status = int((await self.reader.readline()).split()[1])
        while (line := (await self.reader.readline()).strip()) != b"":
            name, _, value = line.decode().partition(": ")
            self.headers[name.lower()] = value
        return self

    async def events(self) -> AsyncIterator[Event]:
        """Ends when the server ends it."""
        text = ""
        async for chunk in self._chunks():
            text += chunk.decode()
            *blocks, text = text.split("\n\n")
            for block in blocks:
                if block.startswith(":"):
                    self.comments.append(block)
                    continue
                fields = dict(line.split(": ", 1) for line in block.split("\n"))
                assert list(fields) == ["event", "id", "data"]
                data = json.loads(fields["data"])
                assert (data["type"], data["_seq"]) == (fields["event"], int(fields["id"]))
                yield Event(fields["event"], int(fields["id"]), data)
        assert text == "", "it ended in the middle of an event"

    async def take(self, count: int, timeout_s: float = 30.0) -> list[Event]:
        found: list[Event] = []
        async with asyncio.timeout(timeout_s):
            async for event in self.events():
                found.append(event)
                if len(found) == count:
                    return found
        raise AssertionError(f"it ended after {len(found)} of {count} events")

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            line = await self.reader.readline()
            if not line:
                return  # the server gave up on us
            size = int(line, 16)
            chunk = await self.reader.readexactly(size + 2)
            if size == 0:
                return
            yield chunk[:-2]

    def kill(self) -> None:
        """As a process that dies: nothing more is read, nothing is said."""
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)
