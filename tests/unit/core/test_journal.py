"""What is written behind the messages: soon enough, gathered, and again when it could not be written."""

from __future__ import annotations

import pytest

from agent_relay.ports.store import Batch, StreamRow, TrailRow
from agent_relay.protocol.ulid import number_of
from tests.support.harness import RelayHarness, connect_pair


def cursor(relay: RelayHarness) -> StreamRow:
    return next(row for batch in reversed(relay.store.batches) for row in batch.streams if row.recipient == "Bob")


def trail(relay: RelayHarness) -> list[TrailRow]:
    return [row for batch in relay.store.batches for row in batch.trail]


def test_an_acknowledgement_is_durable_within_200_ms() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob")
    relay.advance(1_000)
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(150)
    assert cursor(relay).done_seq == 1


def test_a_busy_stream_is_one_row_a_write_and_one_step_of_the_trail() -> None:
    relay, alice, bob = connect_pair()
    relay.advance(1_000)
    before = len(relay.store.batches)
    alice.say_frames(*(alice.message("Bob") for _ in range(100)))
    bob.say_frames(*(bob.frame("ACK", {"ack_id": deliver["id"]}) for deliver in bob.take("DELIVER")))
    relay.advance(1_000)
    rows = [row for batch in relay.store.batches[before:] for row in batch.streams]
    assert len(rows) <= 2
    assert (cursor(relay).done_seq, cursor(relay).wire_seq, cursor(relay).last_seq) == (100, 100, 100)
    assert [(step.event, step.first_seq, step.last_seq) for step in trail(relay)] == [
        ("sent", 1, 100),
        ("acknowledged", 1, 100),
    ]


def test_the_trail_tells_what_is_out_of_the_ordinary_one_by_one() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob")
    relay.advance(5_000)
    bob.nack(bob.take("DELIVER")[-1], "AGENT_BUSY", retry_after_ms=10)
    relay.advance(50)
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(200)
    assert [(step.event, step.detail) for step in trail(relay)] == [
        ("sent", ""),
        ("resent", "attempt 2"),
        ("busy", "again in 10 ms"),
        ("resent", "attempt 3"),
        ("acknowledged", ""),
    ]


def test_silence_writes_nothing() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob")
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(5_000)
    before = len(relay.store.batches)
    relay.advance(60_000)
    assert len(relay.store.batches) == before


def test_news_that_could_not_be_written_are_written_later_in_their_order() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", "1")
    alice.send("Bob", "2")
    relay.advance(200)
    first, second = bob.take("DELIVER")
    relay.store.fail_next(2)
    bob.ack(first)
    relay.advance(150)
    bob.nack(second, "REJECTED")
    relay.advance(1_000)
    assert cursor(relay).done_seq == 2
    assert [(step.event, step.first_seq) for step in trail(relay)][-2:] == [("acknowledged", 1), ("rejected", 2)]
    assert alice.take_one("NACK")


def test_a_message_nobody_settled_goes_to_the_backlog_and_leaves_it() -> None:
    relay, alice, _bob = connect_pair()
    relay.connect("Carol").drop()
    alice.send("Carol", "old")
    relay.advance(3_000)
    alice.send("Bob", "young")
    relay.advance(200)
    assert [(row.recipient, row.seq) for batch in relay.store.batches for row in batch.backlog_added] == [("Carol", 1)]
    carol = relay.connect("Carol")
    carol.ack(carol.take_one("DELIVER"))
    relay.advance(200)
    assert [row.recipient for row in relay.store.open().waiting] == ["Bob"]


def test_a_message_settled_while_its_backlog_entry_could_not_be_written_does_not_stay_there() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    alice.send("Carol", "old")
    alice.send("Bob", "makes news")
    relay.advance(3_000)
    relay.store.hold()
    bob.ack(bob.take_one("DELIVER"))  # the batch with the new entry is under way
    assert relay.store.waiting == 1
    carol.ack(carol.take_one("DELIVER"))
    relay.store.fail_next()
    relay.store.release()
    relay.settle()
    relay.advance(5_000)
    assert relay.store.open().waiting == []


