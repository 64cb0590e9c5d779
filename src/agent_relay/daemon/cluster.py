"""A daemon of a cluster: an edge that tunnels its clients to the seat, or the seat itself, and a copy of the log in both cases.

`ClusterDaemon` is the process: it holds the place, the connection to NATS and the copy, and serves as an edge. While it has the
seat, a `SeatDaemon` lives inside it, which is an ordinary daemon over `cluster.store`. When the seat is lost, that goes whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import secrets
import signal
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

from agent_relay.cluster.copy import Copy
from agent_relay.cluster.jetstream import Names
from agent_relay.cluster.log import JetStreamLog
from agent_relay.cluster.nats_wire import Credentials, NatsWire
from agent_relay.cluster.records import Claim
from agent_relay.cluster.seat import Seat
from agent_relay.cluster.store import ClusterStore
from agent_relay.cluster.tunnels import EdgeTunnels, SeatTunnels, link_name
from agent_relay.daemon.api_token import settle_api_token
from agent_relay.daemon.config import ClusterConfig, Config
from agent_relay.daemon.directories import remove_file, write_private_file
from agent_relay.daemon.logs import RelayLog, logger
from agent_relay.daemon.server import Daemon, Parts
from agent_relay.ports.callers import Caller
from agent_relay.ports.cluster import Opening, UnseatReason, WireMessage
from agent_relay.ports.store import MessageStore, Snapshot
from agent_relay.protocol import places
from agent_relay.storage.sqlite.store import SqliteStore
from agent_relay.transports.callers import Callers
from agent_relay.transports.tunnels import CLUSTER_UID, ForwardServer, TunnelConnection

_TICK_S = 0.05
_RECORD_MARGIN_BYTES = 64 * 1024  # of a message of the engine, for headers and what a record holds beside messages


class SeatDaemon(Daemon):
    """The daemon of the project, while this host has the seat."""

    def __init__(self, config: Config, store: ClusterStore) -> None:
        super().__init__(config)
        self._store = store
        self._owner_uid = CLUSTER_UID
        self._is_dropped = False
        self.is_serving = asyncio.Event()

    def stop(self) -> None:
        self._stop.set()

    def drop(self) -> None:
        """Ends at once: nothing more is said to anybody, for it might not be true."""
        self._is_dropped = True
        self._stop.set()

    def accept(self, opening: Opening) -> asyncio.Protocol:
        assert self._parts is not None
        return TunnelConnection(self._parts.pump, self._config.limits.max_frame_bytes, opening)

    def _prepare(self) -> None:
        """The place is held by the process."""

    def _announce(self) -> None:
        self.is_serving.set()

    def _watch_signals(self) -> None:
        """The process does."""

    def _make_store(self) -> MessageStore:
        return self._store

    def post(self, callback: Callable[[], None]) -> None:
        """A store's answer, from whatever thread."""
        self._post(callback)

    async def _drain(self, parts: Parts) -> None:
        if not self._is_dropped:
            await super()._drain(parts)
            return
        parts.server.stop_listening()
        for connection in list(parts.server.connections):
            connection.give_up()

    def _leave(self) -> None:
        if self._parts is not None:
            self._parts.server.stop_listening()


