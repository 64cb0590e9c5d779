"""HTTP of the daemon that has the seat: for its own host, on the listener of its process, and through tunnels for every other
host of the cluster."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec

from agent_relay.daemon.http import Http
from agent_relay.daemon.http_place import HttpPlace
from agent_relay.ports.cluster import EdgeHttp, Keys, Opening

if TYPE_CHECKING:
    from agent_relay.transports.http.page_keys import PageKeys


class SharedPlace(HttpPlace):
    """A place that outlives the seat: the process has it, and says where it is. `listener` is None where the process has none."""

    def __init__(self, listener: socket.socket | None) -> None:
        self._listener = listener

    @property
    def is_wanted(self) -> bool:
        return True  # also without a port of its own, for the other hosts

    def listen(self) -> socket.socket | None:
        return None if self._listener is None else self._listener.dup()

    def announce(self, port: int) -> None: ...

    def refuse(self, reason: str) -> None: ...

    def leave(self) -> None: ...


class _Edge:
    """A host, its HTTP as it said last, and the keys of its pages: as long as the seat is here, they are kept here, and that host
    is told what becomes of them."""

    def __init__(self, http: EdgeHttp, keep: Callable[[Keys], None]) -> None:
        self.http = msgspec.structs.replace(http, keys={})
        self.keep = keep
        self._keys = dict(http.keys)
        self.page_keys: PageKeys | None = None

    def load(self) -> dict[str, int]:
        return dict(self._keys)

    def save(self, keys: Keys) -> None:
        self._keys = dict(keys)
        self.keep(keys)

    def come_again(self, http: EdgeHttp, keep: Callable[[Keys], None]) -> None:
        """Over another link: what it has on disk may be older than what is here."""
        self.http = msgspec.structs.replace(http, keys={})
        self.keep = keep
        keep(self._keys)


class Waiting(asyncio.Protocol):
    """A connection that came before the server was there."""

    def __init__(self, begin: Callable[[], asyncio.Protocol]) -> None:
        self._begin = begin
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why it ended makes no difference
        self._transport = None

    def go_on(self) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            protocol = self._begin()
            transport.set_protocol(protocol)
            protocol.connection_made(transport)
            transport.resume_reading()

    def give_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class SeatHttp(Http):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._edges: dict[str, _Edge] = {}
        self._waiting: list[Waiting] = []
        self._is_over = False  # it could not be started, or has stopped

    def introduced(self, host: str, http: EdgeHttp, keep: Callable[[Keys], None]) -> None:
        edge = self._edges.get(host)
        if edge is None or edge.http.cookie != http.cookie:
            self._edges[host] = _Edge(http, keep)
        else:
            edge.come_again(http, keep)

    def accept(self, opening: Opening) -> asyncio.Protocol:
        if self._server is not None and not self._is_over:
            return self._serve_edge(opening.host)
        waiting = Waiting(lambda: self._serve_edge(opening.host))
        self._waiting.append(waiting)
        if self._is_over:
            asyncio.get_running_loop().call_soon(waiting.give_up)
        return waiting

    def _serve_edge(self, host: str) -> asyncio.Protocol:
        from agent_relay.transports.http.page_keys import PageKeys  # noqa: PLC0415 - once somebody asks

        edge = self._edges.get(host)
        if self._server is None or edge is None:
            return _Refused()
        if edge.page_keys is None:
            edge.page_keys = PageKeys(edge, edge.http.cookie, self._clock.steady_ms, self._clock.wall_ms)
        return self._server.accept(host, edge.http, edge.page_keys)

    async def _start(self) -> None:
        await super()._start()
        self._is_over = self._server is None
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.give_up() if self._is_over else each.go_on()

    async def stop(self) -> None:
        await super().stop()
        self._is_over = True


class _Refused(asyncio.Protocol):
    """A host that has not said how it serves HTTP cannot be judged."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()
