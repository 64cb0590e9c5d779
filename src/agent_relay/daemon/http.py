"""HTTP in the daemon: started once the socket answers, stopped before it. Without it everything else goes on.

What it needs is imported in a thread meanwhile, which takes longer than everything before it together.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_relay.core.service import Service
from agent_relay.daemon.config import Config
from agent_relay.daemon.cost_models import load_prices
from agent_relay.daemon.http_place import HttpPlace
from agent_relay.daemon.logs import logger
from agent_relay.daemon.shelves import make_shelf
from agent_relay.events.bus import EventBus
from agent_relay.events.prices import Prices
from agent_relay.ports.callers import Caller
from agent_relay.ports.clock import Clock
from agent_relay.ports.documents import Documents
from agent_relay.ports.names import AgentNames
from agent_relay.ports.permission_rules import PermissionRules
from agent_relay.ports.watchers import AgentFileReader, Budgets
from agent_relay.protocol import places
from agent_relay.protocol.hosts import ClusterFacts
from agent_relay.transports.callers import Callers
from agent_relay.transports.http.port import PortUnusable
from agent_relay.transports.pump import Pump

if TYPE_CHECKING:
    from agent_relay.daemon.arc import Arc
    from agent_relay.daemon.cluster.screens import ClusterScreens
    from agent_relay.transports.arc.desk import Desk
    from agent_relay.transports.arc.hub import Hub
    from agent_relay.transports.http.api import Api
    from agent_relay.transports.http.connections import Connections
    from agent_relay.transports.http.server import HttpServer


NOT_WANTED = "The daemon was started without HTTP."
_HEAD_START_S = 0.15  # for those who wait at the socket: what follows takes turns with them for a while
_PATIENCE_S = 1.0  # for what is being answered, at the end; nearly everything takes milliseconds


class Http:
    def __init__(
        self, config: Config, token: str, pump: Pump, bus: EventBus, clock: Clock, service: Service,
        budgets: Budgets, names: AgentNames, callers: Callers, check_right: Callable[[Caller, str], None],
        files: AgentFileReader, place: HttpPlace, see_cluster: Callable[[], ClusterFacts] | None = None,
        documents: Documents | None = None, screens: ClusterScreens | None = None,
    ) -> None:  # fmt: skip
        self._config = config
        self._place = place
        self._documents = documents
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
        self._see_cluster = see_cluster
        self._arc: Arc | None = None
        self._starting: asyncio.Task[None] | None = None
        self._server: HttpServer | None = None
        self._is_stopping = False
        self._screens = screens  # of all hosts, where there are several

    def begin(self) -> None:
        if self._place.is_wanted:
            self._starting = asyncio.create_task(self._start())
        else:
            self._place.refuse(NOT_WANTED)

    async def _start(self) -> None:
        try:
            listener = await asyncio.to_thread(self._place.listen)
        except PortUnusable as error:
            logger.warning("http_unavailable", extra={"relay_fields": {"reason": str(error)}})
            self._place.refuse(str(error))
            return
        try:
            await asyncio.sleep(_HEAD_START_S)
            if not self._is_stopping:
                await self._serve(listener)
            elif listener is not None:
                listener.close()
        except Exception as error:  # noqa: BLE001 - whatever it is: the relay goes on without HTTP, and says so
            if listener is not None:
                listener.close()
            logger.exception("http_unavailable")
            self._place.refuse(f"HTTP could not be started: {error}")

    async def _serve(self, listener: socket.socket | None) -> None:
        arc = self._arc = await asyncio.to_thread(self._open_arc, asyncio.get_running_loop())
        hub, desk = arc.start(self._pump, self._names, self._service, self._clock) or (None, None)
        server = await asyncio.to_thread(self._build, listener, hub, desk)
        await self._service.start()
        await server.start()
        self._server = server
        gc.freeze()  # what was imported stays until the end; to collect first would only stop the loop for a while
        self._place.announce(server.port)

    def _open_arc(self, loop: asyncio.AbstractEventLoop) -> Arc:
        from agent_relay.daemon.arc import Arc  # noqa: PLC0415

        def post(callback: Callable[[], None]) -> None:
            loop.call_soon_threadsafe(self._pump.run, callback)

        arc = Arc(self._config, post, self._documents)
        arc.open()
        return arc

    def _build(self, listener: socket.socket | None, hub: Hub | None, desk: Desk | None) -> HttpServer:
        """In a thread: the imports take longer than the whole rest of the start."""
        from agent_relay.transports.http.connections import Connections  # noqa: PLC0415
        from agent_relay.transports.http.server import HttpServer  # noqa: PLC0415

        config = self._config
        connections = Connections(config.http_connections, config.http_connections_per_address)
        return HttpServer(
            self._make_api(desk, connections), listener, config.host, config.cors_origins,
            config.limits.max_frame_bytes, connections, hub=hub, tls=config.tls, request_s=config.http_request_ms / 1000,
        )  # fmt: skip

    def _make_api(self, desk: Desk | None, connections: Connections) -> Api:
        from agent_relay.daemon.running_projects import RunningProjects  # noqa: PLC0415
        from agent_relay.daemon.startable_clis import list_clis  # noqa: PLC0415
        from agent_relay.dashboard.files import DashboardFiles  # noqa: PLC0415
        from agent_relay.storage.live_screens import LiveScreenFiles  # noqa: PLC0415
        from agent_relay.storage.page_keys import PageKeyFile  # noqa: PLC0415
        from agent_relay.storage.screens import ScreenFiles  # noqa: PLC0415
        from agent_relay.storage.workspaces import WorkspaceFile  # noqa: PLC0415
        from agent_relay.transports.http.activity import ActivityBoard  # noqa: PLC0415
        from agent_relay.transports.http.api import Api  # noqa: PLC0415
        from agent_relay.transports.http.callers import TracedHttp  # noqa: PLC0415
        from agent_relay.transports.http.guard import hash_token  # noqa: PLC0415
        from agent_relay.transports.http.guesses import Guesses  # noqa: PLC0415
        from agent_relay.transports.http.keyboards import Keyboards  # noqa: PLC0415
        from agent_relay.transports.http.marks import Marks  # noqa: PLC0415
        from agent_relay.transports.http.metrics import Metrics  # noqa: PLC0415
        from agent_relay.transports.http.openapi import encode_description  # noqa: PLC0415
        from agent_relay.transports.http.page_keys import PageKeys  # noqa: PLC0415
        from agent_relay.transports.http.repeats import Repeats  # noqa: PLC0415
        from agent_relay.transports.http.sse import Streams  # noqa: PLC0415
        from agent_relay.transports.http.table import ROUTES  # noqa: PLC0415
        from agent_relay.transports.http.usage import UsageBoard  # noqa: PLC0415

        config, clock = self._config, self._clock
        keys = PageKeys(PageKeyFile(config.file(places.PAGE_KEYS_FILE)), cookie_name(config), clock.steady_ms, clock.wall_ms)
        read_prices = functools.partial(_read_prices, config.home)
        description: Callable[[], bytes] = functools.cache(functools.partial(encode_description, ROUTES))
        return Api(
            service=self._service, bus=self._bus, streams=Streams(self._bus, config.max_sse), metrics=Metrics(self._bus),
            description=description, wall_ms=clock.wall_ms, read_prices=read_prices,
            screens=self._screens or ScreenFiles(config.state_dir),
            live_screens=self._screens or LiveScreenFiles(config.state_dir),
            keyboards=Keyboards(clock.steady_ms, clock.wall_ms), usage=UsageBoard(self._bus, read_prices),
            activity=ActivityBoard(self._bus),
            workspaces=WorkspaceFile(config.home, config.project_root), assets=DashboardFiles(),
            token_hash=None if self._token is None else hash_token(self._token), page_keys=keys,
            guesses=Guesses(clock.steady_ms), is_encrypted=config.tls is not None,
            budgets=self._budgets, permission_rules=self._make_rules(),
            list_clis=functools.partial(list_clis, config.limits.spawn_allow, config.limits.spawn_unattended),
            projects=RunningProjects(config.home, config.state_dir),
            files=self._files, is_ready=lambda: not self._is_stopping, arc=desk,
            callers=TracedHttp(self._callers, self._check_right, connections.ask_caller), repeats=Repeats(clock.wall_ms),
            marks=Marks(make_shelf(self._documents, "marks", config.file(places.MARKS_FILE)), clock.wall_ms),
            see_cluster=self._see_cluster,
        )  # fmt: skip

    def _make_rules(self) -> PermissionRules | None:
        from agent_relay.daemon.added_rules import AddedRules  # noqa: PLC0415

        path = os.path.join(self._config.home, places.CONFIG_FILE)
        return AddedRules(self._config.permissions, path) if self._see_cluster is None else None

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
        self._place.leave()


def cookie_name(config: Config) -> str:
    """Of the page's cookie. By the directory: the port may be another next time, and another relay's may be the same."""
    return f"agent-relay-{places.project_id(os.path.realpath(config.state_dir))}"


def _read_prices(home: str) -> Prices:
    return load_prices(home).prices


def describe_http() -> bytes:
    """The OpenAPI description of the API, for whoever writes it down or prints it."""
    from agent_relay.transports.http.openapi import encode_description  # noqa: PLC0415 - as above: not for the daemon's start
    from agent_relay.transports.http.table import ROUTES  # noqa: PLC0415

    return encode_description(ROUTES)
