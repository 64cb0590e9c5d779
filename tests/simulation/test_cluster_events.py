"""The events of several hosts on one stream, by seeds: the seat moves without the old one knowing, hosts die, answers get lost.

Every number means one event, on every host and for whoever has seen it, and none is missing without a gap that says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from agent_relay.cluster.event_records import EventRecord, decode_event_record
from agent_relay.cluster.events import ClusterEvents
from agent_relay.cluster.jetstream import Retention, StreamNames
from agent_relay.cluster.log import JetStreamLog
from agent_relay.events.drafts import Draft, Note
from agent_relay.events.pages import EventQuery
from agent_relay.events.record import gap_record
from agent_relay.events.types import LoopDetected
from agent_relay.ports.events import CountDone, EventStats, NumberedEvents, OnAppended, PageDone
from tests.support.cluster_model import Engine

NAMES = StreamNames("relay.demo.log", "RELAY_DEMO_EVENTS")  # the model has one stream, whose subject ends so
TICK_MS = 50
MOST_BYTES = 20_000  # of a record


class Notes:
    def note(self, what: str, **fields: object) -> None: ...


class Disk:
    """`ports.EventCopy`: the lines of a host, over all its lives. What is given is written a little later, the position is noted
    much later."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.lines: dict[int, bytes] = {}
        self.numbering = ""
        self.position = 0
        self.last_seq = 0
        self.waiting = 0
        self.is_whole = True
        self.last_message: int | None = None
        self._life = self._free_at = 0
        self._on_appended: OnAppended | None = None

    @property
    def last_ts(self) -> int:
        return 0

    def open(self, on_appended: OnAppended) -> int:
        self._life += 1
        self.waiting = 0
        self._on_appended = on_appended
        return self.last_seq

    def adopt(self, numbering: str) -> None:
        self.numbering = numbering

    def put(self, events: NumberedEvents) -> None:
        life, self.waiting = self._life, self.waiting + 1

        def written() -> None:
            if life == self._life:
                self.waiting -= 1
                self._write(events)

        self._free_at = max(self._free_at, self._engine.now) + self._engine.random.choice((1, 1, 30))
        self._engine.later(self._free_at - self._engine.now, written)  # one after the other

    def _write(self, events: NumberedEvents) -> None:
        assert self.numbering in {"", events.numbering}
        self.numbering = events.numbering
        if self._engine.random.random() < 0.2:
            self.position = events.position
        for seq, line in enumerate(events.data.splitlines(), events.first_seq):
            if seq > self.last_seq:
                if self.lines and seq > self.last_seq + 1:
                    self.lines[seq - 1] = gap_record(seq, 0).line
                self.lines[seq] = line
                self.last_seq = seq
                if self._on_appended is not None:
                    self._on_appended(seq, 1, line + b"\n")

    def stats(self) -> EventStats:
        return EventStats("model", self.last_seq, 0, waiting=self.waiting)

    def append(self, drafts: list[Draft]) -> None: ...

    def cover(self, message: int) -> None: ...

    def read(self, query: EventQuery, done: PageDone) -> None: ...

    def prune(self, before_ms: int) -> None: ...

    def erase(self, agent: str, done: CountDone) -> None: ...

    def close(self) -> None: ...


class Log:
    """The documents in the log of messages, where only the newest term can write."""

    def __init__(self) -> None:
        self.term = 0
        self.documents: dict[str, bytes] = {}


class LogDocuments:
    """`ports.Documents`, of a host that believes that it has the seat."""

    def __init__(self, log: Log, engine: Engine, term: int) -> None:
        self._log, self._engine, self._term = log, engine, term

    def find(self, prefix: str) -> dict[str, bytes]:
        return {name: content for name, content in self._log.documents.items() if name.startswith(prefix)}

    def put(self, name: str, content: bytes, then: Callable[[], None] | None = None) -> None:
        def written() -> None:
            if self._log.term == self._term:
                self._log.documents[name] = content
                if then is not None:
                    then()

        self._engine.later(self._engine.random.choice((1, 5, 200)), written)


