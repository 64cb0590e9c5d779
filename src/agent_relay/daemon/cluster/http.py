"""HTTP of a host in a cluster: one listener for as long as the process lives. As an edge it passes each connection to the seat;
while the host has the seat, the daemon inside it serves the same listener. So its address is the same all the time."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from agent_relay.daemon.cluster.seat_http import SharedPlace
from agent_relay.daemon.config import Config
from agent_relay.daemon.http import NOT_WANTED, cookie_name
from agent_relay.daemon.http_place import HttpPlace
from agent_relay.daemon.logs import logger
from agent_relay.daemon.project_file import ProjectFile
from agent_relay.ports.clock import Clock
from agent_relay.ports.cluster import EdgeHttp, Keys, Opening, Tunnels
from agent_relay.protocol import places
from agent_relay.storage.page_keys import PageKeyFile
from agent_relay.transports.callers import Callers
from agent_relay.transports.http.callers import HttpTracer
from agent_relay.transports.http.forwarding import HttpForwarder
from agent_relay.transports.http.port import PortUnusable


class ClusterHttp:
    def __init__(self, config: Config, host: str, token_hash: str, clock: Clock) -> None:
        self._config = config
        self._host = host
        self._token_hash = token_hash
        self._clock = clock
        self._began_ms = clock.steady_ms()
        self._keys = PageKeyFile(config.file(places.PAGE_KEYS_FILE))
        self._project = ProjectFile(config, clock.wall_ms())
        self._place = HttpPlace(config, self._project)
        self._tls: ssl.SSLContext | None = None
        self._listener: socket.socket | None = None
        self._forwarder: HttpForwarder | None = None

    async def open(self) -> None:
        """Listens. Where it cannot, everything else goes on."""
        self._project.write()
        if not self._config.http:
            self._place.refuse(NOT_WANTED)
            return
        try:
            self._listener = await asyncio.to_thread(self._place.listen)
            self._tls = self._read_certificate()
        except (PortUnusable, OSError) as error:
            logger.warning("http_unavailable", extra={"relay_fields": {"reason": str(error)}})
            self._place.refuse(str(error))
            self._close_listener()
        else:
            assert self._listener is not None
            self._place.announce(self._listener.getsockname()[1])

    def _read_certificate(self) -> ssl.SSLContext | None:
        if self._config.tls is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._config.tls)
        return context

    def describe(self) -> EdgeHttp | None:
        """For the seat, by which it judges requests to this host."""
        if self._listener is None:
            return None
        config = self._config
        return EdgeHttp(
            config.host, self._listener.getsockname()[1], "http" if self._tls is None else "https",
            None if config.no_auth else self._token_hash, config.cors_origins, cookie_name(config), self._keys.load(),
        )  # fmt: skip

    def keep_keys(self, keys: Keys) -> None:
        self._keys.save(keys)

    # --- an edge --------------------------------------------------------------------------------------------------------

    async def serve_edge(self, callers: Callers, tunnels: Callable[[], Tunnels | None], reason: Callable[[], str]) -> None:
        http = self.describe()
        if self._listener is None or http is None:
            return
        self._forwarder = HttpForwarder(
            http, HttpTracer(callers), self._introduce, tunnels, reason, lambda: self._clock.steady_ms() - self._began_ms
        )
        await self._forwarder.start(self._listener.dup(), self._tls)

    def _introduce(self, peer: tuple[str, int], at: tuple[str, int]) -> Opening:
        return Opening(self._host, is_owner=False, kind="http", peer=peer, at=at)

    def stop_edge(self) -> None:
        if self._forwarder is not None:
            self._forwarder.stop()
            self._forwarder = None

    # --- the seat, and the end ------------------------------------------------------------------------------------------

    def share(self) -> HttpPlace:
        return SharedPlace(self._listener)

    def close(self) -> None:
        self._close_listener()
        self._place.leave()

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
