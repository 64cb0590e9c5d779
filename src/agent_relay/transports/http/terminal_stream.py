"""Terminals as a stream: several agents' screens over one answer, each drawn first and then followed.

Nothing waits here for a slow reader: what it has not been sent stays in the agents' files, and when these have moved on it
gets the screen anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from agent_relay.ports.watchers import LiveNews, LivePlace, LiveScreens
from agent_relay.protocol.encode import encode_json

LOOK_S = 0.05
HEARTBEAT_S = 15.0
LOST_S = 60.0  # one answer that is not taken for so long has no reader any more
_FIRST = b": terminals follow\n\n"
_HEARTBEAT = b": heartbeat\n\n"


class TerminalStream:
    """Holds its place from the moment it is made until `close`."""

    def __init__(self, screens: LiveScreens, agents: Sequence[str], on_close: Callable[[TerminalStream], None]) -> None:
        self._screens = screens
        self._places: dict[str, LivePlace | None] = dict.fromkeys(agents)
        self._on_close = on_close
        self._over = asyncio.Event()
        self._lost = asyncio.Event()

    async def parts(self) -> AsyncIterator[bytes]:
        yield _FIRST + b"".join(encode_frame("gone", {"agent": name}) for name in await asyncio.to_thread(self._missing))
        loop = asyncio.get_running_loop()
        said_at = loop.time()
        while not self._over.is_set():
            news = await asyncio.to_thread(self._look)
            part = b"".join(frame for name, found in news for frame in encode_news(name, found))
            if part or loop.time() - said_at >= HEARTBEAT_S:
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
