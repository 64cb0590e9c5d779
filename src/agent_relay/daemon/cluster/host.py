"""A host of a cluster: an edge that tunnels its clients to the seat, or the seat itself, and a copy of the log in both cases.

While it has the seat, a `SeatDaemon` lives inside it, which is an ordinary daemon over `cluster.store`. When the seat is lost,
that goes whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from agent_relay.cluster.asks import ANSWER_BYTES, Asks, Told
from agent_relay.cluster.continuity import Standing
from agent_relay.cluster.figures import Figures, TimedLog
from agent_relay.cluster.hosts import Hosts, HostWord
from agent_relay.cluster.jetstream import Names
from agent_relay.cluster.log import JetStreamLog
from agent_relay.cluster.nats_wire import NatsWire
from agent_relay.cluster.records import Claim
from agent_relay.cluster.seat import Seat
from agent_relay.cluster.seat_tunnels import SeatTunnels
from agent_relay.cluster.store import ClusterStore
from agent_relay.core.excluded_hosts import read_excluded
from agent_relay.core.host_rules import HostRules
from agent_relay.daemon.cluster.agents import RUNS, RunsTelling, answer_for
from agent_relay.daemon.cluster.edge import Edge
from agent_relay.daemon.cluster.events import claim_events, make_cluster_events
from agent_relay.daemon.cluster.host_agents import HostAgents
from agent_relay.daemon.cluster.host_copy import HostCopy
from agent_relay.daemon.cluster.http import ClusterHttp
from agent_relay.daemon.cluster.identity import ClusterFile, find_clis, measure_load, read_credentials
from agent_relay.daemon.cluster.monitor import ClusterMonitor, HostFacts, open_monitor
from agent_relay.daemon.cluster.screens import show_screens
from agent_relay.daemon.cluster.seat import SeatDaemon
from agent_relay.daemon.config import Config
from agent_relay.daemon.logs import RelayLog, logger
from agent_relay.ports.agents import SessionRow
from agent_relay.ports.clock import Clock
from agent_relay.ports.cluster import UnseatReason
from agent_relay.ports.store import Snapshot
from agent_relay.protocol import places
from agent_relay.protocol.hosts import ClusterFacts
from agent_relay.storage.kept_records import KeptRecords
from agent_relay.storage.live_screens import LiveScreenFiles
from agent_relay.storage.screens import ScreenFiles
from agent_relay.version import __version__

_TICK_S = 0.05
_RESIGN_S = 2.0  # for the log to confirm that the seat is given back; without it the others wait three seconds
_FILE_EVERY_MS = 1_000
_EXCLUDED = "Host {host} was excluded from the cluster. To include it again, run on another: agent-relay hosts include {host}"
_RECORD_MARGIN_BYTES = 64 * 1024  # of a message of the engine, for headers and what a record holds beside messages
_LOST_RECORDS = (Standing.ABSENT, Standing.REGRESSED, Standing.DIVERGED)  # NATS answers; its log is not what it was


class ClusterHost:
    """Implements `ports.cluster.SeatListener` and `WireListener`. Made in the loop that it lives in."""

    def __init__(
        self, config: Config, host: str, owner_proof: str, http: ClusterHttp, clock: Clock, stop: asyncio.Event
    ) -> None:  # fmt: skip
        now = clock.steady_ms()
        self._config = config
        self._host = host
        self._http = http
        self._clock = clock
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._notes = RelayLog()
        self._names = Names(config.cluster.project)
        self._figures = Figures()
        self._max_payload = 1024 * 1024
        self._inner: SeatDaemon | None = None
        self._inner_store: ClusterStore | None = None
        self._seat_tunnels: SeatTunnels | None = None
        self._changed = asyncio.Event()  # the seat came or went, or we stop
        self._is_seated = False
        self._term = 0
        self._rules = HostRules(config.limits.cluster_control, config.limits.agent_rights, config.permissions)
        self._started_at = clock.wall_ms()
        self._starts = find_clis(config.limits.spawn_allow)
        self._cluster_file = ClusterFile(config.file(places.CLUSTER_FILE))
        self._file_due_at = 0
        self._bar = ""  # why this daemon must not take part
        mark = self._mark = f"{host}-{secrets.token_hex(4)}"
        names, notes = self._names, self._notes
        wire = self._wire = NatsWire(config.cluster.servers, read_credentials(config.cluster), mark, notes)
        self._kept = KeptRecords(Path(config.file(places.CLUSTER_RECORDS_FOLDER)))
        log = self._log = JetStreamLog(
            wire, names, mark, config.cluster.replicas, notes, now, self._kept, self._figures
        )  # fmt: skip
        self._events = make_cluster_events(
            config, wire, names, host, mark, self._post_plainly, self._most_bytes, notes, now
        )  # fmt: skip
        self._copy = HostCopy(
            config, host, wire, names, log, self._kept, self._post_plainly, lambda: self._seat.holder, self._begin_to_follow,
            self._applied, lambda agent: self._events.erase(agent, lambda _count: None), notes, now,
        )  # fmt: skip
        self._seat = Seat(wire, log, names, host, mark, self, self._copy.apply, random.randrange, notes, now, term=0, position=0)
        self._edge = Edge(
            config, host, owner_proof, http, wire, names, self._rules, self._figures, clock, self._why, self._is_linked_to
        )  # fmt: skip
        self._hosts = Hosts(wire, names, self._describe, notes, now, clock.wall_ms())
        self._asks = Asks(wire, names, host, notes, now)
        self._agents = HostAgents(config, host, self._post_later)
        self._telling = RunsTelling(self._agents, self._asks, host, now)

    async def live(self, opened: AsyncExitStack) -> None:
        """Until it is stopped. Raises StoreUnusable."""
        opened.callback(self._kept.close)
        opened.callback(self._copy.close)
        opened.push_async_callback(self._wire.stop)
        self._events.start()
        opened.callback(self._events.stop)
        self._copy.begin()
        self._answer_hosts()
        self._seat.start()
        self._hosts.start()
        self._asks.start()
        self._edge.begin()
        await self._wire.start(self)
        ticking = asyncio.create_task(self._tick())
        opened.callback(ticking.cancel)
        monitor = ClusterMonitor(self._host, self._figures, self._look)
        if (server := await open_monitor(self._config.cluster.monitor, monitor)) is not None:
            opened.callback(server.stop)
        opened.callback(self._edge.release_socket)
        self._cluster_file.write(self._show_cluster())  # before anybody is answered: `up` looks for the seat there
        while True:
            await self._be_edge()
            self._copy.unfollow()
            if self._stop.is_set():
                return
            await self._have_seat(self._copy.store.open())
            if self._stop.is_set():
                await self._resign()
                self._copy.close_store()
                return
            self._copy.close_store()
            self._copy.follow()

    def _answer_hosts(self) -> None:
        folder = self._config.state_dir
        answer_for(self._agents, self._asks, self._host, self._has_seat, self._rules.grants)
        self._asks.answer(RUNS, self._hear_runs)
        show_screens(self._asks, ScreenFiles(folder), LiveScreenFiles(folder, ANSWER_BYTES), self._has_seat)

    def _has_seat(self, host: str) -> bool:
        return host == self._seat.holder

    def stop(self) -> None:
        self._seat.leave()
        self._changed.set()
        if self._inner is not None:
            self._inner.stop()

    # --- the copy -------------------------------------------------------------------------------------------------------

    def _begin_to_follow(self, snapshot: Snapshot) -> None:
        self._seat.position = snapshot.position
        self._seat.term = max(self._seat.term, snapshot.term)

    def _applied(self, position: int, claim: Claim | None) -> None:
        self._seat.applied(position, claim)

    def _post_plainly(self, callback: Callable[[], None]) -> None:
        inner = self._inner
        if inner is not None:
            inner.post(callback)
        else:
            self._loop.call_soon_threadsafe(callback)

    def _post_later(self, callback: Callable[[], None]) -> None:
        """A word of a thread, whoever has the seat when it is heard."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(callback)

    # --- an edge --------------------------------------------------------------------------------------------------------

    async def _be_edge(self) -> None:
        await self._edge.listen()
        if self._edge.tunnels is None and self._seat.holder not in {"", self._host}:
            self._link_to(self._seat.holder, self._seat.term)  # it was named while our own seat was still being cleared away
        await self._edge.serve(lambda: self._is_seated or self._stop.is_set(), self._changed)

    def _link_to(self, host: str, term: int) -> None:
        if not self._bar:
            self._edge.link_to(host, term)

    def _is_linked_to(self, host: str, term: int) -> bool:
        return self._seat.holder == host and self._seat.term == term and not self._is_seated and not self._bar

    def _why(self) -> str:
        """Why a client cannot be served now, and what to do."""
        return self._trouble or "No host of the cluster has the seat at the moment; one takes it within seconds. Try again."

    @property
    def _trouble(self) -> str:
        if self._bar:
            return self._bar
        if not self._wire.trouble and self._copy.lag:
            return self._copy.lag
        trouble = self._wire.trouble or self._log.trouble or self._seat.trouble or self._copy.trouble
        if trouble and not self._wire.trouble and self._log.standing in _LOST_RECORDS:
            return f"{trouble} Agents continue by themselves then."
        if trouble:
            advice = "`agent-relay doctor` shows which servers answer. Agents continue by themselves when it is back."
            return f"This host cannot reach its cluster. {trouble.rstrip('.')}. {advice}"
        return ""

    # --- the seat -------------------------------------------------------------------------------------------------------

    async def _have_seat(self, snapshot: Snapshot) -> None:
        store = self._inner_store = ClusterStore(
            self._copy.store, snapshot, TimedLog(self._log, self._figures, time.perf_counter), self._seat.lose, self._moved,
            self._most_bytes, self._notes, self._clock.steady_ms(), self._copy.forget_records,
        )  # fmt: skip
        inner = self._inner = SeatDaemon(
            self._config, self._host, store, self._events, self._show_cluster, self._agents, self._asks, self._http.share(),
            self._edge.release_socket, self._most_bytes(),
        )  # fmt: skip
        await claim_events(self._events, self._term, snapshot)
        tunnels = self._seat_tunnels = SeatTunnels(
            self._wire.publish, inner.accept, self._names.to_edge, self._loop.call_soon, self._notes, self._clock.steady_ms(),
            inner.learn_rules, inner.introduced, self._figures,
        )  # fmt: skip
        subscription = 0
        serving = asyncio.create_task(inner.run())
        try:
            ready = asyncio.create_task(inner.is_serving.wait())
            await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
            if self._stop.is_set():
                inner.stop()
            subscription = self._wire.subscribe(
                self._names.to_seat(self._host, self._term),
                lambda message: tunnels.heard(message.payload),
            )
            await serving
        finally:
            self._wire.unsubscribe(subscription)
            tunnels.close()
            self._seat_tunnels = self._inner = self._inner_store = None
            self._is_seated = False
            self._hosts.speak()
        if not self._stop.is_set():
            await self._edge.listen()

    async def _resign(self) -> None:
        given_back = asyncio.Event()
        self._seat.resign(given_back.set)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RESIGN_S):
                await given_back.wait()

    def _hear_runs(self, host: str, body: bytes, told: Told) -> None:
        """From another host, about the agents it runs."""
        agents = self._inner.agents if self._inner is not None else None
        if agents is not None and host not in self._excluded:
            agents.hear_runs(host, msgspec.msgpack.decode(body, type=list[SessionRow]), lambda: told(b""))

    def _moved(self, position: int) -> None:
        self._seat.position = position

    def _most_bytes(self) -> int:
        """Of one record."""
        return self._max_payload - _RECORD_MARGIN_BYTES

    # --- the hosts ------------------------------------------------------------------------------------------------------

    def _describe(self, every_ms: int) -> HostWord:
        agents = self._inner.count_agents() if self._inner is not None else {}
        return HostWord(
            self._host, self._mark, self._started_at, __version__, self._is_seated, self._seat.position, measure_load(),
            self._clock.wall_ms(), every_ms, agents, self._starts, self._seat.term,
        )  # fmt: skip

    def _show_cluster(self) -> ClusterFacts:
        excluded = self._excluded
        hosts = [msgspec.structs.replace(host, is_excluded=host.host in excluded) for host in self._hosts.facts()]
        return ClusterFacts(self._config.cluster.project, self._host, self._seat.holder, self._trouble, hosts)

    @property
    def _excluded(self) -> frozenset[str]:
        """As the core says where it is, else as our copy has it."""
        if self._inner is not None and self._inner.excluded is not None:
            return self._inner.excluded
        return read_excluded(self._copy.documents)

    def _watch_hosts(self, now: int) -> None:
        self._hosts.clock_says(now, self._clock.wall_ms())
        excluded = self._excluded
        if self._seat_tunnels is not None:
            self._seat_tunnels.excluded = excluded
        bar = self._hosts.twin or (_EXCLUDED.format(host=self._host) if self._host in excluded else "")
        if bar != self._bar:
            self._bar = bar
            self._seat.bar(self._bar)
            if self._bar:
                self.out_of_reach()
            elif self._seat.holder and not self._is_seated:
                self._link_to(self._seat.holder, self._seat.term)
        if now >= self._file_due_at:
            self._file_due_at = now + _FILE_EVERY_MS
            self._cluster_file.write(self._show_cluster())

    # --- SeatListener, WireListener ---------------------------------------------------------------------------------------

    def seated(self, term: int, position: int) -> None:
        del position
        self._figures.seats_taken += 1
        self._term = term
        self._is_seated = True
        self._changed.set()
        self._hosts.speak()

    def unseated(self, reason: UnseatReason) -> None:
        self._figures.lost_seat(reason.value)
        logger.warning("unseated", extra={"relay_fields": {"reason": reason.value}})
        if self._inner is not None:
            self._inner.drop()

    def seat_moved(self, host: str, term: int) -> None:
        self._figures.seat_moves += 1
        logger.info("seat", extra={"relay_fields": {"host": host, "term": term}})
        self._edge.unlink()
        if not self._is_seated:
            self._link_to(host, term)

    def out_of_reach(self) -> None:
        self._edge.unlink()

    def connected(self, server: str, max_payload_bytes: int) -> None:
        del server
        self._figures.nats_connections += 1
        self._max_payload = max_payload_bytes
        self._hosts.speak()
        self._seat.connected()
        self._log.reconnected()
        self._events.reconnected()
        for tunnels in (self._edge.tunnels, self._seat_tunnels):
            if tunnels is not None:
                tunnels.reconnected()

    def disconnected(self) -> None:
        """Everything that waits for an answer asks again."""

    # --- for those who watch ----------------------------------------------------------------------------------------------

    def _look(self) -> HostFacts:
        seat, edge, inner = self._seat_tunnels, self._edge.tunnels, self._inner
        is_served = edge is not None or (inner is not None and inner.is_serving.is_set())
        return HostFacts(
            is_seated=self._is_seated, term=self._seat.term, position=self._seat.position,
            behind=0 if self._is_seated else self._seat.behind, is_connected=self._wire.is_connected,
            links=seat.links if seat is not None else int(edge is not None),
            connections=sum(part.connections for part in (seat, edge, inner) if part is not None),
            copy_bytes=sum(map(_size_of, (self._config.storage_path, f"{self._config.storage_path}-wal"))),
            troubles={
                "nats": self._wire.trouble, "log": self._log.trouble, "seat": self._seat.trouble, "copy": self._copy.trouble,
            },
            refusal="" if is_served else self._why(),
        )  # fmt: skip

    # --- the process ----------------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            now = self._clock.steady_ms()
            try:
                self._log.clock_says(now)
                self._events.clock_says(now, self._clock.wall_ms())
                self._copy.clock_says(now, self._clock.wall_ms(), is_edge=not self._is_seated)
                self._seat.clock_says(now)
                self._watch_hosts(now)
                self._asks.clock_says(now)
                self._telling.clock_says(now, self._seat.holder, self._inner.agents if self._inner is not None else None)
                for part in (self._inner_store, self._seat_tunnels, self._edge.tunnels):
                    if part is not None:
                        part.clock_says(now)
            except Exception:  # noqa: BLE001 - without its ticks a host looks alive and does nothing
                logger.exception("internal_error")


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