class Host:
    """One life of a host. It has the seat when it is told so, and until it is told or refused."""

    def __init__(self, engine: Engine, name: str, life: int, disk: Disk, seen: dict[int, bytes], log_has: Log) -> None:
        self.engine, self.name, self.disk, self._log_has = engine, name, disk, log_has
        self.is_dead = self.is_seat = False
        self.told = 0
        self._seen = seen
        self._mark = f"{name}{life}"
        self.wire = engine.connect(name)
        log = JetStreamLog(self.wire, NAMES, self._mark, 3, Notes(), engine.now, may_skip=True)
        self.events = ClusterEvents(
            log, disk, name, self._mark, self._mark, Retention(10**9, 10**9), lambda: MOST_BYTES, Notes(), engine.now
        )
        self.events.start()
        engine.later(TICK_MS, self._tick)

    def sit_down(self, term: int) -> None:
        self.is_seat = True
        self._log_has.term = term
        self.events.claim(term, self._log_has.documents.get("events", b""), lambda: None)
        self.events.open(self._published)
        self.events.keep_in(LogDocuments(self._log_has, self.engine, term))

    def stand_up(self) -> None:
        self.is_seat = False
        self.events.close()

    def _published(self, first_seq: int, count: int, data: bytes) -> None:
        for seq, line in enumerate(data.splitlines(), first_seq):
            assert self._seen.setdefault(seq, line) == line, "somebody has seen another event with this number"

    def _tick(self) -> None:
        if self.is_dead:
            return
        self.events.clock_says(self.engine.now, self.engine.now)
        if self.is_seat:
            drafts: list[Draft] = []
            for _ in range(self.engine.random.choice((0, 1, 3, 30))):
                self.told += 1
                event = LoopDetected(agents=["a"], hops=1, stage="warned", text=f"{self._mark}.{self.told}")
                drafts.append(Note(event, self.name, "", self.engine.now))
            if drafts:
                self.events.append(drafts)
        self.engine.later(TICK_MS, self._tick)

    def die(self) -> None:
        self.is_dead = True
        self.engine.disconnect(self.wire)


class Cluster:
    def __init__(self, seed: int, loss: float) -> None:
        self.engine = Engine(seed, loss=loss)
        self.seen: dict[int, bytes] = {}
        self.log = Log()
        self.disks = {name: Disk(self.engine) for name in "abc"}
        self._lives = 0
        self._term = 0
        self.hosts = {name: self._bring_up(name) for name in "abc"}

    def _bring_up(self, name: str) -> Host:
        self._lives += 1
        return Host(self.engine, name, self._lives, self.disks[name], self.seen, self.log)

    def run(self, ms: int) -> None:
        self.engine.run_until(self.engine.now + ms)

    def move(self, *, is_told: bool) -> None:
        """Another host has the seat. The one before hears of it, or goes on until its records are refused."""
        self._term += 1
        former = [host for host in self.hosts.values() if host.is_seat]
        other = self.hosts[self.engine.random.choice("abc")]
        for host in former:
            if is_told or host is other:
                host.stand_up()
        other.sit_down(self._term)

    def restart(self) -> None:
        name = self.engine.random.choice("abc")
        self.hosts[name].die()
        self.run(self.engine.random.choice((1, 500)))
        self.hosts[name] = self._bring_up(name)

    def cut(self) -> None:
        name = self.engine.random.choice("abc")
        self.engine.cut.add(name)
        self.run(self.engine.random.choice((300, 5_000)))
        self.engine.cut.discard(name)

    def settle(self) -> None:
        self.engine.loss = 0.0
        for host in self.hosts.values():
            if host.is_seat:
                host.stand_up()
        self.move(is_told=True)
        self.run(5_000)
        for host in self.hosts.values():
            host.is_seat = False  # says nothing more
        self.run(40_000)

    def check(self) -> None:
        records = [decode_event_record(record) for _, record in self.engine.records]
        terms = [record.term for record in records]
        assert terms == sorted(terms), "somebody wrote who had lost the seat"
        lines = [line for record in records if isinstance(record, EventRecord) for line in record.data.splitlines()]
        numbers = [json.loads(line)["_seq"] for line in lines]
        assert numbers == list(range(1, len(numbers) + 1)), "a number is there twice, or missing"
        for name, disk in self.disks.items():
            assert disk.lines == dict(zip(numbers, lines, strict=True)), f"the copy of {name} is another"
        for seq, line in self.seen.items():
            assert lines[seq - 1] == line, "what somebody has seen is another event now"
        self._check_gaps(records)

    def _check_gaps(self, records: list[object]) -> None:
        """Where a host follows another, or a later life of itself, a gap stands first: nobody has said goodbye here."""
        words = [json.loads(line) for record in records if isinstance(record, EventRecord) for line in record.data.splitlines()]
        before = ""
        for place, word in enumerate(words):
            mark = word.get("text", "").partition(".")[0]
            if mark and mark != before:
                assert not before or words[place - 1]["type"] == "stream.gap", "something may be missing, and nothing says so"
                before = mark


@pytest.mark.parametrize("seed", range(24))
def test_every_number_means_one_event_wherever_the_seat_was(seed: int) -> None:
    cluster = Cluster(seed, loss=0.02 if seed % 2 else 0.0)
    random = cluster.engine.random
    for _ in range(12):
        cluster.run(random.choice((100, 1_000, 3_000)))
        match random.choice(("told", "untold", "restart", "cut")):
            case "told":
                cluster.move(is_told=True)
            case "untold":
                cluster.move(is_told=False)
            case "restart":
                cluster.restart()
            case _:
                cluster.cut()
    cluster.settle()
    assert len(cluster.seen) > 50
    cluster.check()