def test_the_checkpoint_follows_so_that_a_restart_has_little_to_read() -> None:
    relay, alice, bob = connect_pair()
    for _ in range(50):
        alice.send("Bob")
        bob.ack(bob.take_one("DELIVER"))
    relay.advance(200)
    numbers = [row.number for batch in relay.store.batches for row in batch.messages]
    assert max(batch.checkpoint or 0 for batch in relay.store.batches) == numbers[-1]
    assert relay.store.open().waiting == []


def test_whoever_waits_for_a_write_does_not_wait_for_the_next_round() -> None:
    _relay, alice, bob = connect_pair()
    alice.send("Bob")
    alice.take()
    bob.nack(bob.take_one("DELIVER"), "REJECTED")  # no time passes: the refusal is written, and then told, at once
    assert alice.take_one("NACK")


def documents(relay: RelayHarness) -> list[dict[str, bytes]]:
    return [batch.documents for batch in relay.store.batches if batch.documents]


def test_documents_are_gathered_and_the_last_of_a_name_counts() -> None:
    relay = RelayHarness()
    relay.advance(1_000)
    for content in (b"1", b"2", b"3"):
        relay.relay.keep_document("count", content)
    relay.relay.keep_document("other", b"x")
    relay.advance(200)
    assert documents(relay) == [{"count": b"3", "other": b"x"}]


def test_a_document_that_somebody_waits_for_is_written_with_the_turn() -> None:
    relay = RelayHarness()
    told: list[str] = []
    relay.relay.keep_document("count", b"1", lambda: told.append("durable"))
    relay.relay.turn_ended()
    assert told == []
    relay.settle()
    assert (documents(relay), told) == ([{"count": b"1"}], ["durable"])


def test_documents_that_could_not_be_written_are_written_later_unless_there_are_newer_ones() -> None:
    relay = RelayHarness()
    relay.advance(1_000)
    told: list[str] = []
    relay.store.fail_next()
    relay.relay.keep_document("old", b"1", lambda: told.append("old"))
    relay.relay.keep_document("same", b"1")
    relay.relay.turn_ended()
    relay.settle()
    assert (documents(relay), told) == ([], [])
    relay.relay.keep_document("same", b"2")
    relay.advance(1_000)
    assert (documents(relay), told) == ([{"old": b"1", "same": b"2"}], ["old"])


def test_what_became_of_a_dead_letter_a_moment_ago_is_known_before_the_store_says_it() -> None:
    relay, alice, bob = connect_pair()
    journal = relay.relay.journal
    bob.drop()
    alice.send("Bob", meta={"ttl_ms": 100})
    message_id = alice.payload("ACK")["message_id"]
    number = number_of(message_id.removeprefix("msg_"))
    assert not journal.is_dead(number, "bob", stored=False)
    relay.advance(200)
    assert journal.is_dead(number, "bob", stored=False)
    journal.revived(number, "Bob")
    assert not journal.is_dead(number, "bob", stored=True)
    assert journal.dead_letters == 0
    journal.revived(number, "Bob")
    assert journal.dead_letters == 0  # it was none any more


def test_changes_of_dead_letters_are_not_remembered_for_ever_but_until_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_relay.core.journal._LATELY", 2)
    relay, _alice, _bob = connect_pair()
    journal = relay.relay.journal
    for number in range(5):
        journal.revived(number, "Bob")
    journal.fill(Batch())
    assert not any(journal.is_dead(number, "bob", stored=True) for number in range(5))  # they are being written only now
    journal.revived(5, "Bob")
    journal.fill(Batch())
    assert [journal.is_dead(number, "bob", stored=True) for number in range(6)] == [True, True, True, False, False, False]
