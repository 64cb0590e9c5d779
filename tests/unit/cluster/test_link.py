"""Both ends of a link over a wire that loses, and what they make of it."""

from __future__ import annotations

from random import Random

import pytest

from agent_relay.cluster.link import DEAD_MS, FORGOTTEN_MS, KEEPALIVE_MS, Link, Op, OpKind, read_packet


class Wire:
    """Two ends and the packets between them; `loss` of them never arrive."""

    def __init__(self, seed: int = 0, loss: float = 0.0) -> None:
        self._random = Random(seed)
        self.loss = loss
        self.now = 0
        self.sent = 0
        self._under_way: list[tuple[Link, bytes]] = []
        self.heard: list[list[Op]] = [[], []]
        self.ends = [Link("a/1", lambda packet: self._send(1, packet), self.heard[0].extend, 0),
                     Link("a/1", lambda packet: self._send(0, packet), self.heard[1].extend, 0)]  # fmt: skip

    def _send(self, to: int, packet: bytes) -> None:
        self.sent += 1
        if self._random.random() >= self.loss:
            self._under_way.append((self.ends[to], packet))

    def pass_time(self, ms: int) -> None:
        for _ in range(ms // 10):
            self.now += 10
            under_way, self._under_way = self._under_way, []
            for end, packet in under_way:
                found = read_packet(packet)
                assert found is not None
                end.heard(*found[1:])
                end.flush()
            for end in self.ends:
                end.clock_says(self.now)


@pytest.mark.parametrize("seed", range(20))
def test_everything_arrives_once_and_in_order_whatever_is_lost(seed: int) -> None:
    wire = Wire(seed, loss=0.3)
    for number in range(300):
        for end in wire.ends:
            end.say(OpKind.DATA, number, f"{number}".encode())
        if number % 3 == 0:
            for end in wire.ends:
                end.flush()
        if number % 50 == 0:
            wire.pass_time(100)
    for end in wire.ends:
        end.flush()
    wire.pass_time(30_000)
    for heard in wire.heard:
        assert [data for _, _, data in heard] == [f"{number}".encode() for number in range(300)]


def test_a_turn_is_one_packet_and_silence_costs_one_a_second() -> None:
    wire = Wire()
    for number in range(100):
        wire.ends[0].say(OpKind.DATA, number, b"x")
    wire.ends[0].flush()
    assert wire.sent == 1
    wire.pass_time(100)
    before = wire.sent
    wire.pass_time(10 * KEEPALIVE_MS)
    assert wire.sent - before <= 22
    assert all(end.silent_ms < FORGOTTEN_MS for end in wire.ends)


def test_the_silence_of_the_other_end_is_known() -> None:
    wire = Wire(loss=1.0)
    wire.pass_time(DEAD_MS)
    assert wire.ends[0].silent_ms == DEAD_MS


def test_nothing_follows_the_introduction_until_it_is_acknowledged() -> None:
    wire = Wire(loss=1.0)
    first = wire.ends[0]
    first.say(OpKind.RULES, 0, b"who I am")
    first.flush()
    first.say(OpKind.OPEN, 1, b"a client")
    first.flush()
    wire.pass_time(1_000)
    assert wire.heard[1] == []
    wire.loss = 0.0
    wire.pass_time(1_000)
    assert [data for _, _, data in wire.heard[1]] == [b"who I am", b"a client"]


def test_a_large_turn_is_divided_and_nothing_of_it_is_lost() -> None:
    wire = Wire()
    for number in range(40):
        wire.ends[0].say(OpKind.DATA, number, bytes(100_000))
    wire.ends[0].flush()
    wire.pass_time(2_000)
    assert [connection for _, connection, _ in wire.heard[1]] == list(range(40))
    assert wire.sent > 7


def test_what_is_no_packet_is_nothing() -> None:
    assert read_packet(b"") is None
    assert read_packet(b"\x94\xa1a\x01\x02") is None
