"""Questions: answered by an ACK or by a message, timed out, cancelled, and each of it exactly once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import Frame, HarnessClient, connect_pair


def ask(alice: HarnessClient, to: Any = "Bob", correlation: str = "q", timeout_ms: int = 1_000, **meta: Any) -> str:
    sync = {"correlationId": correlation, "timeoutMs": timeout_ms, "blocking": True}
    return alice.send(to, "ready?", meta={"sync": sync, **meta})


def outcome(alice: HarnessClient) -> list[Frame]:
    """Everything Alice was told beyond `stored`."""
    alice.stored()
    return alice.take("ACK", "NACK")


def test_an_ack_with_the_correlation_is_the_answer_and_the_only_one() -> None:
    relay, alice, bob = connect_pair()
    sent = ask(alice)
    (stored,) = alice.stored()
    deliver = bob.take_one("DELIVER")
    bob.ack(deliver, correlationId="q", response="yes", responseData={"n": [1, None]})
    assert alice.payload("ACK") == {
        "ack_id": sent, "stage": "delivered", "message_id": stored["message_id"], "by": "Bob", "seq": 1,
        "correlationId": "q", "response": "yes", "responseData": {"n": [1, None]},
    }  # fmt: skip
    bob.ack(deliver, correlationId="q", responseData={"late": True})
    relay.advance(60_000)
    assert not alice.take()


def test_an_answer_may_come_after_the_delivery_was_acknowledged() -> None:
    _, alice, bob = connect_pair()
    ask(alice)
    deliver = bob.take_one("DELIVER")
    bob.ack(deliver)
    assert not outcome(alice)
    bob.ack(deliver, correlationId="q", responseData=1)
    assert [frame["payload"]["responseData"] for frame in outcome(alice)] == [1]


@pytest.mark.parametrize("data", [None, {"answer": 42}])
def test_a_reply_is_the_answer_and_is_delivered_as_well(data: dict[str, int] | None) -> None:
    relay, alice, bob = connect_pair()
    ask(alice)
    message_id = bob.take_one("DELIVER")["delivery"]["message_id"]
    bob.send("Alice", "yes", meta={"reply_to": message_id}, payload={} if data is None else {"data": data})
    (reply,) = bob.stored()
    (frame,) = outcome(alice)
    assert frame["payload"]["response_message_id"] == reply["message_id"]
    assert frame["payload"].get("responseData") == data
    assert alice.bodies() == ["yes"]
    relay.advance(60_000)
    assert not outcome(alice)


def test_a_second_reply_is_a_plain_message() -> None:
    _, alice, bob = connect_pair()
    ask(alice)
    message_id = bob.take_one("DELIVER")["delivery"]["message_id"]
    for body in ("first", "second"):
        bob.send("Alice", body, meta={"reply_to": message_id})
    assert len(outcome(alice)) == 1
    assert alice.bodies() == ["first", "second"]


def test_no_answer_is_a_timeout_told_once_and_to_the_millisecond() -> None:
    relay, alice, bob = connect_pair()
    sent = ask(alice)
    (stored,) = alice.stored()
    bob.ack(bob.take_one("DELIVER"))  # received, and that is all
    relay.advance(999)
    assert not alice.take()
    relay.advance(1)
    refusal = alice.payload("NACK")
    assert (refusal["code"], refusal["nack_id"], refusal["correlationId"]) == ("DELIVERY_TIMEOUT", sent, "q")
    assert (refusal["waited_ms"], refusal["message_id"]) == (1_000, stored["message_id"])
    relay.advance(60_000)
    assert not alice.take()


def test_a_late_answer_is_an_ordinary_message_or_nothing() -> None:
    relay, alice, bob = connect_pair()
    ask(alice)
    deliver = bob.take_one("DELIVER")
    relay.advance(1_000)
    outcome(alice)
    bob.ack(deliver, correlationId="q", responseData={"late": True})
    bob.send("Alice", "sorry, late", meta={"reply_to": deliver["delivery"]["message_id"]})
    assert not outcome(alice)
    assert alice.bodies() == ["sorry, late"]


def test_cancel_ends_the_wait_and_a_later_answer_is_one_to_a_plain_message() -> None:
    relay, alice, bob = connect_pair()
    ask(alice, requires_ack=True)
    alice.take()
    request = alice.say("CANCEL", {"correlationId": "q"})
    assert alice.payload("ACK") == {"ack_id": request, "stage": "cancelled", "correlationId": "q"}
    bob.ack(bob.take_one("DELIVER"), correlationId="q", responseData=1)
    (receipt,) = alice.delivered()
    assert (receipt["by"], receipt["correlationId"], receipt["responseData"]) == ("Bob", "q", 1)
    relay.advance(60_000)
    assert not alice.take()


def test_a_cancelled_question_without_a_receipt_says_nothing_more() -> None:
    relay, alice, bob = connect_pair()
    ask(alice)
    alice.say("CANCEL", {"correlationId": "q"})
    alice.take()
    bob.ack(bob.take_one("DELIVER"), correlationId="q", responseData=1)
    relay.advance(60_000)
    assert not alice.take()


def test_nobody_cancels_or_answers_for_another() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    ask(alice)
    deliver = bob.take_one("DELIVER")
    carol.say("CANCEL", {"correlationId": "q"})
    carol.say("ACK", {"ack_id": deliver["id"], "correlationId": "q", "responseData": "forged"})
    carol.send("Alice", "forged", meta={"reply_to": deliver["delivery"]["message_id"]})
    assert not outcome(alice)
    bob.ack(deliver, correlationId="q", responseData="genuine")
    assert [frame["payload"]["responseData"] for frame in outcome(alice)] == ["genuine"]


def test_two_askers_may_use_the_same_correlation() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    ask(alice)
    ask(carol)
    first, second = bob.take("DELIVER")
    bob.ack(second, correlationId="q", responseData="for Carol")
    bob.ack(first, correlationId="q", responseData="for Alice")
    assert [frame["payload"]["responseData"] for frame in outcome(alice)] == ["for Alice"]
    assert [frame["payload"]["responseData"] for frame in outcome(carol)] == ["for Carol"]


def test_the_first_of_several_answers_counts_and_the_others_are_receipts() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    ask(alice, ["Bob", "Carol"], requires_ack=True)
    carol.ack(carol.take_one("DELIVER"), correlationId="q", responseData=1)
    bob.ack(bob.take_one("DELIVER"))
    assert [(r["by"], r.get("correlationId")) for r in alice.delivered()] == [("Carol", "q"), ("Bob", None)]
    relay.advance(60_000)
    assert not outcome(alice)


def test_an_answer_finds_its_asker_after_a_reconnect() -> None:
    relay, alice, bob = connect_pair()
    ask(alice, timeout_ms=60_000)
    alice.drop()
    bob.ack(bob.take_one("DELIVER"), correlationId="q", responseData=1)
    again = relay.connect("Alice", token=alice.token)
    assert [receipt["responseData"] for receipt in again.delivered()] == [1]


def test_a_question_asked_again_after_a_restart_still_gets_its_answer() -> None:
    relay, alice, bob = connect_pair()
    sync = {"correlationId": "q", "timeoutMs": 60_000, "blocking": True}
    alice.send("Bob", "ready?", id="Q", meta={"sync": sync})
    relay.restart()
    alice, bob = relay.connect("Alice", token=alice.token), relay.connect("Bob", token=bob.token)
    alice.send("Bob", "ready?", id="Q", meta={"sync": sync})
    bob.ack(bob.take_one("DELIVER"), correlationId="q", responseData=1)
    (receipt,) = alice.delivered()
    assert (receipt["ack_id"], receipt["responseData"]) == ("Q", 1)


def test_a_blocking_message_needs_a_correlation() -> None:
    _, alice, bob = connect_pair()
    alice.send("Bob", meta={"sync": {"blocking": True}})
    refusal = alice.payload("NACK")
    assert (refusal["code"], refusal["details"]["field"]) == ("INVALID_FORMAT", "payload_meta.sync.correlationId")
    assert not bob.frames


def test_a_question_that_was_never_stored_is_not_waited_for() -> None:
    relay, alice, _ = connect_pair()
    relay.store.fail_next()
    ask(alice)
    assert alice.payload("NACK")["code"] == "SERVICE_UNAVAILABLE"
    relay.advance(60_000)
    assert not alice.take()


def test_the_wait_begins_when_the_question_is_durable() -> None:
    relay, alice, _ = connect_pair()
    relay.store.hold()
    ask(alice)
    relay.advance(5_000)
    relay.store.release()
    relay.settle()
    relay.advance(950)
    assert not outcome(alice)
    relay.advance(100)
    assert [frame["type"] for frame in outcome(alice)] == ["NACK"]