class ClusterDaemon(Daemon):
    """Implements `ports.cluster.SeatListener` and `WireListener`."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._notes = RelayLog()
        self._cluster = config.cluster
        self._host = config.cluster.host or host_name()
        self._mark = f"{self._host}-{secrets.token_hex(4)}"
        self._names = Names(config.cluster.project)
        self._max_payload = 1024 * 1024
        self._inner: SeatDaemon | None = None
        self._inner_store: ClusterStore | None = None
        self._seat_tunnels: SeatTunnels | None = None
        self._edge_tunnels: EdgeTunnels | None = None
        self._changed = asyncio.Event()  # the seat came or went
        self._is_seated = False
        self._term = 0

    async def run(self) -> None:
        async with AsyncExitStack() as opened:
            opened.callback(self._leave)
            self._prepare()
            self._proof = hashlib.sha256(settle_api_token(self._config).encode()).hexdigest()
            self._callers = Callers(self._config.file(places.SEATS_FILE), self._config.socket)
            self._watch_signals()
            self._announce()
            self._wire = NatsWire(self._cluster.servers, read_credentials(self._cluster), self._mark, self._notes)
            self._log = JetStreamLog(
                self._wire, self._names, self._mark, self._cluster.replicas, self._notes, self._clock.steady_ms()
            )
            opened.push_async_callback(self._wire.stop)
            await self._live(opened)

    async def _live(self, opened: AsyncExitStack) -> None:
        copy, snapshot = self._open_copy()
        self._seat = Seat(
            self._wire, self._log, self._names, self._host, self._mark, self, self._apply, random.randrange, self._notes,
            self._clock.steady_ms(), term=snapshot.term, position=snapshot.position,
        )  # fmt: skip
        self._follow(copy, snapshot)
        self._seat.start()
        self._wire.subscribe(self._names.to_edge(self._host), self._heard_from_seat)
        await self._wire.start(self)
        ticking = asyncio.create_task(self._tick())
        opened.callback(ticking.cancel)
        while not self._stop.is_set():
            await self._be_edge()
            self._copy.close()
            copy.close()
            if self._stop.is_set():
                return
            copy, snapshot = self._open_copy()
            await self._have_seat(copy, snapshot)
            if self._stop.is_set():
                copy.close()
                return
            copy.close()
            copy, snapshot = self._open_copy()
            self._follow(copy, snapshot)

    # --- the copy -------------------------------------------------------------------------------------------------------

    def _open_copy(self) -> tuple[SqliteStore, Snapshot]:
        """Without a flush for each batch: the log is the truth."""
        store = SqliteStore(self._config.storage_path, self._post_plainly, "normal", is_copy=True)
        return store, store.open()

    def _follow(self, store: SqliteStore, snapshot: Snapshot) -> None:
        self._copy = Copy(store, snapshot.position, self._applied, self._notes)
        self._seat.position = snapshot.position
        self._log.follow(snapshot.position, self._apply)

    def _apply(self, sequence: int, record: bytes) -> None:
        self._copy.heard(sequence, record)

    def _applied(self, position: int, claim: Claim | None) -> None:
        self._seat.applied(position, claim)

    def _post_plainly(self, callback: Callable[[], None]) -> None:
        inner = self._inner
        if inner is not None:
            inner.post(callback)
        else:
            self._loop.call_soon_threadsafe(callback)

    # --- an edge --------------------------------------------------------------------------------------------------------

    async def _be_edge(self) -> None:
        server = ForwardServer(self._config.socket, self._callers, self._introduce, lambda: self._edge_tunnels, self._why)
        await server.start()
        logger.info("edge", extra={"relay_fields": {"host": self._host, "socket": self._config.socket}})
        self._say_where()
        try:
            while not self._is_seated and not self._stop.is_set():
                self._changed.clear()
                stopping = asyncio.ensure_future(self._stop.wait())
                changing = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait([stopping, changing], return_when=asyncio.FIRST_COMPLETED)
                stopping.cancel()
                changing.cancel()
        finally:
            if self._edge_tunnels is not None:
                self._edge_tunnels.break_off()
            server.stop()
            remove_file(self._config.file(places.HTTP_FILE))

    def _say_where(self) -> None:
        reason = "This host is an edge of the cluster; open the page at the host that has the seat."
        write_private_file(self._config.file(places.HTTP_FILE), f'{{"url": null, "reason": "{reason}"}}\n')

    def _introduce(self, caller: Caller) -> Opening:
        return Opening(self._host, is_owner=True, agent=caller.agent, owner_proof=self._proof)

    def _why(self) -> str:
        """Why a client cannot be served now, and what to do."""
        trouble = self._wire.trouble or self._log.trouble or self._seat.trouble or self._copy.trouble
        if trouble:
            return f"This host cannot reach its cluster. {trouble} Agents continue by themselves when it is back."
        return "No host of the cluster has the seat at the moment; one takes it within seconds. Try again."

    def _heard_from_seat(self, message: WireMessage) -> None:
        if self._edge_tunnels is not None:
            self._edge_tunnels.heard(message.payload)

    def _link_to(self, host: str, term: int) -> None:
        subject = self._names.to_seat(host, term)
        name = link_name(self._host, secrets.token_hex(6))

        def broken() -> None:
            self._edge_tunnels = None
            if self._seat.holder == host and self._seat.term == term and not self._is_seated:
                self._link_to(host, term)

        self._edge_tunnels = EdgeTunnels(
            name, lambda packet: self._wire.publish(subject, packet), self._loop.call_soon, broken, self._clock.steady_ms()
        )

    # --- the seat -------------------------------------------------------------------------------------------------------

    async def _have_seat(self, copy: SqliteStore, snapshot: Snapshot) -> None:
        store = self._inner_store = ClusterStore(
            copy, snapshot, self._log, self._seat.lose, self._moved,
            lambda: self._max_payload - _RECORD_MARGIN_BYTES, self._notes, self._clock.steady_ms(),
        )  # fmt: skip
        inner = self._inner = SeatDaemon(self._config, store)
        tunnels = self._seat_tunnels = SeatTunnels(
            self._wire.publish, inner.accept, self._names.to_edge, self._loop.call_soon, self._notes, self._clock.steady_ms()
        )
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

    def _moved(self, position: int) -> None:
        self._seat.position = position

    # --- SeatListener, WireListener ---------------------------------------------------------------------------------------

    def seated(self, term: int, position: int) -> None:
        del position
        self._term = term
        self._is_seated = True
        self._changed.set()

    def unseated(self, reason: UnseatReason) -> None:
        logger.warning("unseated", extra={"relay_fields": {"reason": reason.value}})
        if self._inner is not None:
            self._inner.drop()

    def seat_moved(self, host: str, term: int) -> None:
        logger.info("seat", extra={"relay_fields": {"host": host, "term": term}})
        before, self._edge_tunnels = self._edge_tunnels, None
        if before is not None:
            before.break_off()
        if not self._is_seated:
            self._link_to(host, term)

    def out_of_reach(self) -> None:
        before, self._edge_tunnels = self._edge_tunnels, None
        if before is not None:
            before.break_off()

    def connected(self, server: str, max_payload_bytes: int) -> None:
        del server
        self._max_payload = max_payload_bytes
        self._seat.connected()
        self._log.reconnected()
        if self._edge_tunnels is not None:
            self._edge_tunnels.reconnected()
        if self._seat_tunnels is not None:
            self._seat_tunnels.reconnected()

    def disconnected(self) -> None:
        """Everything that waits for an answer asks again."""

    # --- the process ----------------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            now = self._clock.steady_ms()
            try:
                self._log.clock_says(now)
                self._copy.clock_says(now)
                self._seat.clock_says(now)
                for part in (self._inner_store, self._seat_tunnels, self._edge_tunnels):
                    if part is not None:
                        part.clock_says(now)
            except Exception:  # noqa: BLE001 - without its ticks a host looks alive and does nothing
                logger.exception("internal_error")

    def _signalled(self, number: int) -> None:
        self._signals += 1
        logger.info("signal", extra={"relay_fields": {"signal": signal.Signals(number).name}})
        if self._signals > 1:
            self._leave()
            os._exit(1)
        self._seat.leave()
        self._stop.set()
        if self._inner is not None:
            self._inner.stop()

    def _leave(self) -> None:
        remove_file(self._config.file(places.PID_FILE))
        for lock in reversed(self._locks):
            lock.release()
        self._locks.clear()


def host_name() -> str:
    """The machine's name, as far as it can be part of a subject."""
    found = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in socket.gethostname().lower())
    return found.strip("-")[:32] or f"host-{int(time.time()):x}"


def read_credentials(config: ClusterConfig) -> Credentials:
    is_encrypted = config.ca is not None or any(server.startswith("tls:") for server in config.servers)
    context = ssl.create_default_context(cafile=config.ca) if is_encrypted else None
    return Credentials(token=config.token, creds_file=config.creds, tls=context)
