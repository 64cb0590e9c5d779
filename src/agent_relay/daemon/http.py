"""HTTP in the daemon: started once the socket answers, stopped before it. Without it everything else goes on.

What it needs is imported in a thread meanwhile, which takes longer than everything before it together. Where it listens, or
why it does not, stands in `http.json` in the state directory.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_relay.core.service import Service
from agent_relay.daemon.config import Config
from agent_relay.daemon.cost_models import load_prices
from agent_relay.daemon.directories import remove_file, write_private_file
from agent_relay.daemon.logs import logger
from agent_relay.daemon.project_file import ProjectFile
from agent_relay.daemon.project_record import find_port_holder
from agent_relay.events.bus import EventBus
from agent_relay.events.prices import Prices
from agent_relay.ports.callers import Caller
from agent_relay.ports.clock import Clock
from agent_relay.ports.names import AgentNames
from agent_relay.ports.watchers import AgentFileReader, Budgets
from agent_relay.protocol import places
from agent_relay.transports.callers import Callers
from agent_relay.transports.http.port import PortTaken, PortUnusable, open_free_port, open_port
from agent_relay.transports.pump import Pump

if TYPE_CHECKING:
    from agent_relay.daemon.arc import Arc
    from agent_relay.transports.arc.desk import Desk
    from agent_relay.transports.arc.hub import Hub
    from agent_relay.transports.http.api import Api
    from agent_relay.transports.http.server import HttpServer

_EXPOSED = (
    "HTTP is served beyond this machine without TLS: tokens and messages can be read in transit. Use --tls-cert and --tls-key."
)
_NO_AUTH = "HTTP needs no token (--no-auth): every user of this machine can read messages, type, and start programs as you."
_HEAD_START_S = 0.15  # for those who wait at the socket: what follows takes turns with them for a while
_PATIENCE_S = 1.0  # for what is being answered, at the end; nearly everything takes milliseconds


class Http:
    def __init__(
        self, config: Config, token: str, pump: Pump, bus: EventBus, clock: Clock, service: Service,
        budgets: Budgets, names: AgentNames, callers: Callers, check_right: Callable[[Caller, str], None],
        files: AgentFileReader, project: ProjectFile,
    ) -> None:  # fmt: skip
        self._config = config
        self._project = project
        self._token = None if config.no_auth else token
        self._pump = pump
        self._bus = bus
        self._clock = clock
        self._service = service
        self._budgets = budgets
        self._names = names
        self._callers = callers
        self._check_right = check_right
        self._files = files
        self._arc: Arc | None = None
        self._starting: asyncio.Task[None] | None = None
        self._server: HttpServer | None = None
        self._is_stopping = False
        remove_file(self._file)  # of an earlier life

    @property
    def _file(self) -> str:
        return self._config.file(places.HTTP_FILE)

    def begin(self) -> None:
        if self._config.http:
            self._starting = asyncio.create_task(self._start())
        else:
            self._say({"url": None, "reason": "The daemon was started without HTTP."})

    async def _start(self) -> None:
        try:
            listener = await asyncio.to_thread(self._listen)
        except PortUnusable as error:
            logger.warning("http_unavailable", extra={"relay_fields": {"reason": str(error)}})
            self._say({"url": None, "reason": str(error)})
            return
        try:
            await asyncio.sleep(_HEAD_START_S)
            if self._is_stopping:
                listener.close()
            else:
                await self._serve(listener)
        except Exception as error:  # noqa: BLE001 - whatever it is: the relay goes on without HTTP, and says so
            listener.close()
            logger.exception("http_unavailable")
            self._say({"url": None, "reason": f"HTTP could not be started: {error}"})

    def _listen(self) -> socket.socket:
        config = self._config
        if config.port is None:
            return open_free_port(config.host, self._project.last_port)
        try:
            return open_port(config.host, config.port)
        except PortTaken as error:
            holder = find_port_holder(config.home, config.port)
            advice = holder or f"To see who listens there: ss -ltnp 'sport = :{config.port}'"
            raise PortUnusable(f"{error} {advice}") from None

    async def _serve(self, listener: socket.socket) -> None:
        arc = self._arc = await asyncio.to_thread(self._open_arc, asyncio.get_running_loop())
        hub, desk = arc.start(self._pump, self._names, self._service, self._clock) or (None, None)
        server = await asyncio.to_thread(self._build, listener, hub, desk)
        await self._service.start()
        await server.start()
        self._server = server
        gc.freeze()  # what was imported stays until the end; to collect first would only stop the loop for a while
        self._say(
            {"url": server.url, "host": server.host, "port": server.port, "certificate": self._config.tls_cert} | self._warn()
        )
        self._project.note_port(server.port)
        logger.info("http", extra={"relay_fields": {"url": server.url}})

    def _open_arc(self, loop: asyncio.AbstractEventLoop) -> Arc:
        from agent_relay.daemon.arc import Arc  # noqa: PLC0415

        def post(callback: Callable[[], None]) -> None:
            loop.call_soon_threadsafe(self._pump.run, callback)

        arc = Arc(self._config, self._token, post)
        arc.open()
        return arc

    def _build(self, listener: socket.socket, hub: Hub | None, desk: Desk | None) -> HttpServer:
        """In a thread: the imports take longer than the whole rest of the start."""
        from agent_relay.transports.http.connections import Connections  # noqa: PLC0415
        from agent_relay.transports.http.server import HttpServer  # noqa: PLC0415

        config = self._config
        return HttpServer(
            self._make_api(desk), listener, config.host, self._token, config.cors_origins,
            config.limits.max_frame_bytes, Connections(config.http_connections, config.http_connections_per_address),
            hub=hub, tls=config.tls, request_s=config.http_request_ms / 1000,
        )  # fmt: skip

    def _make_api(self, desk: Desk | None) -> Api:
        from agent_relay.dashboard.files import DashboardFiles  # noqa: PLC0415
        from agent_relay.storage.live_screens import LiveScreenFiles  # noqa: PLC0415
        from agent_relay.storage.page_keys import PageKeyFile  # noqa: PLC0415
        from agent_relay.storage.screens import ScreenFiles  # noqa: PLC0415
        from agent_relay.storage.workspaces import WorkspaceFile  # noqa: PLC0415
        from agent_relay.transports.http.api import Api  # noqa: PLC0415
        from agent_relay.transports.http.callers import TracedHttp  # noqa: PLC0415
        from agent_relay.transports.http.guesses import Guesses  # noqa: PLC0415
        from agent_relay.transports.http.keyboards import Keyboards  # noqa: PLC0415
        from agent_relay.transports.http.metrics import Metrics  # noqa: PLC0415
        from agent_relay.transports.http.openapi import encode_description  # noqa: PLC0415
        from agent_relay.transports.http.page_keys import PageKeys  # noqa: PLC0415
        from agent_relay.transports.http.repeats import Repeats  # noqa: PLC0415
        from agent_relay.transports.http.sse import Streams  # noqa: PLC0415
        from agent_relay.transports.http.table import ROUTES  # noqa: PLC0415
        from agent_relay.transports.http.usage import UsageBoard  # noqa: PLC0415

        config, clock = self._config, self._clock
        # By the directory: the port may be another next time, and another relay's may be the same.
        cookie = f"agent-relay-{places.project_id(os.path.realpath(config.state_dir))}"
        keys = PageKeys(PageKeyFile(config.file(places.PAGE_KEYS_FILE)), cookie, clock.steady_ms, clock.wall_ms)
        read_prices = functools.partial(_read_prices, config.home)
        description: Callable[[], bytes] = functools.cache(functools.partial(encode_description, ROUTES))
        return Api(
            service=self._service, bus=self._bus, streams=Streams(self._bus, config.max_sse), metrics=Metrics(self._bus),
            description=description, wall_ms=clock.wall_ms, read_prices=read_prices,
            screens=ScreenFiles(config.state_dir), live_screens=LiveScreenFiles(config.state_dir),
            keyboards=Keyboards(clock.steady_ms, clock.wall_ms), usage=UsageBoard(self._bus, read_prices),
            workspaces=WorkspaceFile(config.home, config.project_root), assets=DashboardFiles(),
            token=self._token, page_keys=keys, guesses=Guesses(clock.steady_ms), is_encrypted=config.tls is not None,
            budgets=self._budgets, files=self._files, is_ready=lambda: not self._is_stopping, arc=desk,
            callers=TracedHttp(self._callers, self._check_right), repeats=Repeats(clock.wall_ms),
        )  # fmt: skip

    def _warn(self) -> dict[str, str]:
        """A warning that everybody should see."""
        config = self._config
        if not (config.is_exposed or config.no_auth):
            return {}
        warning = _EXPOSED if config.is_exposed else _NO_AUTH
        logger.warning("http_exposed", extra={"relay_fields": {"host": config.host, "reason": warning}})
        sys.stderr.write(f"agent-relay: WARNING: {warning}\n")
        return {"warning": warning}

    def _say(self, content: dict[str, Any]) -> None:
        try:
            write_private_file(self._file, json.dumps(content) + "\n")
        except OSError as error:
            logger.warning("http_file_failed", extra={"relay_fields": {"error": str(error)}})

    async def stop(self) -> None:
        self._is_stopping = True
        if self._starting is not None:
            await asyncio.wait([self._starting])
        if self._server is not None:
            stopping = asyncio.create_task(self._server.stop())
            await asyncio.wait([stopping], timeout=_PATIENCE_S)
            self._service.close()  # whoever waits for a delivery is told how far it came
            await stopping
        if self._arc is not None:
            await asyncio.to_thread(self._arc.close)
        remove_file(self._file)


def _read_prices(home: str) -> Prices:
    return load_prices(home).prices
