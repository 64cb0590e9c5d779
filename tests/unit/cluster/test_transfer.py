"""Both ends of a transfer over a wire that loses a third of everything, under a manual clock."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from agent_relay.cluster.jetstream import Names
from agent_relay.cluster.transfer import PIECE_BYTES, CopyGiver, CopyTaker, Offer, OfferState, SinkFailed
from agent_relay.ports.cluster import NO_HEADERS, Answered, Headers, Heard, WireMessage

NAMES = Names("demo")


class Notes:
    def note(self, what: str, **fields: object) -> None: ...


class Net:
    """Implements `ports.cluster.Wire`; what is due happens when the clock says so."""

    def __init__(self, loss: float = 0.0) -> None:
        self.now = 0
        self.loss = loss
        self._random = Random(1)
        self._heard: dict[str, Heard] = {}
        self._asked: dict[str, list[Answered]] = {}
        self._due: list[tuple[int, Callable[[], None]]] = []
        self._last = 0

    def later(self, delay: int, call: Callable[[], None]) -> None:
        self._due.append((self.now + delay, call))

    def run(self, ms: int, *parts: CopyGiver | CopyTaker) -> None:
        for _ in range(ms // 10):
            self.now += 10
            due = [call for at, call in self._due if at <= self.now]
            self._due = [(at, call) for at, call in self._due if at > self.now]
            for call in due:
                call()
            for part in parts:
                part.clock_says(self.now)

    def publish(self, subject: str, payload: bytes, headers: Headers = NO_HEADERS) -> bool:
        pending = self._asked.get(subject)
        if pending and self._random.random() >= self.loss:
            done = pending.pop()
            self.later(10, lambda: done(WireMessage(subject, payload, headers)))
        return True

    def ask(self, subject: str, payload: bytes, done: Answered, headers: Headers = NO_HEADERS) -> None:
        self._last += 1
        reply = f"reply.{self._last}"
        pending = self._asked[reply] = [done]
        self.later(500, lambda: pending.pop()(None) if pending else None)
        heard = self._heard.get(subject)
        if heard is not None and self._random.random() >= self.loss:
            self.later(10, lambda: heard(WireMessage(subject, payload, headers, reply)))

    def subscribe(self, subject: str, heard: Heard) -> int:
        self._heard[subject] = heard
        return 1

    def unsubscribe(self, number: int) -> None: ...

    def new_inbox(self) -> str:
        return ""


class Source:
    def __init__(self, net: Net, content: bytes, refusal: str = "") -> None:
        self._net, self.content, self.refusal = net, content, refusal
        self.prepared = self.removed = 0
        self.position = 40

    def prepare(self, done: Callable[[Offer], None]) -> None:
        self.prepared += 1
        size = len(self.content)
        offer = Offer(OfferState.READY, f"copy-{self.prepared}", size, size, "sum", self.position)
        offer = Offer(OfferState.REFUSED, why=self.refusal) if self.refusal else offer
        self._net.later(2_000, lambda: done(offer))

    def read(self, offset: int, length: int) -> bytes:
        return self.content[offset : offset + length]

    def remove(self) -> None:
        self.removed += 1


class Sink:
    def __init__(self) -> None:
        self.content = b""
        self.begun = self.discarded = 0
        self.wrong = ""
        self.full_at = 1 << 60

    def begin(self, offer: Offer) -> None:
        del offer
        self.begun += 1
        self.content = b""

    def write(self, piece: bytes) -> None:
        if len(self.content) >= self.full_at:
            raise SinkFailed("the disk is full")
        self.content += piece

    def finish(self, done: Callable[[str], None]) -> None:
        done(self.wrong)

    def discard(self) -> None:
        self.discarded += 1


CONTENT = bytes(range(256)) * 8_000  # eight pieces


class Pair:
    def __init__(self, loss: float = 0.0, refusal: str = "") -> None:
        self.net = Net(loss)
        self.source = Source(self.net, CONTENT, refusal)
        self.sink = Sink()
        self.arrived = 0
        self.holder = "a"
        self.giver = CopyGiver(self.net, NAMES, "a", self.source, Notes(), 0)
        self.taker = CopyTaker(self.net, NAMES, self.sink, lambda: self.holder, self._arrive, Notes(), 0)

    def _arrive(self) -> None:
        self.arrived += 1

    def run(self, ms: int) -> None:
        self.net.run(ms, self.giver, self.taker)


def test_a_copy_arrives_whole_over_a_wire_that_loses_much() -> None:
    pair = Pair(loss=0.3)
    pair.taker.begin(40)
    pair.run(1_000)
    assert "waits for a copy" in pair.taker.progress
    pair.run(60_000)
    assert (pair.arrived, pair.sink.content == CONTENT, pair.sink.begun) == (1, True, 1)
    assert pair.taker.progress == ""


def test_a_giver_that_dies_in_between_makes_it_begin_anew() -> None:
    pair = Pair()
    pair.taker.begin(40)
    while len(pair.sink.content) < 3 * PIECE_BYTES:
        pair.run(10)
    assert "%" in pair.taker.progress
    pair.giver = CopyGiver(pair.net, NAMES, "a", pair.source, Notes(), pair.net.now)  # knows nothing of the copy
    pair.run(30_000)
    assert (pair.arrived, pair.sink.content == CONTENT, pair.sink.begun) == (1, True, 2)


def test_a_seat_that_moves_in_between_is_asked_instead() -> None:
    pair = Pair()
    pair.taker.begin(40)
    while len(pair.sink.content) < 3 * PIECE_BYTES:
        pair.run(10)
    pair.net._heard.clear()  # its host is gone
    pair.holder = "b"
    CopyGiver(pair.net, NAMES, "b", pair.source, Notes(), pair.net.now)
    pair.run(40_000)
    assert (pair.arrived, pair.sink.content == CONTENT) == (1, True)


def test_nobody_is_asked_while_nobody_has_the_seat() -> None:
    pair = Pair()
    pair.holder = ""
    pair.taker.begin(40)
    pair.run(5_000)
    assert pair.source.prepared == 0
    pair.holder = "a"
    pair.run(10_000)
    assert pair.arrived == 1


@pytest.mark.parametrize(
    ("needed", "refusal", "wrong", "full_at", "said"),
    [
        (41, "", "", 1 << 60, "ends at record 40"),
        (40, "no room", "", 1 << 60, "no room"),
        (40, "", "its checksum is another", 1 << 60, "checksum"),
        (40, "", "", PIECE_BYTES, "disk is full"),
    ],
)
def test_what_cannot_be_used_is_told_and_tried_again(needed: int, refusal: str, wrong: str, full_at: int, said: str) -> None:
    pair = Pair(refusal=refusal)
    pair.sink.wrong, pair.sink.full_at = wrong, full_at
    pair.taker.begin(needed)
    pair.run(6_000)
    assert (pair.arrived, said in pair.taker.trouble) == (0, True)
    assert pair.sink.discarded
    pair.taker.stop()
    pair.source.refusal = pair.sink.wrong = ""
    pair.sink.full_at = 1 << 60
    pair.taker.begin(40)
    pair.run(20_000)
    assert (pair.arrived, pair.taker.trouble) == (1, "")


def test_what_was_prepared_is_removed_when_nobody_asks_any_more_and_when_something_is_erased() -> None:
    pair = Pair()
    pair.taker.begin(40)
    pair.run(10_000)
    assert pair.source.removed == 0
    pair.run(121_000)
    assert pair.source.removed == 1
    pair.taker.begin(40)
    pair.run(10_000)
    pair.giver.forget()
    assert (pair.source.removed, pair.arrived) == (2, 2)


def test_a_copy_that_is_too_old_by_now_is_made_again() -> None:
    pair = Pair()
    pair.taker.begin(40)
    pair.run(10_000)
    pair.source.position = 60  # the log has forgotten more meanwhile
    pair.taker.begin(55)
    pair.run(10_000)
    assert (pair.arrived, pair.source.prepared, pair.source.removed) == (2, 2, 1)


def test_whatever_comes_over_the_wire_breaks_nothing() -> None:
    pair = Pair()
    for payload in (b"", b"{", b"[]", b'{"copy": 3}', b'{"copy": "x", "offset": -5}', b'{"copy": "x", "offset": 99999999999}'):
        pair.net.ask(NAMES.ask_copy("a"), payload, lambda _message: None)
    pair.run(1_000)
    pair.taker.begin(40)
    pair.source.content = CONTENT + b"longer than it says"
    pair.run(2_600)
    pair.source.content = b""
    pair.run(10_000)
    assert pair.arrived <= 1
