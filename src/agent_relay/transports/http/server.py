"""The HTTP server in the daemon's own loop: uvicorn, without its main loop and its signals.

It has an entrance for its own port, and one for each other host of a cluster, whose connections come through tunnels: the same
application behind each, and who may come in judged by that host's token, address and pages.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import cast

import msgspec
import uvicorn

from agent_relay.ports.cluster import EdgeHttp
from agent_relay.transports.arc.hub import Hub
from agent_relay.transports.arc.upgrade import upgrade_protocol
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.application import build_application
from agent_relay.transports.http.connections import REQUEST_S, Connections, make_protocol
from agent_relay.transports.http.front import Front
from agent_relay.transports.http.guard import Rules
from agent_relay.transports.http.page_keys import PageKeys
from agent_relay.transports.http.port import BACKLOG
from agent_relay.transports.http.table import FLAT_PATHS, OPEN_FOLDERS, OPEN_PATHS

_DRAIN_S = 3


class HttpServer:
    """`listener` None: it serves other hosts only."""

    def __init__(
        self, api: Api, listener: socket.socket | None, host: str, origins: frozenset[str], max_body_bytes: int,
        connections: Connections, *, hub: Hub | None = None, tls: tuple[str, str] | None = None, request_s: float = REQUEST_S,
    ) -> None:  # fmt: skip
        self._api = api
        self.port = 0 if listener is None else int(listener.getsockname()[1])
        self._hub = hub
        self._max_body_bytes = max_body_bytes
        self._connections = connections
        self._protocol = make_protocol(connections, request_s)
        self._listeners = [] if listener is None else [listener]
        self._edges: dict[str, tuple[EdgeHttp, uvicorn.Config]] = {}
        rules = self._make_rules(api, host, self.port, origins, "http" if tls is None else "https")
        self._uvicorn = uvicorn.Server(self._make_entrance(api, rules, tls))
        _log_like_us()

    def _make_rules(self, api: Api, host: str, port: int, origins: frozenset[str], scheme: str) -> Rules:
        return Rules(
            host=host, port=port, token_hash=api.token_hash, keys=api.page_keys, origins=origins,
            max_body_bytes=self._max_body_bytes, open_paths=OPEN_PATHS, open_folders=OPEN_FOLDERS, bare_paths=FLAT_PATHS,
            scheme=scheme,
        )  # fmt: skip

    def _make_entrance(self, api: Api, rules: Rules, tls: tuple[str, str] | None) -> uvicorn.Config:
        front = Front(build_application(api), rules, api.metrics, api.guesses, self._connections)
        cert, key = tls or (None, None)
        return uvicorn.Config(
            front, log_config=None, access_log=False, lifespan="off", loop="none", http=self._protocol,
            ws=cast("type[asyncio.Protocol]", upgrade_protocol(self._hub, api.arc, rules)), ssl_certfile=cert, ssl_keyfile=key,
            server_header=False, date_header=False, proxy_headers=False, backlog=BACKLOG, timeout_graceful_shutdown=_DRAIN_S,
        )  # fmt: skip

    def accept(self, host: str, http: EdgeHttp, keys: PageKeys) -> asyncio.Protocol:
        """For a connection to another host. `keys` are those of its pages, whatever `http` says."""
        known, entrance = self._edges.get(host, (None, None))
        if entrance is None or known != http:
            api = msgspec.structs.replace(
                self._api, token_hash=http.token_hash, page_keys=keys, is_encrypted=http.scheme == "https"
            )
            rules = self._make_rules(api, http.host, http.port, http.origins, http.scheme)
            entrance = self._make_entrance(api, rules, None)
            entrance.load()
            self._edges[host] = http, entrance
        return self._protocol(config=entrance, server_state=self._uvicorn.server_state, app_state={})

    async def start(self) -> None:
        config = self._uvicorn.config
        config.load()
        self._uvicorn.lifespan = config.lifespan_class(config)
        await self._uvicorn.startup(sockets=self._listeners)

    async def stop(self) -> None:
        """New requests are refused, streams end, what is being answered is answered."""
        for entrance in (self._uvicorn.config, *(each for _, each in self._edges.values())):
            cast("Front", entrance.app).is_stopping = True
        self._api.streams.stop()
        if self._hub is not None:
            await self._hub.stop()
        await self._uvicorn.shutdown(sockets=self._listeners)


def _log_like_us() -> None:
    """Sends what uvicorn has to say where our own words go. What clients do wrong, and that we end an answer that nobody reads,
    is nothing to say: `Front` notes every request."""
    theirs = logging.getLogger("uvicorn")
    theirs.handlers = list(logging.getLogger("agent_relay").handlers)
    theirs.propagate = False
    theirs.setLevel(logging.CRITICAL)
