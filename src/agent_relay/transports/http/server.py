"""The HTTP server in the daemon's own loop: uvicorn, without its main loop and its signals."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import cast

import uvicorn

from agent_relay.transports.arc.hub import Hub
from agent_relay.transports.arc.upgrade import upgrade_protocol
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.application import build_application
from agent_relay.transports.http.connections import REQUEST_S, Connections, make_protocol
from agent_relay.transports.http.front import Front
from agent_relay.transports.http.guard import Rules
from agent_relay.transports.http.port import BACKLOG, make_url
from agent_relay.transports.http.table import FLAT_PATHS, OPEN_FOLDERS, OPEN_PATHS

_DRAIN_S = 3


class HttpServer:
    def __init__(
        self, api: Api, listener: socket.socket, host: str, token: str | None, origins: frozenset[str],
        max_body_bytes: int, connections: Connections, *, hub: Hub | None = None, tls: tuple[str, str] | None = None,
        request_s: float = REQUEST_S,
    ) -> None:  # fmt: skip
        self._api = api
        self.host, self.port = host, int(listener.getsockname()[1])
        self._hub = hub
        self._scheme = "http" if tls is None else "https"
        rules = Rules(
            host, self.port, token, api.page_keys, origins, max_body_bytes, OPEN_PATHS, OPEN_FOLDERS, FLAT_PATHS,
            self._scheme,
        )  # fmt: skip
        cert, key = tls or (None, None)
        self._front = Front(build_application(api), rules, api.metrics, api.guesses, connections)
        self._listener = listener
        self._uvicorn = uvicorn.Server(
            uvicorn.Config(
                self._front, log_config=None, access_log=False, lifespan="off", loop="none",
                http=make_protocol(connections, request_s),
                ws=cast("type[asyncio.Protocol]", upgrade_protocol(hub, api.arc, rules)), ssl_certfile=cert, ssl_keyfile=key,
                server_header=False, date_header=False, proxy_headers=False, backlog=BACKLOG, timeout_graceful_shutdown=_DRAIN_S,
            )
        )  # fmt: skip
        _log_like_us()

    @property
    def url(self) -> str:
        return make_url(self.host, self.port, self._scheme)

    async def start(self) -> None:
        config = self._uvicorn.config
        config.load()
        self._uvicorn.lifespan = config.lifespan_class(config)
        await self._uvicorn.startup(sockets=[self._listener])

    async def stop(self) -> None:
        """New requests are refused, streams end, what is being answered is answered."""
        self._front.is_stopping = True
        self._api.streams.stop()
        if self._hub is not None:
            await self._hub.stop()
        await self._uvicorn.shutdown(sockets=[self._listener])


def _log_like_us() -> None:
    """Sends what uvicorn has to say where our own words go. What clients do wrong, and that we end an answer that nobody reads,
    is nothing to say: `Front` notes every request."""
    theirs = logging.getLogger("uvicorn")
    theirs.handlers = list(logging.getLogger("agent_relay").handlers)
    theirs.propagate = False
    theirs.setLevel(logging.CRITICAL)
