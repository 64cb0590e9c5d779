"""The daemon's life: startup, serve, shutdown.

A first signal stops it gracefully; a second one at once. Whatever way it ends, what was acknowledged is in the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_relay.core.relay import Relay
from agent_relay.core.service import Service
from agent_relay.daemon.agent_budgets import AgentBudgets
from agent_relay.daemon.api_token import settle_api_token
from agent_relay.daemon.budget_keeper import BudgetKeeper
from agent_relay.daemon.config import Config
from agent_relay.daemon.cost_models import load_prices
from agent_relay.daemon.directories import (
    DirectoryLock,
    Lock,
    make_private_directory,
    prepare_socket_directory,
    remove_file,
    write_private_file,
)
from agent_relay.daemon.http import Http
from agent_relay.daemon.http_place import HttpPlace
from agent_relay.daemon.leavings import DaemonLeavings
from agent_relay.daemon.logs import RelayLog, logger
from agent_relay.daemon.missed_events import tell_missed
from agent_relay.daemon.project_file import ProjectFile
from agent_relay.daemon.pulse import Pulse
from agent_relay.daemon.recording import Recording
from agent_relay.daemon.session_history import SessionHistory
from agent_relay.daemon.shelves import make_shelf
from agent_relay.daemon.system import SystemClock, SystemEntropy, owner_name
from agent_relay.daemon.wrapper_processes import WrapperProcesses
from agent_relay.ports.documents import Documents
from agent_relay.ports.events import EventStore
from agent_relay.ports.store import MessageStore, Snapshot, StoreUnusable
from agent_relay.protocol import places
from agent_relay.protocol.hosts import ClusterFacts
from agent_relay.storage.agent_files import AgentFiles
from agent_relay.storage.event_memory import MemoryEvents
from agent_relay.storage.jsonl.store import JsonlEvents, rotation_for
from agent_relay.storage.memory import MemoryStore
from agent_relay.storage.sqlite.store import SqliteStore
from agent_relay.transports.callers import Callers
from agent_relay.transports.pump import Pump
from agent_relay.transports.unix import UnixServer

if TYPE_CHECKING:
    from agent_relay.daemon.cluster.screens import ClusterScreens

_TICK_S = 0.05  # retries, time-outs and cursors are due on this grid
_DRAIN_S = 5.0
_HALF_A_SECOND_S = 0.5


class AgentsFile:
    """`agents.json`, for whoever wants to look without connecting; connections are what changes, so only they are in it."""

    def __init__(self, path: str, relay: Relay) -> None:
        self._path = path
        self._relay = relay
        self._written = ""

    def write(self) -> None:
        agents = [
            {"name": agent.name, "cli": agent.cli, "connected": agent.connected, "sessionId": agent.session_id}
            for agent in self._relay.registry.agents.values()
            if not agent.hidden
        ]
        content = json.dumps({"agents": agents}, indent=2) + "\n"
        if content == self._written:
            return
        self._written = content
        try:
            write_private_file(self._path, content)
        except OSError as error:
            logger.warning("agents_file_failed", extra={"relay_fields": {"error": str(error)}})


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that runs while the daemon serves."""

    relay: Relay
    pump: Pump
    recording: Recording
    leavings: DaemonLeavings
    server: UnixServer
    service: Service
    budgets: BudgetKeeper
    agent_budgets: AgentBudgets
    history: SessionHistory
    http: Http
    project: ProjectFile
    agents: AgentsFile


_COPY = (
    "{} is this host's copy of its cluster, and the other hosts would never get what a daemon alone writes there. Start it as "
    "before: `agent-relay restart` uses the flags it had. To go on alone with what is there: agent-relay cluster leave"
)


