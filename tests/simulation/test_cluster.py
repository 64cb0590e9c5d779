"""Several hosts on one log, by seeds: hosts die, hang and are cut off, answers get lost, the stream has no leader for a while.

Whoever has the seat writes; whatever was confirmed to it is in the log once and in order, and every copy becomes the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_relay.cluster.copy import Copy
from agent_relay.cluster.jetstream import Names
from agent_relay.cluster.log import JetStreamLog
from agent_relay.cluster.records import Claim, decode_record
from agent_relay.cluster.seat import Seat, SeatState
from agent_relay.cluster.store import ClusterStore
from agent_relay.ports.cluster import UnseatReason
from agent_relay.ports.store import Batch, Snapshot, StoreError, SubscriptionRow, WriteDone
from tests.support.cluster_model import Engine

NAMES = Names("demo")
TICK_MS = 50


class Notes:
    def note(self, what: str, **fields: object) -> None: ...


class Records(dict[int, bytes]):
    """Implements `ports.cluster.Kept`."""

    def keep(self, sequence: int, record: bytes) -> None:
        self.setdefault(sequence, record)

    def find(self, sequence: int) -> bytes | None:
        return self.get(sequence)


class Disk:
    """What a host keeps over its lives: the batches in order, and the records. It fails now and then."""

    def __init__(self, engine: Engine, failing: float) -> None:
        self._engine = engine
        self.failing = failing
        self.batches: list[Batch] = []
        self.records = Records()
        self.life = 0
        self.trouble: str | None = None

    @property
    def position(self) -> int:
        return self.batches[-1].position or 0 if self.batches else 0

    @property
    def term(self) -> int:
        return max((batch.term or 0 for batch in self.batches), default=0)

    def write(self, batch: Batch, done: WriteDone) -> None:
        life = self.life

        def written() -> None:
            if life != self.life:
                return
            if self._engine.random.random() < self.failing:
                done(StoreError("the disk is full"))
                return
            assert batch.position == self.position + 1, "a copy has a gap, or something twice"
            self.batches.append(batch)
            done(None)

        self._engine.later(2, written)


class Host:
    """One life of a daemon, as far as the cluster is concerned."""

    def __init__(self, engine: Engine, name: str, mark: str, disk: Disk, confirmed: list[str]) -> None:
        self.engine, self.name, self.disk = engine, name, disk
        self.confirmed = confirmed
        self.wire = engine.connect(name)
        self.is_stopped = self.is_dead = self.is_silent = False
        self.store: ClusterStore | None = None
        self._said = 0
        self._mark = mark
        self.log = JetStreamLog(self.wire, NAMES, mark, 3, Notes(), engine.now, disk.records)
        self.seat = Seat(
            self.wire, self.log, NAMES, name, mark, self, self._apply, engine.random.randrange, Notes(), engine.now,
            term=disk.term, position=disk.position,
        )  # fmt: skip
        self._follow()
        self.seat.start()
        self.seat.connected()
        engine.later(TICK_MS, self._tick)

    def _follow(self) -> None:
        self.copy = Copy(self.disk, self.disk.position, self._applied, Notes())  # type: ignore[arg-type]
        self.seat.position = self.disk.position
        self.log.follow(self.disk.position, self._apply)

    def _apply(self, sequence: int, record: bytes) -> None:
        self.copy.heard(sequence, record)

    def _applied(self, position: int, claim: Claim | None) -> None:
        self.seat.applied(position, claim)

    def _tick(self) -> None:
        if self.is_dead:
            return
        if not self.is_stopped:
            now = self.engine.now
            self.log.clock_says(now)
            self.copy.clock_says(now)
            self.seat.clock_says(now)
            if self.store is not None:
                self.store.clock_says(now)
        self.engine.later(TICK_MS, self._tick)

    def die(self) -> None:
        self.is_dead = True
        self.disk.life += 1
        self.engine.disconnect(self.wire)

    # --- SeatListener ---------------------------------------------------------------------------------------------------

    def seated(self, term: int, position: int) -> None:
        assert position == self.disk.position
        assert term == self.disk.term
        self.copy.close()
        snapshot = Snapshot(position=position, term=term)
        self.store = ClusterStore(
            self.disk, snapshot, self.log, self.seat.lose, self._moved, lambda: 100_000, Notes(), self.engine.now  # type: ignore[arg-type]
        )  # fmt: skip
        self._write_next(self.store)

    def _moved(self, position: int) -> None:
        self.seat.position = position

    def _write_next(self, store: ClusterStore) -> None:
        if store is not self.store or self.is_dead or self.is_silent:
            return
        self._said += 1
        word = f"{self._mark}.{self._said}"

        def written(error: StoreError | None) -> None:
            assert error is None
            if not self.is_dead:
                self.confirmed.append(word)
                self.engine.later(self.engine.random.choice((1, 10, 100)), lambda: self._write_next(store))

        store.write(Batch(subscriptions=[SubscriptionRow("Alice", word)]), written)

    def unseated(self, reason: UnseatReason) -> None:
        del reason
        self.store = None
        self.disk.life += 1  # its store is closed and opened again
        self._follow()

    def seat_moved(self, host: str, term: int) -> None: ...

    def out_of_reach(self) -> None: ...


class Cluster:
    def __init__(self, seed: int, *, loss: float, failing: float = 0.0) -> None:
        self.engine = Engine(seed, loss=loss)
        self.confirmed: list[str] = []
        self.disks = {name: Disk(self.engine, failing) for name in "abc"}
        self._lives = 0
        self.hosts = {name: self._bring_up(name) for name in "abc"}

    def _bring_up(self, name: str) -> Host:
        self._lives += 1
        return Host(self.engine, name, f"{name}{self._lives}", self.disks[name], self.confirmed)

    def run(self, ms: int) -> None:
        self.engine.run_until(self.engine.now + ms)

    def restart(self, name: str) -> None:
        self.hosts[name].die()
        self.run(self.engine.random.choice((1, 200, 4_000)))
        self.hosts[name] = self._bring_up(name)

    def cut(self, name: str) -> None:
        self.engine.cut.add(name)
        self.run(self.engine.random.choice((300, 5_000, 20_000)))
        self.engine.cut.discard(name)

    def hang(self, name: str) -> None:
        """Stopped: it hears everything at once, later, and believes what it believed."""
        self.engine.cut.add(name)
        self.hosts[name].is_stopped = True
        self.run(self.engine.random.choice((1_000, 6_000)))
        self.hosts[name].is_stopped = False
        self.engine.cut.discard(name)

    def lose_leader(self, _name: str) -> None:
        self.engine.is_down = True
        self.run(self.engine.random.choice((2_000, 9_000)))
        self.engine.is_down = False

    def settle(self) -> None:
        self.engine.loss = 0.0
        for disk in self.disks.values():
            disk.failing = 0.0
        self.run(60_000)
        for host in self.hosts.values():
            host.is_silent = True
        self.run(10_000)

    def words(self) -> list[str]:
        records = [decode_record(record) for _, record in self.engine.records]
        return [batch.subscriptions[0].pattern for batch in records if isinstance(batch, Batch)]

    def check(self) -> None:
        words = self.words()
        assert len(set(words)) == len(words), "doubled"
        places = {word: place for place, word in enumerate(words)}
        lost = [word for word in self.confirmed if word not in places]
        assert not lost, f"confirmed and lost: {lost[:3]}"
        for mark in {word.partition(".")[0] for word in self.confirmed}:  # one that had the seat may learn later what it stored
            order = [places[word] for word in self.confirmed if word.partition(".")[0] == mark]
            assert order == sorted(order), "out of order"
        for name, disk in self.disks.items():
            copied = [batch.subscriptions[0].pattern for batch in disk.batches if batch.subscriptions]
            assert copied == words[: len(copied)], f"the copy of {name} is another"
            assert disk.position == len(self.engine.records), f"the copy of {name} is behind"


FAULTS: list[Callable[[Cluster, str], Any]] = [Cluster.restart, Cluster.cut, Cluster.hang, Cluster.lose_leader]


def live(seed: int, *, loss: float = 0.02, failing: float = 0.0, checks_sequence: bool = True) -> Cluster:
    cluster = Cluster(seed, loss=loss, failing=failing)
    cluster.engine.checks_sequence = checks_sequence
    cluster.run(5_000)
    for _ in range(12):
        fault = cluster.engine.random.choice(FAULTS)
        holder = next((name for name, host in cluster.hosts.items() if host.seat.state is SeatState.SEATED), "a")
        name = holder if cluster.engine.random.random() < 0.6 else cluster.engine.random.choice("abc")
        fault(cluster, name)
        cluster.run(cluster.engine.random.choice((100, 2_000, 8_000)))
    cluster.settle()
    return cluster


@pytest.mark.parametrize("seed", range(30))
def test_what_was_confirmed_is_in_the_log_once_and_in_order_and_copies_are_the_same(seed: int) -> None:
    cluster = live(seed, failing=0.05 if seed % 3 == 0 else 0.0)
    assert len(cluster.confirmed) > 50
    cluster.check()


def test_a_log_that_does_not_compare_is_found_out() -> None:
    """The planted fault: the check can fail."""

    def is_found(seed: int) -> bool:
        try:
            live(seed, checks_sequence=False).check()
        except AssertionError:
            return True
        return False

    assert any(is_found(seed) for seed in range(30))


def test_one_host_alone_takes_the_seat_within_seconds() -> None:
    cluster = Cluster(1, loss=0.0)
    cluster.run(3_000)
    assert [host.seat.state for host in cluster.hosts.values()].count(SeatState.SEATED) == 1
    holder = next(host for host in cluster.hosts.values() if host.seat.state is SeatState.SEATED)
    others = [host for host in cluster.hosts.values() if host is not holder]
    assert {host.seat.holder for host in others} == {holder.name}
    holder.die()
    cluster.run(5_500)
    assert [host.seat.state for host in others].count(SeatState.SEATED) == 1


def find_holder(cluster: Cluster) -> Host | None:
    return next((host for host in cluster.hosts.values() if host.seat.state is SeatState.SEATED and not host.is_dead), None)


def lose_records(cluster: Cluster) -> tuple[list[tuple[str, bytes]], str]:
    """The log as it was, and a host whose copy ends where the log ends now; nobody has the seat."""
    cluster.run(5_000)
    holder = find_holder(cluster)
    assert holder is not None
    late = next(name for name in "abc" if name != holder.name)
    cluster.hosts[late].die()
    cluster.run(2_000)
    whole = list(cluster.engine.records)
    for host in cluster.hosts.values():
        if not host.is_dead:
            host.die()
    del cluster.engine.records[cluster.disks[late].position :]
    return whole, late


@pytest.mark.parametrize("seed", range(3))
def test_nobody_claims_a_log_that_has_lost_what_a_host_has_copied(seed: int) -> None:
    cluster = Cluster(seed, loss=0.0)
    whole, late = lose_records(cluster)
    left = len(cluster.engine.records)
    cluster.hosts = {name: cluster._bring_up(name) for name in "abc"}
    cluster.run(60_000)
    assert len(cluster.engine.records) == left
    assert all("log_regressed" in (host.log.trouble or host.seat.trouble) for host in cluster.hosts.values())
    assert "at host" in cluster.hosts[late].seat.trouble  # says where to repair
    cluster.engine.records[left:] = whole[left:]  # as the repair does
    cluster.run(10_000)
    assert find_holder(cluster) is not None
    cluster.settle()
    cluster.check()


def test_a_host_does_not_follow_a_log_that_has_gone_on_without_its_records() -> None:
    cluster = Cluster(5, loss=0.0)
    whole, late = lose_records(cluster)
    cluster.hosts[late] = cluster._bring_up(late)
    while len(cluster.engine.records) <= len(whole):  # it cannot know what the others have
        cluster.run(1_000)
    other = next(name for name in "abc" if name != late and cluster.disks[name].position == len(whole))
    before = list(cluster.disks[other].batches)
    host = cluster.hosts[other] = cluster._bring_up(other)
    cluster.run(5_000)
    assert "log_diverged" in host.log.trouble
    cluster.hosts[late].die()
    cluster.run(30_000)
    assert host.seat.state is not SeatState.SEATED
    assert cluster.disks[other].batches == before


def test_a_seat_that_is_given_back_is_taken_without_waiting() -> None:
    cluster = Cluster(2, loss=0.0)
    cluster.run(3_000)
    holder = find_holder(cluster)
    assert holder is not None
    holder.is_silent = True
    cluster.run(200)
    told: list[bool] = []
    holder.seat.leave()
    holder.seat.resign(lambda: told.append(True))
    cluster.run(500)
    assert told
    holder.die()
    cluster.run(300)
    assert find_holder(cluster) not in {None, holder}


def test_a_seat_with_nothing_to_append_notices_that_the_log_has_lost_its_records() -> None:
    cluster = Cluster(3, loss=0.0)
    cluster.run(5_000)
    holder = find_holder(cluster)
    assert holder is not None
    holder.is_silent = True
    cluster.run(1_000)
    whole = list(cluster.engine.records)
    del cluster.engine.records[-3:]
    for host in cluster.hosts.values():
        host.log.reconnected()  # its servers were down meanwhile
    cluster.run(60_000)
    assert find_holder(cluster) is None
    assert all("log_regressed" in (host.log.trouble or host.seat.trouble) for host in cluster.hosts.values())
    cluster.engine.records[:] = whole
    cluster.run(10_000)
    assert find_holder(cluster) is not None


def test_a_seat_stays_when_its_servers_come_back_with_all_they_had() -> None:
    cluster = Cluster(4, loss=0.0)
    cluster.run(5_000)
    holder = find_holder(cluster)
    for _ in range(20):
        for host in cluster.hosts.values():
            host.log.reconnected()
        cluster.run(2_000)
    assert holder is not None
    assert find_holder(cluster) is holder
    cluster.settle()
    cluster.check()


def test_whoever_claims_a_seat_that_is_not_confirmed_says_why_nobody_has_it() -> None:
    cluster = Cluster(5, loss=0.0)
    cluster.run(5_000)
    holder = find_holder(cluster)
    assert holder is not None
    cluster.engine.takes_nothing = True
    holder.die()
    cluster.run(15_000)
    waiting = [host for host in cluster.hosts.values() if not host.is_dead]
    assert SeatState.CLAIMING in {host.seat.state for host in waiting}
    assert all("majority" in host.log.trouble for host in waiting)
    cluster.engine.takes_nothing = False
    cluster.run(5_000)
    assert find_holder(cluster) is not None
    assert not any(host.log.trouble for host in waiting)
