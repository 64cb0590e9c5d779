"""The daemon's life, in named steps: prepare, open the store, listen, run, drain, leave.

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

from agent_relay.core.relay import Relay
from agent_relay.core.service import Service
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
from agent_relay.daemon.leavings import DaemonLeavings
from agent_relay.daemon.logs import RelayLog, logger
from agent_relay.daemon.missed_events import tell_missed
from agent_relay.daemon.owner import owner_name
from agent_relay.daemon.project_file import ProjectFile
from agent_relay.daemon.pulse import Pulse
from agent_relay.daemon.recording import Recording
from agent_relay.daemon.spawning import WrapperProcesses
from agent_relay.daemon.system import SystemClock, SystemEntropy
from agent_relay.ports.events import EventStore
from agent_relay.ports.store import MessageStore, Snapshot
from agent_relay.protocol import places
from agent_relay.storage.agent_files import AgentFiles
from agent_relay.storage.event_memory import MemoryEvents
from agent_relay.storage.jsonl.store import JsonlEvents, rotation_for
from agent_relay.storage.memory import MemoryStore
from agent_relay.storage.sqlite import SqliteStore
from agent_relay.transports.callers import Callers
from agent_relay.transports.pump import Pump
from agent_relay.transports.unix import UnixServer

_TICK_S = 0.05  # retries, time-outs and cursors are due on this grid
_DRAIN_S = 5.0
_HALF_A_SECOND_S = 0.5


class Daemon:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._clock = SystemClock()
        self._stop = asyncio.Event()
        self._signals = 0
        self._locks: list[Lock | DirectoryLock] = []
        self._agents_written = ""
        self._server: UnixServer | None = None

    async def run(self) -> None:
        """Returns when it was told to stop. Raises PlaceUnusable, StoreUnusable or SocketUnusable if it cannot start."""
        self._prepare()
        try:
            store = self._make_store()
            try:
                await self._serve(store, store.open())
            finally:
                store.close()
                logger.info("stopped")
        finally:
            self._leave()

    # --- start ----------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        config = self._config
        make_private_directory(config.state_dir)
        prepare_socket_directory(config.socket, os.geteuid())
        self._locks.append(DirectoryLock(config.state_dir))
        self._locks.append(Lock(config.file(places.LOCK_FILE)))
        if os.path.realpath(os.path.dirname(config.socket)) != os.path.realpath(config.state_dir):
            self._locks.append(Lock(config.socket + places.SOCKET_LOCK, note=config.state_dir))
        self._api_token = settle_api_token(config)

    def _make_store(self) -> MessageStore:
        if self._config.storage == "memory":
            return MemoryStore(self._post)
        return SqliteStore(self._config.storage_path, self._post, self._config.durability)

    def _make_event_store(self) -> EventStore:
        config = self._config
        if config.storage == "memory":
            return MemoryEvents(self._post)
        rotation = rotation_for(config.event_retention_ms, config.event_bytes)
        return JsonlEvents(config.file(places.EVENTS_FILE), self._post, rotation, syncs=config.durability == "full")

    def _post(self, callback: Callable[[], None]) -> None:
        """A store's answer, from whatever thread: it becomes a turn of the loop."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear it
            self._loop.call_soon_threadsafe(self._run_turn, callback)

    def _run_turn(self, callback: Callable[[], None]) -> None:
        self._pump.run(callback)

    # --- run ------------------------------------------------------------------------------------------------------------

    async def _serve(self, store: MessageStore, snapshot: Snapshot) -> None:
        config, clock = self._config, self._clock
        self._loop = asyncio.get_running_loop()
        self._recording = recording = Recording(self._make_event_store(), self._loop, clock, config.event_retention_ms)
        try:
            await self._serve_with(store, snapshot, recording)
        finally:
            recording.close()

    async def _serve_with(self, store: MessageStore, snapshot: Snapshot, recording: Recording) -> None:
        config, clock = self._config, self._clock
        # Whoever runs the daemon is no guest of it, also where they listed themselves.
        limits = dataclasses.replace(config.limits, allowed_uids=config.limits.allowed_uids - {os.geteuid()}, owner=owner_name())
        self._leavings = leavings = DaemonLeavings(
            AgentFiles(config.state_dir), recording.store, recording.bus, clock, config.limits.message_retention_ms, self._post
        )  # fmt: skip
        self._relay = Relay(
            limits, store, SystemEntropy(), RelayLog(), snapshot, clock.steady_ms(), clock.wall_ms(),
            policy=config.permissions, events=recording.recorder, bus=recording.bus, leavings=leavings,
            owner_token=self._api_token, event_stats=recording.store.stats, project=config.project_root,
            registered=config.arc_settings.name_traits,
        )  # fmt: skip
        self._pump: Pump = Pump(self._loop, self._relay, clock)
        wrappers = WrapperProcesses(config, self._post, self._relay.spawning)
        self._relay.spawning.begin(wrappers, wrappers.load())
        callers = Callers(config.file(places.SEATS_FILE), config.socket)
        self._server = server = UnixServer(
            self._pump, config.socket, clock, max_frame_bytes=config.limits.max_frame_bytes,
            allowed_uids=config.limits.allowed_uids, slow_consumer_ms=config.limits.slow_consumer_ms, callers=callers,
        )  # fmt: skip
        self._collect_garbage_rarely()
        self._watch_signals()
        service = Service(self._relay, self._pump, os.geteuid(), self._api_token)
        self._budgets = BudgetKeeper(
            config.file(places.BUDGET_FILE), recording.bus, recording.recorder, self._relay.spawning, service, clock.wall_ms,
            lambda: load_prices(config.home).prices,
        )  # fmt: skip
        project = ProjectFile(config, clock.wall_ms())
        http = Http(
            config, self._api_token, self._pump, recording.bus, clock, service, self._budgets, self._relay.names, callers,
            self._relay.rights.check, leavings.files, project,
        )  # fmt: skip
        await tell_missed(recording, store, snapshot.last_number, self._relay.registry.find)
        await server.start()
        write_private_file(config.file(places.PID_FILE), f"{os.getpid()}\n")
        project.write()
        self._write_agents()
        logger.info("listening", extra={"relay_fields": {"socket": config.socket, "pid": os.getpid(), "storage": config.storage}})
        ticking = asyncio.create_task(self._pulse(server, service).run(_TICK_S))
        self._budgets.start()
        http.begin()
        try:
            await self._stop.wait()
        finally:
            await self._stop_http(http)
            service.close()
            await self._drain(server)
            ticking.cancel()
            leavings.close()
            self._write_agents()

    def _pulse(self, server: UnixServer, service: Service) -> Pulse:
        half_a_second = round(_HALF_A_SECOND_S / _TICK_S)
        return Pulse(
            (1, lambda: self._pump.run(self._relay.tick)),
            (1, lambda: self._pump.run(service.clock_says)),
            (half_a_second, server.check_slow_readers),
            (half_a_second, self._write_agents),  # `agents.json` follows what happens within this time
            (half_a_second, self._recording.prune_if_due),
            (half_a_second, self._budgets.clock_says),
            (half_a_second, self._leavings.sweep_if_due),
        )

    def _collect_garbage_rarely(self) -> None:
        """What lives here dies by reference count; a full collection over a large dedup window only costs latency. What is here
        so far stays until the end, so that none is made of it either: somebody waits for the first answer."""
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)

    def _write_agents(self) -> None:
        """For whoever wants to look without connecting; connections are what changes, so only they are in it."""
        agents = [
            {"name": agent.name, "cli": agent.cli, "connected": agent.connected, "sessionId": agent.session_id}
            for agent in self._relay.registry.agents.values()
            if not agent.hidden
        ]
        content = json.dumps({"agents": agents}, indent=2) + "\n"
        if content == self._agents_written:
            return
        self._agents_written = content
        try:
            write_private_file(self._config.file(places.AGENTS_FILE), content)
        except OSError as error:
            logger.warning("agents_file_failed", extra={"relay_fields": {"error": str(error)}})

    # --- stop -----------------------------------------------------------------------------------------------------------

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

    async def _stop_http(self, http: Http) -> None:
        try:
            await http.stop()
        except Exception:  # noqa: BLE001 - whatever it is: everybody at the socket is still to be told goodbye
            logger.exception("http_not_stopped")

    async def _drain(self, server: UnixServer) -> None:
        """Stores and answers what was accepted, says BYE, and lets the last bytes leave."""
        until = self._loop.time() + _DRAIN_S
        server.stop_listening()
        self._pump.run(self._relay.begin_shutdown)
        await self._until_settled(until)
        self._pump.run(self._relay.say_goodbye)
        await self._until_settled(until)
        await server.drain(max(0.1, until - self._loop.time()))

    async def _until_settled(self, until: float) -> None:
        while self._loop.time() < until:
            await asyncio.sleep(0.005)
            if self._relay.settled:
                return

    def _leave(self) -> None:
        config = self._config
        if self._server is not None:
            self._server.stop_listening()
            remove_file(config.file(places.PID_FILE))
        for lock in reversed(self._locks):
            lock.release()
        self._locks.clear()
