"""The rest of a long queue: in the store, in order, read when its owner comes, and ended there where it has to end."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core import mailbox
from agent_relay.core.mailbox import Mailbox
from agent_relay.ports.store import BacklogRow, Batch, MessageQuery, MessageRow, Page
from tests.support.harness import HarnessClient, RelayHarness

KEPT = 4


@pytest.fixture(autouse=True)
def short_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "_KEPT", KEPT)


def away(count: int, **meta: Any) -> tuple[RelayHarness, HarnessClient, HarnessClient]:
    """Bob has gone, and so many messages of Alice wait for him."""
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    bob.drop()
    for number in range(count):
        alice.send("Bob", str(number), meta=meta or None)
    alice.take()
    return relay, alice, bob


def box_of(relay: RelayHarness, name: str = "bob") -> Mailbox:
    return relay.relay.registry.agents[name].mailbox


def back(relay: RelayHarness, client: HarnessClient, **options: Any) -> HarnessClient:
    return relay.connect(client.name, token=client.token, **options)


def read_all(relay: RelayHarness, client: HarnessClient) -> list[str]:
    """Acknowledges whatever comes, until nothing does."""
    bodies: list[str] = []
    while delivers := client.take("DELIVER"):
        for deliver in delivers:
            bodies.append(deliver["payload"]["body"])
            client.ack(deliver)
        relay.settle()
    return bodies


def test_only_the_beginning_of_a_long_queue_is_in_memory_and_all_of_it_arrives_in_order() -> None:
    relay, alice, bob = away(50)
    assert (box_of(relay).waiting, box_of(relay).here) == (50, KEPT)
    bob = back(relay, bob, max_inflight=3)
    alice.send("Bob", "last")
    assert box_of(relay).here <= 2 * KEPT
    assert read_all(relay, bob) == [*map(str, range(50)), "last"]
    relay.advance(1_000)
    assert box_of(relay).idle
    assert relay.store.open().waiting == []


def test_after_a_restart_nothing_is_read_before_somebody_comes() -> None:
    relay, _, bob = away(50)
    relay.restart()
    assert (box_of(relay).waiting, box_of(relay).here) == (50, 0)
    relay.advance(5_000)
    assert box_of(relay).here == 0
    assert read_all(relay, back(relay, bob)) == [*map(str, range(50))]


def test_what_was_settled_and_is_still_listed_goes_off_the_list_and_does_not_come_again() -> None:
    """A large batch may be cut off in between: the cursor was written, and the removal from the backlog was not."""
    relay, _, bob = away(KEPT)
    assert len(read_all(relay, bob := back(relay, bob))) == KEPT
    relay.advance(1_000)
    page: list[MessageRow] = []
    relay.store.find(MessageQuery(limit=1), lambda found: page.extend(found.messages if isinstance(found, Page) else ()))
    relay.settle()
    row = page[0]
    listed = BacklogRow("Bob", row.number, row.recipients[0][1], row.expires_at, len(row.tail))
    relay.store.write(Batch(backlog_added=[listed]), lambda _error: None)
    relay.settle()
    relay.restart()
    assert box_of(relay).waiting == 1
    assert read_all(relay, back(relay, bob)) == []
    relay.advance(1_000)
    assert box_of(relay).waiting == 0
    assert relay.store.open().waiting == []


def test_the_queue_is_as_full_as_it_is_wherever_it_waits() -> None:
    relay = RelayHarness(queue_capacity=10)
    alice = relay.connect("Alice")
    relay.connect("Bob").drop()
    for _ in range(11):
        alice.send("Bob")
    assert alice.payload("NACK")["code"] == "QUEUE_FULL"
    relay.restart()
    alice = back(relay, alice)
    alice.send("Bob")
    assert alice.payload("NACK")["code"] == "QUEUE_FULL"


def test_what_expires_there_is_a_dead_letter_and_its_sender_learns_it() -> None:
    relay, alice, bob = away(10, ttl_ms=5_000)
    relay.restart()
    alice = back(relay, alice)
    relay.advance(7_000)
    assert [nack["payload"]["code"] for nack in alice.take("NACK")] == ["DELIVERY_TIMEOUT"] * 10
    assert box_of(relay).idle
    assert not back(relay, bob).take("DELIVER")


def test_what_expires_there_while_it_is_being_read_ends_once() -> None:
    relay, alice, bob = away(20, ttl_ms=5_000)
    relay.advance(4_900)
    relay.store.hold()
    bob = relay.open()
    bob.hello("Bob", owner_token="of-the-owner")
    relay.advance(2_000)
    relay.store.release()
    relay.settle()
    relay.advance(2_000)
    assert len(alice.take("NACK")) == 20
    assert box_of(relay).waiting == 0


def test_what_is_left_there_while_a_page_comes_back_empty_is_not_forgotten() -> None:
    """All that was there when the page was wanted has expired meanwhile, and the next one is not yet in the store."""
    relay, _, bob = away(1, ttl_ms=1_000)
    relay.restart()
    alice, agent = relay.connect("Alice"), relay.relay.registry.agents["bob"]
    ledger, pages = relay.relay.ledger, list[Any]()
    relay.store.hold()
    relay.pass_by(2_000)
    relay.turn(lambda: ledger._rest.expire(ledger._bury_all_expired))
    alice.send("Bob", "0")
    assert relay.store.step_held()
    relay.turn(lambda: ledger._rest.read(agent, pages.append))
    for number in range(1, KEPT + 1):
        alice.send("Bob", str(number))
    while not pages:
        assert relay.store.step_held()
        relay.turn(lambda: None)
    assert (pages, box_of(relay).rest) == ([[]], 1)
    relay.store.release()
    relay.settle()
    assert read_all(relay, back(relay, bob)) == [str(number) for number in range(KEPT + 1)]


def test_a_resume_acknowledges_what_waits_there_and_only_that() -> None:
    relay, alice, bob = away(20, requires_ack=True)
    relay.restart()
    alice, again = back(relay, alice), relay.open()
    again.resume("Bob", bob.token, [{"topic": "", "peer": "Alice", "last_seq": 7}])
    (sync,) = again.take("SYNC")
    assert sync["payload"]["streams"][0]["last_seq"] == 7
    assert again.bodies() == [*map(str, range(7, 20))]
    relay.advance(200)
    assert [receipt["seq"] for receipt in alice.delivered()] == [1, 2, 3, 4, 5, 6, 7]


def test_a_resume_does_not_acknowledge_what_has_expired_there() -> None:
    relay, alice, bob = away(6, requires_ack=True, ttl_ms=1_000)
    relay.restart(wall_ms_later=2_000)
    alice, again = back(relay, alice), relay.open()
    again.resume("Bob", bob.token, [{"topic": "", "peer": "Alice", "last_seq": 6}])
    relay.advance(2_000)
    assert not alice.delivered()
    assert len(alice.take("NACK")) == 6


def test_a_page_that_cannot_be_read_is_asked_for_again() -> None:
    relay, _, bob = away(10)
    relay.restart()
    bob = back(relay, bob)
    bob.drop()
    relay.store.fail_next_read(3)
    again = relay.open()
    again.hello("Bob", token=bob.token)
    relay.advance(500)
    assert again.bodies() == [*map(str, range(10))]


def test_large_messages_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "_KEPT", 2_000)
    monkeypatch.setattr(mailbox, "_KEPT_BYTES", 10_000)
    relay = RelayHarness()
    alice = relay.connect("Alice")
    bob = relay.connect("Bob")
    bob.drop()
    for number in range(30):
        alice.send("Bob", f"{number} " + "x" * 1_000)
    relay.restart()
    assert box_of(relay).page == 4
    assert [body.split()[0] for body in read_all(relay, back(relay, bob, max_inflight=2))] == [*map(str, range(30))]


def test_what_an_erased_sender_left_there_is_erased() -> None:
    relay, alice, bob = away(10)
    relay.connect("Carol").send("Bob", "of Carol")
    relay.restart()
    observer = relay.open()
    observer.hello("owner", mode="observer")
    observer.say("CONTROL", {"command": "count_data", "agent": "Alice"})
    assert observer.payload("ACK")["responseData"]["undelivered_from"] == 10
    observer.say("CONTROL", {"command": "forget", "agent": "Alice"})
    assert observer.payload("ACK")["responseData"]["undelivered_from"] == 10
    assert back(relay, bob).bodies() == ["of Carol"]
    assert alice


def test_attempts_go_on_counting_over_a_restart() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob")
    relay.advance(12_000)
    assert [frame["delivery"]["attempt"] for frame in bob.take("DELIVER")] == [1, 2, 3]
    relay.restart()
    assert [frame["delivery"]["attempt"] for frame in back(relay, bob).take("DELIVER")] == [4]


def test_an_id_used_before_the_restart_is_known_again() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", "once", id="a-1")
    (first,) = alice.stored()
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(1_000)
    relay.restart()
    alice, bob = back(relay, alice), back(relay, bob)
    alice.send("Bob", "once", id="a-1")
    (second,) = alice.stored()
    assert (second["message_id"], second["duplicate"]) == (first["message_id"], True)
    assert not bob.take("DELIVER")


def test_ids_that_cannot_be_read_refuse_the_session_for_now() -> None:
    relay = RelayHarness()
    alice = relay.connect("Alice")
    alice.send("Alice", "x")
    relay.restart()
    relay.store.fail_next_read()
    again = relay.open()
    again.hello("Alice", token=alice.token)
    assert again.payload("ERROR")["code"] == "SERVICE_UNAVAILABLE"
    assert back(relay, alice).welcome
