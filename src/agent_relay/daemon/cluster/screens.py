"""Terminals of agents on every host, at the seat: those of this host from its files, those of others by asking their hosts.

A host answers the seat alone, and no more than fits into one message of the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import msgspec
from msgspec import Struct

from agent_relay.cluster.asks import ANSWER_BYTES, Asks, Told
from agent_relay.ports.watchers import LiveNews, LivePlace, LiveScreens, ScreenReader, Shown
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.names import is_name

SCREEN = "screen"
_PATIENCE_MS = 2_000  # somebody looks at it, and sees nothing meanwhile
_WAIT_S = 5.0
_MOST_LINES = 10_000

T = TypeVar("T")


class _Look(Struct, frozen=True, array_like=True):
    agent: str
    lines: int = 0  # 0: the screen alone
    is_live: bool = False
    place: LivePlace | None = None


class ClusterScreens:
    """`ports.ScreenReader` and `ports.LiveScreens`; called from threads. `host_of` says where an agent is."""

    def __init__(
        self, host: str, files: ScreenReader, live: LiveScreens, host_of: Callable[[str], str], asks: Asks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:  # fmt: skip
        self._host = host
        self._files = files
        self._live = live
        self._host_of = host_of
        self._asks = asks
        self._loop = loop

    def screen(self, agent: str) -> Shown | None:
        host = self._host_of(agent)
        return self._files.screen(agent) if host in {"", self._host} else self._ask(host, _Look(agent), Shown)

    def output(self, agent: str, lines: int) -> Shown | None:
        host = self._host_of(agent)
        return self._files.output(agent, lines) if host in {"", self._host} else self._ask(host, _Look(agent, lines), Shown)

    def read(self, agent: str, place: LivePlace | None) -> LiveNews | None:
        host = self._host_of(agent)
        if host in {"", self._host}:
            return self._live.read(agent, place)
        return self._ask(host, _Look(agent, is_live=True, place=place), LiveNews)

    def _ask(self, host: str, look: _Look, kind: type[T]) -> T | None:
        """None where that host does not answer: it is shown as one that has no terminal."""
        answer: Future[bytes | RelayError] = Future()
        body = msgspec.msgpack.encode(look)
        self._loop.call_soon_threadsafe(lambda: self._asks.ask(host, SCREEN, body, answer.set_result, _PATIENCE_MS))
        try:
            said = answer.result(_WAIT_S)
        except TimeoutError:
            return None
        if isinstance(said, RelayError):
            return None
        try:
            return msgspec.msgpack.decode(said, type=kind | None)
        except msgspec.MsgspecError:
            return None


def show_screens(asks: Asks, files: ScreenReader, live: LiveScreens, is_seat: Callable[[str], bool]) -> None:
    """This host answers the seat. `live` reads no more at once than an answer may have."""
    looking: set[asyncio.Task[None]] = set()

    def look(asker: str, body: bytes, told: Told) -> None:
        wanted = msgspec.msgpack.decode(body, type=_Look)
        if is_seat(asker) and is_name(wanted.agent):
            task = asyncio.ensure_future(find(wanted, told))
            looking.add(task)
            task.add_done_callback(looking.discard)

    async def find(wanted: _Look, told: Told) -> None:
        found = await asyncio.to_thread(_find, files, live, wanted)
        told(msgspec.msgpack.encode(found))

    asks.answer(SCREEN, look)


def _find(files: ScreenReader, live: LiveScreens, wanted: _Look) -> Shown | LiveNews | None:
    if wanted.is_live:
        return live.read(wanted.agent, wanted.place)
    shown = files.output(wanted.agent, min(wanted.lines, _MOST_LINES)) if wanted.lines else files.screen(wanted.agent)
    return None if shown is None else Shown(_take_last(shown.lines), shown.is_over)


def _take_last(lines: list[str]) -> list[str]:
    """As many as fit."""
    room, found = ANSWER_BYTES, list[str]()
    for line in reversed(lines):
        room -= len(line.encode("utf-8", "replace")) + 5
        if room < 0:
            break
        found.append(line)
    return found[::-1]
