"""Whole hosts under the manual clock: the log, the seat, the copy, links and tunnels, and a core at whoever has the seat.

`daemon.cluster.host` puts the same parts together over real sockets; here everything that can wait is an event of the model's
engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agent_relay.cluster.copy import Copy
from agent_relay.cluster.jetstream import Names
from agent_relay.cluster.log import JetStreamLog
from agent_relay.cluster.records import Claim
from agent_relay.cluster.seat import Seat, SeatState
from agent_relay.cluster.seat_tunnels import SeatTunnels
from agent_relay.cluster.store import ClusterStore
from agent_relay.cluster.tunnels import EdgeTunnels, Tunnel, link_name
from agent_relay.core.limits import Limits
from agent_relay.core.relay import Relay
from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.cluster import Opening, UnseatReason, WireMessage
from agent_relay.ports.store import Batch, MessageStore, Snapshot, StoreError, WriteDone
from agent_relay.protocol.framing import FrameDecoder
from agent_relay.protocol.states import CloseReason
from agent_relay.storage.memory import MemoryStore
from tests.simulation.parts import Dice
from tests.support.cluster_model import Engine

if TYPE_CHECKING:
    from tests.simulation.cluster_world import ClusterWorld

NAMES = Names("demo")
TICK_MS = 50
START_WALL = 1_800_000_000_000
CLUSTER_UID = -3
_LIMITS = Limits(queue_capacity=1_000, ack_timeout_ms=1_000, heartbeat_ms=5_000)


class Silent:
    """`ports.Log`."""

    def note(self, what: str, **fields: object) -> None: ...


class Disk:
    """What a host keeps over its lives. Answers a moment later, and not to a life that is over."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._inner = MemoryStore(self._post)
        self._inner.open()
        self.life = 0
        self.position = self.term = 0

    def _post(self, callback: Callable[[], None]) -> None:
        life = self.life
        self._engine.later(1, lambda: callback() if life == self.life else None)

    def write(self, batch: Batch, done: WriteDone) -> None:
        assert batch.position == self.position + 1, "a copy has a gap, or something twice"
        self.position, self.term = batch.position, max(self.term, batch.term or 0)

        def told(error: StoreError | None) -> None:
            assert error is None, error
            done(None)

        if batch.term is not None:
            self._inner.open()  # another core takes over here, so every copy adopts what waits, as `storage.sqlite` does
        self._inner.write(batch, told)

    def open(self) -> Snapshot:
        snapshot = self._inner.open()
        snapshot.position, snapshot.term = self.position, self.term
        return snapshot

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Wire:
    """One client's own connection to its host, both ways; bytes take a moment. Implements `ports.cluster.LocalEnd`."""

    def __init__(self, host: Host, heard: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._host = host
        self._heard, self._ended = heard, ended
        self._handle: Tunnel | _Local | None = None
        self._waiting: list[bytes] = []
        self.is_open = True

    def connect(self) -> None:
        host = self._host
        if host.relay is not None:
            self._handle = _Local(host, self)
        elif host.edge is not None:
            self._handle = host.edge.open(Opening(host.name, is_owner=True), self)
        else:
            self.end(at_once=True)

    def say(self, data: bytes) -> None:
        """By the client."""
        if self.is_open:
            self._host.soon(partial(self._pass, data))

    def _pass(self, data: bytes) -> None:
        if self.is_open and self._handle is not None:
            self._handle.send(data)

    def hang_up(self) -> None:
        self.is_open = False
        handle, self._handle = self._handle, None
        if handle is not None:
            self._host.soon(handle.close)

    def give(self, data: bytes) -> None:
        if self._handle is not None:
            self._handle.taken(len(data))
        self._host.engine.later(1, lambda: self._heard(data) if self.is_open else None)

    def hold(self, is_held: bool) -> None:
        """Nobody here says so much at once."""

    def end(self, *, at_once: bool) -> None:
        """What was given before still arrives."""
        del at_once
        self._handle = None

        def over() -> None:
            if self.is_open:
                self.is_open = False
                self._ended()

        self._host.engine.later(1, over)

    def runs(self, agent: str, pid: int | None) -> None: ...


class _Local(asyncio.Transport):
    """A client of the host that has the seat: no tunnel in between."""

    def __init__(self, host: Host, wire: Wire) -> None:
        super().__init__()
        self._wire = wire
        self._protocol = host.accept(Opening(host.name, is_owner=True))
        self._protocol.connection_made(self)
        host.locals.add(self)

    def send(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def taken(self, count: int) -> None: ...

    def close(self) -> None:
        self._wire.end(at_once=False)
        self._protocol.connection_lost(None)

    def drop(self) -> None:
        self._wire.end(at_once=True)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._wire.give(bytes(data))


class CoreConnection(asyncio.Protocol):
    """One client, as the core sees it. Implements `ports.Connection`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._relay = host.relay
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._peer: Any = None
        self.notify_drained = False
        self.is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        assert self._relay is not None
        self._peer = self._relay.accepted(self, CLUSTER_UID)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None and self._relay is not None and self._relay is self._host.relay:
            self._host.turn(lambda relay: relay.received(self._peer, self._decoder.feed(data)))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._transport is not None and self._relay is self._host.relay:
            self._transport = None
            self._host.turn(lambda relay: relay.disconnected(self._peer))

    def send(self, frame: bytes) -> None:
        if self._transport is not None and self._relay is self._host.relay:
            self._transport.write(frame)

    def send_all(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.send(frame)

    def close(self, reason: CloseReason) -> None:
        del reason
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def caller(self) -> Caller:
        return OWNER

    def runs(self, agent: str, pid: int | None) -> None: ...


class Host:
    """One life of a daemon. Implements `ports.cluster.SeatListener`."""

    def __init__(self, world: ClusterWorld, name: str, mark: str, disk: Disk, wall_offset_ms: int) -> None:
        self.engine, self.name, self.disk = world.engine, name, disk
        self._world, self._mark, self._wall_offset_ms = world, mark, wall_offset_ms
        self.wire = self.engine.connect(name)
        self.is_dead = False
        self.relay: Relay | None = None
        self.edge: EdgeTunnels | None = None
        self.locals: set[_Local] = set()
        self._tunnels: SeatTunnels | None = None
        self._store: ClusterStore | None = None
        self._subscription = 0
        self._links = 0
        self._frozen: list[Callable[[], None]] | None = None
        self._log = JetStreamLog(self.wire, NAMES, mark, 3, Silent(), self.engine.now)
        self.seat = Seat(
            self.wire, self._log, NAMES, name, mark, self, self._apply, self.engine.random.randrange, Silent(), self.engine.now,
            term=disk.term, position=disk.position,
        )  # fmt: skip
        self._follow()
        self.seat.start()
        self.wire.subscribe(NAMES.to_edge(name), self._heard_from_seat)
        self.seat.connected()
        self.engine.later(TICK_MS, self._tick)

    # --- time -----------------------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """SIGSTOP: what comes waits, and is believed when it wakes."""
        self._frozen = []
        self.wire.hold()

    def thaw(self) -> None:
        frozen, self._frozen = self._frozen, None
        self.wire.let_go()
        for call in frozen or ():
            self._do(call)

    def soon(self, call: Callable[[], None]) -> None:
        """What a client of this host did; in order."""
        self.engine.later(1, lambda: self._do(call))

    def _do(self, call: Callable[[], None]) -> None:
        if self._frozen is not None:
            self._frozen.append(call)
        elif not self.is_dead:
            call()

    def _tick(self) -> None:
        if self.is_dead:
            return
        if self._frozen is None:
            now = self.engine.now
            self._log.clock_says(now)
            self._copy.clock_says(now)
            self.seat.clock_says(now)
            for part in (self._store, self._tunnels, self.edge):
                if part is not None:
                    part.clock_says(now)
            if self.relay is not None:
                self.turn(lambda relay: relay.tick())
        self.engine.later(TICK_MS, self._tick)

    def turn(self, work: Callable[[Relay], None]) -> None:
        relay = self.relay
        if relay is not None:
            relay.clock_says(self.engine.now + 1_000, self._wall())
            work(relay)
            relay.turn_ended()

    def answer(self, store: ClusterStore, tell: Callable[[], None]) -> None:
        if store is self._store:
            self.turn(lambda _relay: tell())

    def _wall(self) -> int:
        return START_WALL + self.engine.now + self._wall_offset_ms

    # --- the copy and the edge --------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        self._copy = Copy(cast("MessageStore", self.disk), self.disk.position, self._applied, Silent())
        self.seat.position = self.disk.position
        self._log.follow(self.disk.position, self._apply)

    def _apply(self, sequence: int, record: bytes) -> None:
        self._copy.heard(sequence, record)

    def _applied(self, position: int, claim: Claim | None) -> None:
        self.seat.applied(position, claim)

    def _heard_from_seat(self, message: WireMessage) -> None:
        if self.edge is not None:
            self.edge.heard(message.payload)

    def _link_to(self, host: str, term: int) -> None:
        self._links += 1
        subject = NAMES.to_seat(host, term)

        def broken() -> None:
            self.edge = None
            if self.seat.holder == host and self.seat.term == term and self.relay is None:
                self._link_to(host, term)

        self.edge = EdgeTunnels(
            link_name(self.name, f"{self._mark}.{self._links}"), lambda packet: self.wire.publish(subject, packet),
            lambda call: self.engine.later(0, call), broken, self.engine.now,
        )  # fmt: skip

    def _unlink(self) -> None:
        before, self.edge = self.edge, None
        if before is not None:
            before.break_off()

    # --- the seat -------------------------------------------------------------------------------------------------------

    def accept(self, opening: Opening) -> asyncio.Protocol:
        del opening
        return CoreConnection(self)

    def seated(self, term: int, position: int) -> None:
        assert (position, term) == (self.disk.position, self.disk.term)
        self._unlink()
        self._copy.close()
        snapshot = self.disk.open()
        self._store = ClusterStore(
            cast("MessageStore", self.disk), snapshot, self._log, self.seat.lose, self._moved, lambda: 100_000, Silent(),
            self.engine.now,
        )  # fmt: skip
        dice = Dice(self.engine.random)
        self.relay = Relay(_LIMITS, self._turning(self._store), dice, Silent(), snapshot, self.engine.now + 1_000, self._wall())
        tunnels = self._tunnels = SeatTunnels(
            self.wire.publish, self.accept, NAMES.to_edge, lambda call: self.engine.later(0, call), Silent(), self.engine.now
        )
        self._subscription = self.wire.subscribe(NAMES.to_seat(self.name, term), lambda message: tunnels.heard(message.payload))

    def _turning(self, store: ClusterStore) -> MessageStore:
        return cast("MessageStore", _Turning(self, store))

    def _moved(self, position: int) -> None:
        self.seat.position = position

    def unseated(self, reason: UnseatReason) -> None:
        """The core goes whole, without a word."""
        del reason
        self._world.seats_lost += 1
        self.relay = self._store = None
        tunnels, self._tunnels = self._tunnels, None
        if tunnels is not None:
            tunnels.close()
        self.wire.unsubscribe(self._subscription)
        self._let_locals_go()
        self.disk.life += 1  # its store is closed and opened again
        self._follow()

    def _let_locals_go(self) -> None:
        gone, self.locals = self.locals, set()
        for local in gone:
            local.drop()

    def seat_moved(self, host: str, term: int) -> None:
        self._unlink()
        if self.relay is None:
            self._link_to(host, term)

    def out_of_reach(self) -> None:
        self._unlink()

    # --- its end --------------------------------------------------------------------------------------------------------

    @property
    def is_seated(self) -> bool:
        return self.seat.state is SeatState.SEATED

    def die(self) -> None:
        """kill -9: the kernel closes its clients' connections."""
        self.is_dead = True
        self.disk.life += 1
        self.engine.disconnect(self.wire)
        edge, self.edge, self.relay = self.edge, None, None
        self._let_locals_go()
        if edge is not None:
            self.seat.holder = ""  # nobody links again
            edge.break_off()


class _Turning:
    """A store whose answers are turns of the core, for as long as that core is the host's."""

    def __init__(self, host: Host, store: ClusterStore) -> None:
        self._host, self._store = host, store

    @property
    def trouble(self) -> str | None:
        return self._store.trouble

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name in {"open", "stats", "close"}:
            return method

        def call(*arguments: Any) -> None:
            *asked, done = arguments
            method(*asked, lambda answer: self._host.answer(self._store, partial(done, answer)))

        return call