class Daemon:
    """Made and run inside the loop that it serves in. Each part that is opened is closed in the opposite order."""

    _http_kind: type[Http] = Http

    def __init__(self, config: Config) -> None:
        self._config = config
        self._clock = SystemClock()
        self._loop = asyncio.get_running_loop()
        self._opened = AsyncExitStack()
        self._locks: list[Lock | DirectoryLock] = []
        self._parts: Parts | None = None  # once there is a core: it is made over a store, which answers through it
        self._stop = asyncio.Event()
        self._settled = asyncio.Event()
        self._signals = 0
        self._owner_uid = os.geteuid()  # as the core knows the user that runs this daemon
        self._host_name = ""  # in the cluster
        self._see_cluster: Callable[[], ClusterFacts] | None = None  # None: this daemon is alone

    async def run(self) -> None:
        """Returns when it was told to stop. Raises PlaceUnusable, StoreUnusable or SocketUnusable if it cannot start."""
        try:
            await self._serve(await self._startup())
        finally:
            await self._shutdown()

    # --- startup --------------------------------------------------------------------------------------------------------

    async def _startup(self) -> Parts:
        config = self._config
        self._opened.callback(self._leave)
        self._prepare()
        api_token = settle_api_token(config)
        store = self._make_store()
        self._opened.callback(self._close_store, store)
        snapshot = store.open()
        if snapshot.position and self._see_cluster is None:
            raise StoreUnusable(_COPY.format(config.storage_path))
        recording = Recording(self._make_event_store(), self._loop, self._clock, config.event_retention_ms)
        self._opened.callback(recording.close)
        parts = self._parts = self._compose(api_token, store, snapshot, recording)
        self._collect_garbage_rarely()
        self._watch_signals()
        await tell_missed(recording, store, snapshot.last_number, parts.relay.registry.find)
        await self._listen(parts)
        self._announce()
        parts.project.write()
        parts.agents.write()
        logger.info("listening", extra={"relay_fields": {"socket": config.socket, "pid": os.getpid(), "storage": config.storage}})
        return parts

    async def _listen(self, parts: Parts) -> None:
        await parts.server.start()

    def _announce(self) -> None:
        write_private_file(self._config.file(places.PID_FILE), f"{os.getpid()}\n")

    def _prepare(self) -> None:
        config = self._config
        make_private_directory(config.state_dir)
        prepare_socket_directory(config.socket, os.geteuid())
        self._locks.append(DirectoryLock(config.state_dir))
        self._locks.append(Lock(config.file(places.LOCK_FILE)))
        if os.path.realpath(os.path.dirname(config.socket)) != os.path.realpath(config.state_dir):
            self._locks.append(Lock(config.socket + places.SOCKET_LOCK, note=config.state_dir))
        remove_file(config.file(places.CLUSTER_FILE))  # of a daemon that was killed, and may have been in a cluster

    def _make_store(self) -> MessageStore:
        if self._config.storage == "memory":
            return MemoryStore(self._post)
        if self._config.storage == "postgres":
            return _make_database_store(self._config, self._post)
        return SqliteStore(self._config.storage_path, self._post, self._config.durability)

    def _make_event_store(self) -> EventStore:
        config = self._config
        if config.storage == "memory":
            return MemoryEvents(self._post)
        rotation = rotation_for(config.event_retention_ms, config.event_bytes)
        return JsonlEvents(config.file(places.EVENTS_FILE), self._post, rotation, syncs=config.durability == "full")

    def _make_documents(self, relay: Relay, snapshot: Snapshot) -> Documents | None:
        """For state that other hosts need, too. A daemon that is alone keeps its own in files."""
        del relay, snapshot
        return None

    def _compose(self, api_token: str, store: MessageStore, snapshot: Snapshot, recording: Recording) -> Parts:
        config, clock = self._config, self._clock
        # Whoever runs the daemon is no guest of it, also where they listed themselves.
        limits = dataclasses.replace(config.limits, allowed_uids=config.limits.allowed_uids - {os.geteuid()}, owner=owner_name())
        leavings = DaemonLeavings(
            AgentFiles(config.state_dir), recording.store, recording.bus, clock, config.limits.message_retention_ms, self._post
        )  # fmt: skip
        relay = Relay(
            limits, store, SystemEntropy(), RelayLog(), snapshot, clock.steady_ms(), clock.wall_ms(),
            policy=config.permissions, events=recording.recorder, bus=recording.bus, leavings=leavings,
            owner_token=api_token, event_stats=recording.store.stats, project=config.project_root,
            registered=config.arc_settings.name_traits, host=self._host_name,
        )  # fmt: skip
        pump = Pump(self._loop, relay, clock)
        relay.session_counts.read_prices = lambda: load_prices(config.home).prices
        self._begin_agents(relay, snapshot)
        history = SessionHistory(relay.session_counts, recording.bus, recording.bus.last_seq)
        callers = Callers(config.file(places.SEATS_FILE), config.socket)
        server = UnixServer(
            pump, config.socket, clock, max_frame_bytes=config.limits.max_frame_bytes,
            allowed_uids=config.limits.allowed_uids, slow_consumer_ms=config.limits.slow_consumer_ms, callers=callers,
            owner_uid=self._owner_uid,
        )  # fmt: skip
        service = Service(relay, pump, self._owner_uid, api_token)
        documents = self._make_documents(relay, snapshot)
        budgets = BudgetKeeper(
            make_shelf(documents, "budget", config.file(places.BUDGET_FILE)), recording.bus, recording.recorder, relay.spawning,
            service, clock.wall_ms, lambda: load_prices(config.home).prices,
        )  # fmt: skip
        agent_budgets = AgentBudgets(
            recording.bus, recording.recorder, relay.spawning.budgets, service, clock.wall_ms,
            lambda: load_prices(config.home).prices,
        )  # fmt: skip
        project = ProjectFile(config, clock.wall_ms())
        http = self._http_kind(
            config, api_token, pump, recording.bus, clock, service, budgets, relay.names, callers, relay.rights.check,
            leavings.files, self._make_http_place(project), self._see_cluster, documents, self._make_screens(relay),
        )  # fmt: skip
        agents = AgentsFile(config.file(places.AGENTS_FILE), relay)
        return Parts(relay, pump, recording, leavings, server, service, budgets, agent_budgets, history, http, project, agents)

    def _make_http_place(self, project: ProjectFile) -> HttpPlace:
        return HttpPlace(self._config, project)

    def _make_screens(self, relay: Relay) -> ClusterScreens | None:
        """Of all hosts, where there are several."""
        del relay
        return None

    def _begin_agents(self, relay: Relay, snapshot: Snapshot) -> None:
        del snapshot
        wrappers = WrapperProcesses(self._config, self._post, relay.spawning)
        relay.spawning.begin(wrappers, wrappers.load())

    def _collect_garbage_rarely(self) -> None:
        """Objects here die by reference count; a full collection over a large dedup window only costs latency. What is here
        so far stays until the end, so that none is made of it either: somebody waits for the first answer."""
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)

    # --- serve ----------------------------------------------------------------------------------------------------------

    async def _serve(self, parts: Parts) -> None:
        """Everything else happens in turns of the loop, until somebody says stop."""
        ticking = asyncio.create_task(_pulse(parts).run(_TICK_S))
        self._opened.push_async_callback(self._say_goodbye, parts, ticking)
        parts.budgets.start()
        parts.history.start()
        parts.http.begin()
        await self._stop.wait()

    def _post(self, callback: Callable[[], None]) -> None:
        """A store's answer, from whatever thread: it becomes a turn of the loop."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear it
            self._loop.call_soon_threadsafe(self._run_turn, callback)

    def _run_turn(self, callback: Callable[[], None]) -> None:
        parts = self._parts
        assert parts is not None
        parts.pump.run(callback)
        if self._stop.is_set() and parts.relay.settled:
            self._settled.set()

    def _watch_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._signalled, number)

    def _signalled(self, number: int) -> None:
        self._signals += 1
        logger.info("signal", extra={"relay_fields": {"signal": signal.Signals(number).name}})
        if self._signals > 1:
            self._leave()
            os._exit(1)  # asked twice: at once. The store needs no farewell.
        self._stop.set()

    # --- shutdown -------------------------------------------------------------------------------------------------------

    async def _shutdown(self) -> None:
        """Says goodbye where it served, closes the events and the store, and leaves its place; also after half a startup."""
        await self._opened.aclose()

    async def _say_goodbye(self, parts: Parts, ticking: asyncio.Task[None]) -> None:
        try:
            await parts.http.stop()
        except Exception:  # noqa: BLE001 - whatever it is: everybody at the socket is still to be told goodbye
            logger.exception("http_not_stopped")
        parts.service.close()
        await self._drain(parts)
        ticking.cancel()
        parts.leavings.close()
        parts.agents.write()

    async def _drain(self, parts: Parts) -> None:
        """Stores and answers what was accepted, says BYE, and lets the last bytes leave."""
        until = self._loop.time() + _DRAIN_S
        parts.server.stop_listening()
        parts.pump.run(parts.relay.begin_shutdown)
        await self._until_settled(parts.relay, until)
        parts.pump.run(parts.relay.say_goodbye)
        await self._until_settled(parts.relay, until)
        await parts.server.drain(max(0.1, until - self._loop.time()))

    async def _until_settled(self, relay: Relay, until: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                while not relay.settled:
                    self._settled.clear()
                    await self._settled.wait()

    def _close_store(self, store: MessageStore) -> None:
        store.close()
        logger.info("stopped")

    def _leave(self) -> None:
        if self._parts is not None:
            self._parts.server.stop_listening()
            remove_file(self._config.file(places.PID_FILE))
        for lock in reversed(self._locks):
            lock.release()
        self._locks.clear()


def _pulse(parts: Parts) -> Pulse:
    half_a_second = round(_HALF_A_SECOND_S / _TICK_S)
    return Pulse(
        (1, lambda: parts.pump.run(parts.relay.tick)),
        (1, lambda: parts.pump.run(parts.service.clock_says)),
        (half_a_second, parts.server.check_slow_readers),
        (half_a_second, parts.agents.write),  # follows what happens within this time
        (half_a_second, parts.recording.prune_if_due),
        (half_a_second, parts.budgets.clock_says),
        (half_a_second, parts.agent_budgets.clock_says),
        (half_a_second, parts.history.clock_says),
        (half_a_second, parts.leavings.sweep_if_due),
    )


def _make_database_store(config: Config, post: Callable[[Callable[[], None]], None]) -> MessageStore:
    """Nothing of it is loaded for a daemon that does not use one. Raises StoreUnusable where the driver is not installed."""
    from agent_relay.storage.postgres.store import PostgresStore  # noqa: PLC0415 - see above
    from agent_relay.storage.postgres.url import read_url  # noqa: PLC0415

    assert config.storage_url is not None
    url = read_url(config.storage_url, places.project_id(config.project_root))
    return PostgresStore(url, post, config.project_root, config.durability)
