"""Clients of other hosts, at both ends of a tunnel.

At an edge, `ForwardServer` has the socket in place of `UnixServer`: it looks at who connects, as that does, and passes bytes on
without reading them. At the seat, `TunnelConnection` is a connection like any other, but for who is at its other end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import Any, cast

from agent_relay.ports.callers import Caller
from agent_relay.ports.cluster import Opening, TunnelHandle, Tunnels
from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.errors import ErrorCode, RelayError, error_payload
from agent_relay.transports.callers import Callers
from agent_relay.transports.process_table import Process, look_at
from agent_relay.transports.pump import Pump
from agent_relay.transports.stream import StreamConnection
from agent_relay.transports.unix import UnixServer, open_socket, peer_pid, peer_uid

CLUSTER_UID = -3  # whose names those are that clients of the cluster's hosts hold: users have other numbers on other hosts
_BACKLOG = 512
_RETRY_MS = 1_000


class Forwarded(asyncio.Protocol):
    """One connection to this edge, and its tunnel."""

    def __init__(self, forget: Callable[[Any], None]) -> None:
        self._forget = forget
        self._transport: asyncio.Transport | None = None
        self._tunnel: TunnelHandle | None = None
        self._untaken = 0
        self._is_stalled = False

    def pause_writing(self) -> None:
        self._is_stalled = True

    def resume_writing(self) -> None:
        self._is_stalled = False
        self._tell_taken()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why it ended makes no difference
        self._forget(self)
        self._transport = None
        tunnel, self._tunnel = self._tunnel, None
        if tunnel is not None:
            tunnel.close()

    # --- from the tunnel ------------------------------------------------------------------------------------------------

    def give(self, data: bytes) -> None:
        if self._transport is not None:
            self._untaken += len(data)
            self._transport.write(data)
            if not self._is_stalled:
                self._tell_taken()

    def _tell_taken(self) -> None:
        count, self._untaken = self._untaken, 0
        if count and self._tunnel is not None:
            self._tunnel.taken(count)

    def hold(self, is_held: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if is_held else self._transport.resume_reading)()

    def end(self, *, at_once: bool) -> None:
        self._tunnel = None
        if self._transport is not None:
            (self._transport.abort if at_once else self._transport.close)()

    def runs(self, agent: str, pid: int | None) -> None:
        """Nobody asks."""

    def find_caller(self) -> None:
        """Nobody asks."""


class ForwardedClient(Forwarded):
    """One client of this edge. While nobody has the seat, its first words are answered with the reason."""

    def __init__(self, server: ForwardServer) -> None:
        super().__init__(server.forget)
        self._server = server
        self._is_introduced = False  # its first words were passed on
        self._was_answered = False
        self._process: Process | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)
        connection = self._transport.get_extra_info("socket")
        if peer_uid(connection) != os.geteuid():
            self._transport.abort()
            return
        pid = peer_pid(connection)
        self._process = look_at(pid) if pid else None
        self._server.clients[self] = None
        tunnels = self._server.tunnels()
        if tunnels is not None:
            caller = self._server.callers.trace(self._process) if self._process is not None else Caller()
            self._tunnel = tunnels.open(self._server.introduce(caller), self)

    def data_received(self, data: bytes) -> None:
        if not self._is_introduced:
            if self._has_hung_up():
                return
            self._is_introduced = True
        if self._tunnel is not None:
            self._tunnel.send(data)
        else:
            self._refuse()

    def _has_hung_up(self) -> bool:
        """An edge that was suspended finds greetings of clients that have long been let in at another host. Passed on, they would
        take the session away from there."""
        assert self._transport is not None
        connection = self._transport.get_extra_info("socket")
        try:
            with socket.socket(fileno=os.dup(connection.fileno())) as peer:
                return not peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def give(self, data: bytes) -> None:
        self._was_answered = True
        super().give(data)

    def end(self, *, at_once: bool) -> None:
        """A client that has heard nothing yet is told why: the seat it was led to is gone."""
        if at_once and not self._was_answered and self._transport is not None:
            self._tunnel = None
            self._refuse()
            return
        super().end(at_once=at_once)

    def _refuse(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_refusal(self._server.reason()))
            self._transport.close()

    def runs(self, agent: str, pid: int | None) -> None:
        if self._process is not None:
            self._server.callers.seat(agent, self._process, pid)


class ForwardServer:
    """`tunnels`: to the seat, or None while there is none; then `reason` says why."""

    def __init__(
        self, path: str, callers: Callers, introduce: Callable[[Caller], Opening], tunnels: Callable[[], Tunnels | None],
        reason: Callable[[], str],
    ) -> None:  # fmt: skip
        self._path = path
        self.callers = callers
        self.introduce = introduce
        self.tunnels = tunnels
        self.reason = reason
        self.clients: dict[ForwardedClient, None] = {}
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Nothing where it listens already."""
        if self._server is not None:
            return
        listener = open_socket(self._path, shared=False)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: ForwardedClient(self), sock=listener, backlog=_BACKLOG)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
        for client in list(self.clients):
            client.end(at_once=True)

    def forget(self, client: ForwardedClient) -> None:
        self.clients.pop(client, None)


def _refusal(reason: str) -> bytes:
    error = RelayError(ErrorCode.SERVICE_UNAVAILABLE, reason, retry_after_ms=_RETRY_MS)
    return encode_envelope("ERROR", "edge", time.time_ns() // 1_000_000, error_payload(error, 2) | {"fatal": True})


class TunnelConnection(StreamConnection):
    """At the seat: a client of another host."""

    __slots__ = ("_opening", "_server")

    def __init__(self, pump: Pump, max_frame_bytes: int, opening: Opening, server: UnixServer) -> None:
        super().__init__(pump, max_frame_bytes)
        self._opening = opening
        self._server = server  # watches it with its own: readers that do not read, last words that have to leave

    def identify(self, transport: asyncio.Transport) -> int | None:
        del transport
        if not self._opening.is_owner:
            return None
        self._server.connections[self] = None
        return CLUSTER_UID

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.forget(self)
        super().connection_lost(exc)

    @property
    def host(self) -> str:
        return self._opening.host

    @property
    def owner_proof(self) -> str:
        return self._opening.owner_proof

    def caller(self) -> Caller:
        return Caller(self._opening.agent, host=self._opening.host)

    def runs(self, agent: str, pid: int | None) -> None:
        if self._transport is not None:
            cast("_Remote", self._transport).runs(agent, pid)


class _Remote(asyncio.Transport):
    """A transport of the cluster's, as far as it has more than asyncio's."""

    def runs(self, agent: str, pid: int | None) -> None: ...
