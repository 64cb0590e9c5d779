"""Lanes: a priority overtakes other streams only, and any two broadcasts keep their order for everyone."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.core.agents import Agent
from agent_relay.core.mailbox import NEVER, Mailbox
from tests.support.harness import RelayHarness

SENDERS = ("Ann", "Bea", "Cyd")


@dataclass(frozen=True)
class Push:
    sender: str
    topic: str
    priority: int
    shared: bool


PUSH = st.builds(Push, st.sampled_from(SENDERS), st.sampled_from(["", "news"]), st.integers(0, 9), st.booleans())
ACTION = st.one_of(PUSH, PUSH, st.just("pop"), st.just("remove"), st.just("reconnect"))


def make_delivery(number: int, push: Push, recipient: Agent, senders: dict[str, Agent], *, expires: int = NEVER) -> Any:
    """As much of a delivery as a mailbox looks at."""
    stream = recipient.stream_from(senders[push.sender], push.topic)
    row = SimpleNamespace(number=number, priority=push.priority, tail=b"x" * number, sender=push.sender)
    message = SimpleNamespace(row=row, shared=push.shared, expires=expires)
    return SimpleNamespace(message=message, stream=stream, id=f"d_{number}", recipient=recipient)


class Reference:
    """The rule, said plainly: one may go if no earlier waiting one is of its stream, nor, for a broadcast, a broadcast."""

    def __init__(self) -> None:
        self.waiting: list[Any] = []

    def may_go(self, delivery: Any) -> bool:
        for other in self.waiting:
            if other is delivery:
                return True
            if other.stream is delivery.stream or (other.message.shared and delivery.message.shared):
                return False
        raise AssertionError("it does not wait at all")


@settings(max_examples=300, deadline=None)
@given(st.lists(ACTION, max_size=60), st.randoms(use_true_random=False))
def test_neither_a_stream_nor_the_broadcasts_ever_change_their_order(actions: list[Push | str], random: Any) -> None:
    recipient, senders = Agent("Bob", 0, 0, 10), {name: Agent(name, 0, 0, 10) for name in SENDERS}
    box, reference, number = recipient.mailbox, Reference(), 0
    for action in actions:
        if isinstance(action, Push):
            number += 1
            delivery = make_delivery(number, action, recipient, senders)
            box.push(delivery)
            reference.waiting.append(delivery)
        elif reference.waiting and action == "pop":
            delivery = box.pop()
            assert reference.may_go(delivery)
            reference.waiting.remove(delivery)
        elif reference.waiting and action == "remove":  # it expired
            delivery = random.choice(reference.waiting)
            assert box.take(lambda one, chosen=delivery: one is chosen) == [delivery]
            reference.waiting.remove(delivery)
        elif action == "reconnect":
            taken = box.take_all()
            assert taken == sorted(reference.waiting, key=lambda one: one.message.row.number)
            for delivery in taken:
                box.push(delivery)
        assert box.waiting == len(reference.waiting)
        assert box.held_bytes == sum(len(one.message.row.tail) for one in reference.waiting)
        assert sorted(one.id for one in box.all_waiting()) == sorted(one.id for one in reference.waiting)
        assert all(stream.waiting >= 0 for stream in recipient.streams.values())
    while reference.waiting:
        delivery = box.pop()
        assert reference.may_go(delivery)
        reference.waiting.remove(delivery)
    assert box.idle
    assert not box.lanes


def test_a_higher_priority_of_another_stream_goes_first() -> None:
    recipient, senders = Agent("Bob", 0, 0, 10), {name: Agent(name, 0, 0, 10) for name in SENDERS}
    for number, push in enumerate((Push("Ann", "", 5, False), Push("Bea", "", 9, False), Push("Cyd", "", 0, False)), 1):
        recipient.mailbox.push(make_delivery(number, push, recipient, senders))
    assert [recipient.mailbox.pop().message.row.sender for _ in range(3)] == ["Cyd", "Ann", "Bea"]


def test_an_empty_queue_starts_without_a_memory_of_lanes() -> None:
    recipient, senders = Agent("Bob", 0, 0, 10), {name: Agent(name, 0, 0, 10) for name in SENDERS}
    box = recipient.mailbox
    box.push(make_delivery(1, Push("Ann", "", 9, True), recipient, senders))
    box.pop()
    box.push(make_delivery(2, Push("Bea", "", 5, False), recipient, senders))
    box.push(make_delivery(3, Push("Ann", "", 0, True), recipient, senders))
    assert box.pop().message.row.sender == "Ann"


def test_the_next_expiry_is_the_earliest() -> None:
    recipient, senders = Agent("Bob", 0, 0, 10), {name: Agent(name, 0, 0, 10) for name in SENDERS}
    box = recipient.mailbox
    assert Mailbox().next_expiry == NEVER
    for number, expires in enumerate((900, 300, 600), 1):
        box.push(make_delivery(number, Push("Ann", "", 5, False), recipient, senders, expires=expires))
    assert box.next_expiry == 300


# --- the same through the whole core ---------------------------------------------------------------------------------

SEND = st.tuples(st.sampled_from(SENDERS), st.sampled_from(["Bob", "*", "Dan"]), st.integers(0, 9))


@settings(max_examples=60, deadline=None)
@given(st.lists(SEND, min_size=2, max_size=40), st.integers(1, 4), st.lists(st.integers(0, 5), max_size=30))
def test_every_recipient_sees_streams_in_order_and_broadcasts_in_the_same_order(
    sends: list[tuple[str, str, int]], window: int, pauses: list[int]
) -> None:
    relay = RelayHarness()
    senders = {name: relay.connect(name) for name in SENDERS}
    readers = [relay.connect("Bob", max_inflight=window), relay.connect("Dan", max_inflight=1)]
    seen: dict[str, list[tuple[str, int, str]]] = {reader.name: [] for reader in readers}

    def read() -> bool:
        found = False
        for reader in readers:
            arrived = reader.take("DELIVER")
            assert len(arrived) <= window
            for deliver in arrived:
                found = True
                seen[reader.name].append((deliver["from"], deliver["delivery"]["seq"], deliver["payload"]["body"]))
                reader.ack(deliver)
        return found

    pause = iter(pauses)
    for number, (sender, to, priority) in enumerate(sends):
        senders[sender].send(to, f"{to}{number}", meta={"priority": priority})
        if next(pause, 1) == 0:
            read()
    while read():
        pass
    for arrived in seen.values():
        for sender in SENDERS:
            seqs = [seq for name, seq, _ in arrived if name == sender]
            assert seqs == list(range(1, len(seqs) + 1))
    broadcasts = [[body for _, _, body in arrived if body.startswith("*")] for arrived in seen.values()]
    assert broadcasts[0] == broadcasts[1]
    assert len(broadcasts[0]) == sum(to == "*" for _, to, _ in sends)
