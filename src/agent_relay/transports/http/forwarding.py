"""HTTP at an edge of a cluster: each connection goes to the seat through a tunnel, and nobody here reads what is said in it.

TLS ends here, with this host's certificate. While there is no way to the seat, requests are answered with the reason.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import cast

from agent_relay.ports.cluster import EdgeHttp, Opening, Tunnels
from agent_relay.transports.http.callers import HttpTracer
from agent_relay.transports.http.port import BACKLOG
from agent_relay.transports.http.unserved import UnservedProtocol, linger
from agent_relay.transports.tunnels import Forwarded

_LINGER_S = 5.0  # for a client to hang up after its last words
_MOST_UNSERVED = 256  # connections at once: whoever is told the reason is gone within seconds

Address = tuple[str, int]
Introduce = Callable[[Address, Address], Opening]  # the client's address, and the one that it connected to


class ForwardedHttp(Forwarded):
    """One connection of this edge's HTTP."""

    def __init__(self, server: HttpForwarder) -> None:
        super().__init__(server.forget)
        self._http = server
        self._ends: tuple[Address, Address] = (("", 0), ("", 0))
        self._is_ending = False
        self._looking: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # Above the mark a socket pauses, and TLS at it: with 0 it would pause with nothing left, and never go on.
        self._transport.set_write_buffer_limits(high=0 if self._transport.get_extra_info("ssl_object") is None else 1)
        peer, at = (self._transport.get_extra_info(name) for name in ("peername", "sockname"))
        if not peer or not at:
            self._transport.abort()
            return
        self._ends = (str(peer[0]), int(peer[1])), (str(at[0]), int(at[1]))
        tunnels = self._http.tunnels()
        if tunnels is None:
            self._http.refuse(self._transport)
            return
        self._http.clients[self] = None
        self._tunnel = tunnels.open(self._http.introduce_http(*self._ends), self)

    def data_received(self, data: bytes) -> None:
        if self._tunnel is not None:
            self._tunnel.send(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._looking is not None:
            self._looking.cancel()
        super().connection_lost(exc)

    def end(self, *, at_once: bool) -> None:
        transport = self._transport
        if at_once or transport is None or self._is_ending:
            super().end(at_once=at_once)
            return
        self._is_ending = True
        self._tunnel = None
        transport.resume_reading()  # and what comes is dropped
        linger(transport)
        asyncio.get_running_loop().call_later(_LINGER_S, self._give_up)

    def _give_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def find_caller(self) -> None:
        self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        caller = await self._http.tracer.find(*self._ends)
        if self._tunnel is not None:
            self._tunnel.tell_caller(caller)


class HttpForwarder:
    """`tunnels`: to the seat, or None while there is none; then `reason` says why."""

    def __init__(
        self, http: EdgeHttp, tracer: HttpTracer, introduce: Introduce, tunnels: Callable[[], Tunnels | None],
        reason: Callable[[], str], uptime_ms: Callable[[], int],
    ) -> None:  # fmt: skip
        self._bound = http
        self.tracer = tracer
        self.introduce_http = introduce
        self.tunnels = tunnels
        self._reason = reason
        self._uptime_ms = uptime_ms
        self.clients: dict[ForwardedHttp, None] = {}
        self._unserved: dict[asyncio.Transport, None] = {}
        self._server: asyncio.AbstractServer | None = None

    async def start(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: ForwardedHttp(self), sock=listener, ssl=tls, backlog=BACKLOG)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for client in list(self.clients):
            client.end(at_once=True)

    def forget(self, client: ForwardedHttp) -> None:
        self.clients.pop(client, None)

    def refuse(self, transport: asyncio.Transport) -> None:
        """Says why, and that is all."""
        self._unserved = {each: None for each in self._unserved if not each.is_closing()}
        if len(self._unserved) >= _MOST_UNSERVED:
            next(iter(self._unserved)).abort()
        self._unserved[transport] = None
        unserved = UnservedProtocol(self._bound, self._reason, self._uptime_ms)
        transport.set_protocol(unserved)
        unserved.connection_made(transport)
