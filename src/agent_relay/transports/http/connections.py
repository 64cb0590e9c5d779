"""Limits of connections: how many there may be, and the time that a client may take to say what it wants.

uvicorn lets everybody in, and waits for ever for a request that was begun and never ends. Here whoever has shown no token yet
holds a place only until somebody else needs it. To refuse newcomers would let a stranger who holds many connections keep the
owner out; so it is the oldest of those that nobody knows which makes room, of the address that has the most of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol, runtime_checkable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent_relay.ports.callers import Caller
from agent_relay.transports.source import source_of

Client = tuple[str, int]  # address and port
REQUEST_S = 30.0  # from the connection, or a request's first byte, to its last; bodies are at most a few mebibytes
_UNFINISHED = (h11.IDLE, h11.SEND_BODY)  # the client's side, as h11 calls it: no head yet, no end yet


class Line(Protocol):
    def abort(self) -> None: ...


@runtime_checkable
class RemoteLine(Line, Protocol):
    """One whose other end is on another host of the cluster."""

    def ask_caller(self) -> Awaitable[Caller]: ...


class Connections:
    def __init__(self, most: int, most_unknown: int) -> None:
        self._most = most  # in all
        self._most_unknown = most_unknown  # of one address, before they have shown a token
        self._unknown: dict[str, dict[Client, Line]] = {}  # by source; the oldest first
        self._where: dict[Client, str] = {}  # the source of each unknown one
        self._known: dict[Client, Line] = {}

    def __len__(self) -> int:
        return len(self._where) + len(self._known)

    def opened(self, client: Client, line: Line) -> None:
        who = source_of(client[0])
        if len(self._unknown.get(who, ())) >= self._most_unknown:
            self._drop_oldest(who)
        elif len(self) >= self._most:
            if not self._unknown:
                line.abort()  # everybody here has a token
                return
            self._drop_oldest(max(self._unknown, key=lambda each: len(self._unknown[each])))
        self._unknown.setdefault(who, {})[client] = line
        self._where[client] = who

    def _drop_oldest(self, who: str) -> None:
        client, line = next(iter(self._unknown[who].items()))
        self.closed(client)
        line.abort()

    def know(self, client: Client) -> None:
        """It has shown a token, and stays for as long as it likes."""
        if client in self._where:
            line = self._unknown[self._where[client]][client]
            self.closed(client)
            self._known[client] = line

    def ask_caller(self, client: Client) -> Awaitable[Caller] | None:
        """None: it is not from another host."""
        line = self._known.get(client) or self._unknown.get(self._where.get(client, ""), {}).get(client)
        return line.ask_caller() if isinstance(line, RemoteLine) else None

    def closed(self, client: Client) -> None:
        """Or turned into something that is counted elsewhere."""
        self._known.pop(client, None)
        who = self._where.pop(client, None)
        if who is not None:
            del self._unknown[who][client]
            if not self._unknown[who]:
                del self._unknown[who]


def make_protocol(places: Connections, request_s: float) -> type[PatientProtocol]:
    """For one server: uvicorn makes one of these for each connection, and gives it nothing of ours."""
    return type("Protocol", (PatientProtocol,), {"places": places, "request_s": request_s})


class PatientProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it; whoever is not done asking in time is hung up on."""

    request_s = REQUEST_S
    places: Connections | None = None  # of the server
    _deadline: asyncio.TimerHandle | None = None
    _is_upgraded = False  # the connection is not ours any more: whoever has it now looks at the clock

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.places is not None and self.client is not None:
            self.places.opened(self.client, transport)
        self._look_at_the_clock()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look_at_the_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Called in the middle of `data_received`, with the end of the request unread."""
        self._is_upgraded = True
        self._leave()
        super().handle_websocket_upgrade(event)

    def _leave(self) -> None:
        self._stop()
        if self.places is not None and self.client is not None:
            self.places.closed(self.client)

    def _look_at_the_clock(self) -> None:
        if self._is_upgraded or self.conn.their_state not in _UNFINISHED:
            self._stop()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.request_s, self.transport.close)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
