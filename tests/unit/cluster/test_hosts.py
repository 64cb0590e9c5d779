"""Presence of hosts: who is there, who is lost, and who has somebody else's name."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_relay.cluster.hosts import EVERY_MS, FORGOTTEN_MS, Hosts, HostWord
from agent_relay.cluster.jetstream import Names
from agent_relay.ports.cluster import NO_HEADERS, Answered, Headers, Heard, WireMessage
from agent_relay.protocol.hosts import HostRole

WALL_MS = 1_700_000_000_000


class Air:
    """A wire that carries every word to every listener at once, the speaker's own too, as NATS does."""

    def __init__(self) -> None:
        self.listeners: list[Heard] = []
        self.said: list[dict[str, Any]] = []

    def publish(self, subject: str, payload: bytes, headers: Headers = NO_HEADERS) -> bool:
        assert subject == "relay.demo.hosts"
        self.said.append(msgspec.json.decode(payload))
        for heard in list(self.listeners):
            heard(WireMessage(subject, payload, headers))
        return True

    def ask(self, subject: str, payload: bytes, done: Answered, headers: Headers = NO_HEADERS) -> None:
        raise AssertionError("presence asks nobody")

    def subscribe(self, subject: str, heard: Heard) -> int:
        self.listeners.append(heard)
        return len(self.listeners)

    def unsubscribe(self, number: int) -> None:
        raise AssertionError("presence listens for good")

    def new_inbox(self) -> str:
        raise AssertionError("presence asks nobody")


class Notes:
    def __init__(self) -> None:
        self.found: list[str] = []

    def note(self, event: str, **fields: Any) -> None:
        del fields
        self.found.append(event)


class Host:
    """A host with a clock of its own."""

    def __init__(self, air: Air, name: str, *, mark: str = "1", started_at: int = 0, wall_ms: int = WALL_MS) -> None:
        self.name, self.mark, self.started_at, self.wall_ms = name, mark, started_at, wall_ms
        self.is_seat, self.position, self.agents = False, 0, dict[str, int]()
        self.now = 0
        self.notes = Notes()
        self.hosts = Hosts(air, Names("demo"), self.describe, self.notes, self.now, wall_ms)
        self.hosts.start()

    def describe(self, every_ms: int) -> HostWord:
        return HostWord(
            self.name, self.mark, self.started_at, "1.2.3", self.is_seat, self.position, 0.5, self.wall_ms, every_ms, self.agents,
            ["claude"],
        )  # fmt: skip

    def pass_time(self, span_ms: int) -> None:
        self.now += span_ms
        self.wall_ms += span_ms
        self.hosts.clock_says(self.now, self.wall_ms)

    @property
    def roles(self) -> dict[str, str]:
        return {host.host: host.role.value for host in self.hosts.facts()}


def test_a_host_knows_the_others_by_their_words() -> None:
    air = Air()
    seat, edge = Host(air, "a"), Host(air, "b", wall_ms=WALL_MS - 5_000)
    seat.is_seat, seat.position, seat.agents = True, 40, {"a": 2, "b": 7}
    edge.position = 30
    edge.pass_time(EVERY_MS)
    seat.pass_time(EVERY_MS)
    edge.hosts.speak()
    a, b = edge.hosts.facts()
    assert (a.host, a.role, a.agents, a.behind, a.clock_ms, a.is_self) == ("a", HostRole.SEAT, 2, 0, 5_000, False)
    assert (b.host, b.role, b.agents, b.behind, b.clock_ms, b.is_self) == ("b", HostRole.EDGE, 7, 10, 0, True)
    assert (a.version, a.load, a.starts) == ("1.2.3", 0.5, ["claude"])
    assert seat.hosts.facts()[1].clock_ms == -5_000


def test_a_host_speaks_every_two_seconds_and_when_it_is_told_to() -> None:
    air = Air()
    host = Host(air, "a")
    for _ in range(60):
        host.pass_time(100)
    assert len(air.said) == 3  # the first at once
    host.hosts.speak()
    assert len(air.said) == 4


def test_a_silent_host_is_lost_after_ten_seconds_listed_for_an_hour_and_then_forgotten() -> None:
    air = Air()
    one, other = Host(air, "a"), Host(air, "b")
    other.hosts.speak()
    one.pass_time(9_999)
    assert one.roles == {"a": "edge", "b": "edge"}
    assert one.hosts.word_of("b") is not None
    one.pass_time(EVERY_MS)
    assert one.roles == {"a": "edge", "b": "lost"}
    assert one.hosts.word_of("b") is None
    assert one.notes.found.count("cluster_host_lost") == 1
    other.hosts.speak()
    assert one.roles["b"] == "edge"
    assert one.notes.found.count("cluster_host_heard") == 2
    one.pass_time(FORGOTTEN_MS)
    one.pass_time(EVERY_MS)
    assert one.roles == {"a": "edge"}


def test_a_lost_seat_does_not_count_agents_any_more() -> None:
    air = Air()
    seat, edge = Host(air, "a"), Host(air, "b")
    seat.is_seat, seat.agents = True, {"b": 7}
    seat.hosts.speak()
    edge.pass_time(EVERY_MS)
    assert edge.hosts.facts()[1].agents == 7
    edge.pass_time(20_000)
    assert edge.hosts.facts()[1].agents == 0


def test_of_two_with_one_name_the_later_one_steps_back_until_the_other_has_gone() -> None:
    air = Air()
    first = Host(air, "a", mark="1", started_at=1_000)
    second = Host(air, "a", mark="2", started_at=2_000)
    second.hosts.speak()  # is answered at once
    assert "--cluster-host" in second.hosts.twin
    assert first.hosts.twin == ""
    assert first.notes.found == ["cluster_twin_refused"]
    assert [host.is_self for host in second.hosts.facts()] == [True]  # not mixed with the other's words
    del air.listeners[0]  # it stops
    second.pass_time(9_999)
    assert second.hosts.twin
    second.pass_time(1)
    assert second.hosts.twin == ""


def test_more_hosts_speak_less_often() -> None:
    air = Air()
    one = Host(air, "a")
    for number in range(500):
        Host(air, f"h{number}").hosts.speak()
        air.listeners[1:] = []  # they need not hear each other
    one.pass_time(EVERY_MS)
    assert air.said[-1]["every_ms"] == 500 * 20
    said = len(air.said)
    one.pass_time(9_999)
    assert len(air.said) == said
    one.pass_time(1)
    assert len(air.said) == said + 1


def test_words_that_cannot_be_true_are_not_listened_to() -> None:
    air = Air()
    one = Host(air, "a")
    for payload in (b"", b"{}", b"[1]", b"\xff"):
        air.listeners[0](WireMessage("relay.demo.hosts", payload))
    for name, every_ms in (("b\x1b[2J", EVERY_MS), ("B", EVERY_MS), ("", EVERY_MS), ("x" * 33, EVERY_MS), ("b", 0)):
        word = msgspec.structs.replace(one.describe(every_ms), host=name)
        air.listeners[0](WireMessage("relay.demo.hosts", msgspec.json.encode(word)))
    assert one.roles == {"a": "edge"}
