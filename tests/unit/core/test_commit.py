"""Group commit: what arrived together is one batch, one batch at a time, and a failed one leaves no trace."""

from __future__ import annotations

from tests.support.harness import connect_pair


def test_everything_of_one_turn_is_one_batch() -> None:
    relay, alice, _ = connect_pair()
    before = len(relay.store.batches)
    alice.say_frames(*(alice.message("Bob", str(number)) for number in range(50)))
    assert [len(batch.messages) for batch in relay.store.batches[before:]] == [50]


def test_what_arrives_during_a_write_is_the_next_batch() -> None:
    relay, alice, _ = connect_pair()
    before = len(relay.store.batches)
    relay.store.hold()
    for number in range(10):
        alice.send("Bob", str(number))
    assert relay.store.waiting == 1
    relay.store.release()
    relay.settle()
    assert [len(batch.messages) for batch in relay.store.batches[before:]] == [1, 9]


def test_nothing_is_answered_or_delivered_before_it_is_durable() -> None:
    relay, alice, bob = connect_pair()
    relay.store.hold()
    alice.send("Bob")
    relay.advance(60_000)
    assert not alice.take("ACK", "NACK")
    assert not bob.take("DELIVER")
    relay.store.release()
    relay.settle()
    assert len(alice.stored()) == 1
    assert len(bob.bodies()) == 1


def test_a_failed_batch_refuses_every_message_in_it_and_gives_their_numbers_back() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", "before")
    relay.store.hold()
    alice.send("Bob", "first of the failing batch")
    relay.store.fail_next()
    relay.store.release()
    relay.settle()
    refused = [alice.message("Bob", str(number)) for number in range(3)]
    relay.store.fail_next()
    alice.say_frames(*refused)
    refusals = [frame["payload"] for frame in alice.take("NACK")]
    assert [refusal["nack_id"] for refusal in refusals[1:]] == [frame["id"] for frame in refused]
    for refusal in refusals:
        assert (refusal["code"], refusal["retryable"]) == ("SERVICE_UNAVAILABLE", True)
        assert refusal["retry_after_ms"] > 0
    alice.send("Bob", "after")
    delivers = bob.take("DELIVER")
    assert [(d["payload"]["body"], d["delivery"]["seq"], d["delivery"].get("prev_seq")) for d in delivers] == [
        ("before", 1, None),
        ("after", 2, None),
    ]


def test_a_failed_batch_gives_back_the_numbers_of_every_recipient_and_topic() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    for client in (bob, carol):
        client.say("SUBSCRIBE", {"topic": "news"})
    frames = [alice.message("*", "1"), alice.message(["Bob", "Carol"], "2"), alice.message(topic="news", body="3")]
    relay.store.fail_next()
    alice.say_frames(*frames)
    alice.say_frames(*frames)
    for client in (bob, carol):
        delivers = client.take("DELIVER")
        assert [(d.get("topic", ""), d["delivery"]["seq"]) for d in delivers] == [("", 1), ("", 2), ("news", 1)]


def test_ids_of_a_failed_batch_are_not_used_again() -> None:
    """They may have been on the disk for a moment: a number that was once given out never names another message."""
    relay, alice, _ = connect_pair()
    relay.store.hold()
    alice.send("Bob")
    relay.store.fail_next()
    relay.store.release()
    relay.settle()
    alice.send("Bob")
    numbers = [row.number for batch in relay.store.batches for row in batch.messages]
    assert len(set(numbers)) == len(numbers)


def test_what_waited_behind_a_failed_batch_is_written_next() -> None:
    relay, alice, bob = connect_pair()
    relay.store.hold()
    alice.send("Bob", "fails")
    alice.send("Bob", "works")
    relay.store.fail_next()
    relay.store.release()
    relay.settle()
    assert len(alice.take("NACK")) == 1
    assert len(alice.stored()) == 1
    (deliver,) = bob.take("DELIVER")
    assert (deliver["payload"]["body"], deliver["delivery"]["seq"]) == ("works", 1)


def test_changes_of_a_failed_batch_are_undone_last_one_first() -> None:
    relay, alice, bob = connect_pair()
    bob.say("SUBSCRIBE", {"topic": "kept"})
    bob.take()
    relay.store.hold()
    bob.say("SUBSCRIBE", {"topic": "other"})
    frames = [bob.frame(kind, {"topic": "kept"}) for kind in ("UNSUBSCRIBE", "SUBSCRIBE", "UNSUBSCRIBE")]
    bob.say_frames(*frames)
    relay.store.fail_next(2)
    relay.store.release()
    relay.settle()
    assert len(bob.take("NACK")) == 4
    alice.send(topic="kept")
    assert len(bob.bodies()) == 1


def test_a_store_that_fails_is_in_the_log_without_the_words_of_anybody() -> None:
    relay, alice, _ = connect_pair()
    relay.store.fail_next()
    alice.send("Bob", "a secret")
    (note,) = relay.log.named("store_failed")
    assert note == {"error": "the disk is full", "messages": 1, "changes": 0}


def test_the_core_knows_when_nothing_is_on_its_way() -> None:
    relay, alice, _ = connect_pair()
    assert relay.relay.settled
    relay.store.hold()
    alice.send("Bob")
    assert not relay.relay.settled
    relay.store.release()
    relay.settle()
    assert relay.relay.settled


def test_while_the_store_is_in_trouble_what_gathers_is_refused_and_the_batch_under_way_waits() -> None:
    relay, alice, bob = connect_pair()
    relay.store.hold()
    in_doubt = alice.send("Bob", "in doubt")
    gathered = alice.send("Bob", "behind it")
    relay.store.trouble = "the disk failed"
    relay.advance(100)
    (refusal,) = [frame["payload"] for frame in alice.take("NACK")]
    assert (refusal["nack_id"], refusal["code"], refusal["retryable"]) == (gathered, "SERVICE_UNAVAILABLE", True)
    assert "the disk failed" in refusal["message"]
    later = alice.send("Bob", "later")
    assert [frame["payload"]["nack_id"] for frame in alice.take("NACK")] == [later]
    alice.say("SUBSCRIBE", {"topic": "news"})
    assert [frame["payload"]["code"] for frame in alice.take("NACK")] == ["SERVICE_UNAVAILABLE"]
    assert not alice.take("ACK")
    relay.store.trouble = None
    relay.store.release()
    relay.settle()
    assert [payload["ack_id"] for payload in alice.stored()] == [in_doubt]
    alice.send("Bob", "after")
    delivers = bob.take("DELIVER")
    assert [(d["payload"]["body"], d["delivery"]["seq"]) for d in delivers] == [("in doubt", 1), ("after", 2)]
