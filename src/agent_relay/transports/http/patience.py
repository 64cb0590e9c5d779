"""Patience with clients: the time that one may take to say what it wants, and how many may try. uvicorn waits for ever for a
request that was begun and never ends, and lets everybody in."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent_relay.transports.http.connections import Connections

REQUEST_S = 30.0  # from the connection, or a request's first byte, to its last; bodies are at most a few mebibytes
_UNFINISHED = (h11.IDLE, h11.SEND_BODY)  # the client's side, as h11 calls it: no head yet, no end yet


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