def test_a_stream_that_does_not_compare_is_found_out() -> None:
    """The planted fault: the check can fail."""
    found = 0
    for seed in range(12):
        cluster = Cluster(seed, loss=0.02)
        cluster.engine.checks_sequence = False
        try:
            for _ in range(8):
                cluster.run(1_000)
                cluster.move(is_told=False)
            cluster.settle()
            cluster.check()
        except AssertionError:
            found += 1
    assert found


def test_a_host_that_says_goodbye_leaves_nothing_to_be_told() -> None:
    cluster = Cluster(1, loss=0.0)
    cluster.move(is_told=True)
    cluster.run(1_000)
    (seat,) = (host for host in cluster.hosts.values() if host.is_seat)
    seat.is_seat = False
    said: list[bool] = []
    seat.events.say_goodbye(lambda: said.append(True))
    cluster.run(1_000)
    assert said == [True]
    seat.events.close()
    cluster.move(is_told=True)
    cluster.run(1_000)
    cluster.settle()
    lines = [json.loads(line) for line in cluster.disks["a"].lines.values()]
    others = {line["text"].partition(".")[0] for line in lines if "text" in line}
    gaps = [line for line in lines if line["type"] == "stream.gap"]
    assert len(others) > 1
    assert len(gaps) <= 1  # of the last move alone, which nobody announced


def test_events_that_the_stream_does_not_take_are_counted_and_told() -> None:
    cluster = Cluster(2, loss=0.0)
    cluster.move(is_told=True)
    (seat,) = (host for host in cluster.hosts.values() if host.is_seat)
    cluster.run(500)
    assert seat.events.stats().waiting < 100  # whoever starts does not wait for something that is not to come
    seat.is_seat = False
    cluster.engine.is_down = True
    event = LoopDetected(agents=["a"], hops=1, stage="warned", text="x")
    for _ in range(15):
        seat.events.append([Note(event, "a", "", 1) for _ in range(1_000)])
    cluster.run(3_000)
    assert seat.events.stats().waiting <= 10_000
    lost = seat.events.stats().lost
    assert lost >= 5_000
    cluster.engine.is_down = False
    cluster.run(60_000)
    gaps = [json.loads(line) for line in cluster.disks["b"].lines.values() if b"stream.gap" in line]
    assert [gap["lost"] for gap in gaps if gap["reason"] == "unwritten"] == [lost]
    assert seat.events.stats().waiting == 0


def test_an_event_that_is_too_large_for_a_record_is_told_as_lost() -> None:
    cluster = Cluster(3, loss=0.0)
    cluster.move(is_told=True)
    (seat,) = (host for host in cluster.hosts.values() if host.is_seat)
    seat.is_seat = False
    notes: list[Draft] = [
        Note(LoopDetected(agents=["a"], hops=1, stage="warned", text=text), "a", "", 1) for text in ("one", "x" * 50_000, "two")
    ]
    seat.events.append(notes)
    cluster.run(2_000)
    lines = [json.loads(line) for line in cluster.disks["c"].lines.values()]
    assert [line.get("text", line.get("lost")) for line in lines] == ["one", 1, "two"]


def test_numbers_that_nobody_can_tell_any_more_are_passed_over() -> None:
    """The stream has let go of what a host never copied, and that host gets the seat."""
    cluster = Cluster(4, loss=0.0)
    first, late = cluster.hosts["a"], cluster.hosts["c"]
    first.sit_down(1)
    cluster.run(1_000)
    cluster.engine.cut.add("c")
    cluster.run(3_000)
    first.stand_up()
    cluster.run(1_000)
    cluster.engine.gone = len(cluster.engine.records)
    cluster.engine.cut.discard("c")
    assert cluster.disks["c"].last_seq < cluster.disks["a"].last_seq
    late.sit_down(2)
    cluster.run(10_000)
    new = {seq: line for seq, line in cluster.disks["c"].lines.items() if b'"c' in line}
    assert min(new) > 100_000
    before = json.loads(cluster.disks["c"].lines[min(new) - 1])
    assert (before["type"], before["reason"], before["oldest"]) == ("stream.gap", "killed", min(new))
    assert cluster.disks["a"].lines[min(new)] == new[min(new)]  # and the host that knew more follows
    assert seen_once(cluster)


def seen_once(cluster: Cluster) -> bool:
    return all(cluster.disks["a"].lines[seq] == line for seq, line in cluster.seen.items())
