"""Wire contract, section 5: questions that wait for an answer, and CANCEL."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.testing.raw_client import RawClient, fresh_id

from .relay import Relay, bodies


def question(correlation: str, timeout_ms: int = 30_000, **more: Any) -> dict[str, Any]:
    return {"sync": {"correlationId": correlation, "timeoutMs": timeout_ms, "blocking": True}, **more}


def ask(client: RawClient, to: str, correlation: str, timeout_ms: int = 30_000) -> tuple[str, str]:
    """Sends a blocking question; returns the SEND's id and the message's."""
    request = client.send(to, "ready?", meta=question(correlation, timeout_ms))
    return request, client.stored(request)["message_id"]


@pytest.fixture
def correlation() -> str:
    return fresh_id()


def test_an_ack_with_the_correlation_id_is_the_answer(relay: Relay, correlation: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request, message_id = ask(alice, bob.name, correlation)
    deliver = bob.expect("DELIVER")
    assert deliver["payload_meta"]["sync"]["correlationId"] == correlation
    alice.expect_none("ACK", "NACK")
    bob.ack(deliver, correlationId=correlation, response="yes", responseData={"when": "now"})
    answer = alice.delivered(request)
    assert (answer["correlationId"], answer["response"], answer["responseData"]) == (correlation, "yes", {"when": "now"})
    assert (answer["by"], answer["message_id"]) == (bob.name, message_id)
    alice.expect_none("ACK", "NACK")


def test_a_reply_is_the_answer_and_is_delivered_as_well(relay: Relay, correlation: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request, message_id = ask(alice, bob.name, correlation)
    bob.deliveries(1)
    reply = bob.send_stored(alice.name, "yes", meta={"reply_to": message_id}, payload={"data": {"when": "now"}})
    answer = alice.delivered(request)
    assert (answer["correlationId"], answer["responseData"]) == (correlation, {"when": "now"})
    assert answer["response_message_id"] == reply["message_id"]
    (deliver,) = alice.deliveries(1)
    assert (deliver["payload"]["body"], deliver["delivery"]["message_id"]) == ("yes", reply["message_id"])


def test_a_reply_without_data_has_no_response_data(relay: Relay, correlation: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request, message_id = ask(alice, bob.name, correlation)
    bob.deliveries(1)
    reply = bob.send_stored(alice.name, "yes", meta={"reply_to": message_id})
    answer = alice.delivered(request)
    assert "responseData" not in answer
    assert answer["response_message_id"] == reply["message_id"]


def test_an_ack_without_the_correlation_id_never_ends_the_wait(relay: Relay, correlation: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request, _ = ask(alice, bob.name, correlation)
    (deliver,) = bob.deliveries(1)
    bob.ack(deliver, correlationId="another")
    bob.flush()
    alice.expect_none("ACK", "NACK")  # and `blocking` alone asks for no receipt of the delivery
    bob.ack(deliver, correlationId=correlation, responseData={"late": True})
    assert alice.delivered(request)["responseData"] == {"late": True}


def test_no_answer_in_time_is_a_timeout(relay: Relay, correlation: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request, message_id = ask(alice, bob.name, correlation, 400)
    (deliver,) = bob.deliveries(1)
    refusal = alice.refused(request, "DELIVERY_TIMEOUT")
    assert (refusal["correlationId"], refusal["message_id"]) == (correlation, message_id)
    assert refusal["waited_ms"] >= 400
    # Late answers: an ACK resolves nothing any more, a reply is a message like any other.
    bob.ack(deliver, correlationId=correlation, response="late")
    bob.send_stored(alice.name, "late", meta={"reply_to": message_id})
    assert bodies(alice.deliveries(1)) == ["late"]
    alice.expect_none("ACK", "NACK")


def test_an_offline_recipient_lets_the_question_time_out_and_gets_it_later(relay: Relay, correlation: str) -> None:
    alice, away = relay.join("Alice"), relay.offline()
    request, message_id = ask(alice, away, correlation, 200)
    alice.refused(request, "DELIVERY_TIMEOUT")
    (deliver,) = relay.rejoin(away).deliveries(1)
    assert deliver["delivery"]["message_id"] == message_id


def test_an_answer_resolves_exactly_once(relay: Relay, correlation: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request, message_id = ask(alice, bob.name, correlation)
    deliver = bob.expect("DELIVER")
    bob.ack(deliver, correlationId=correlation, response="first")
    bob.ack(deliver, correlationId=correlation, response="second")
    bob.send_stored(alice.name, "third", meta={"reply_to": message_id})
    assert alice.delivered(request)["response"] == "first"
    assert bodies(alice.deliveries(1)) == ["third"]
    alice.expect_none("ACK", "NACK")


def test_only_the_one_who_was_asked_can_answer(relay: Relay, correlation: str) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    request, message_id = ask(alice, bob.name, correlation)
    (deliver,) = bob.deliveries(1)
    carol.ack(deliver, correlationId=correlation, response="forged")
    carol.send_stored(alice.name, "forged", meta={"reply_to": message_id})
    assert bodies(alice.deliveries(1)) == ["forged"]
    alice.expect_none("ACK", "NACK")
    bob.ack(deliver, correlationId=correlation, response="genuine")
    assert alice.delivered(request)["response"] == "genuine"


def test_a_reply_to_another_message_does_not_answer(relay: Relay, correlation: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request, _ = ask(alice, bob.name, correlation)
    (deliver,) = bob.deliveries(1)
    bob.send_stored(alice.name, "by the way", meta={"reply_to": "msg_" + "0" * 26})
    alice.deliveries(1)
    alice.expect_none("ACK", "NACK")
    bob.ack(deliver, correlationId=correlation)
    alice.delivered(request)


def test_questions_are_told_apart_by_their_correlation(relay: Relay) -> None:
    alice, carol, bob = relay.join("Alice"), relay.join("Carol"), relay.join("Bob")
    first, second = fresh_id(), fresh_id()
    one, _ = ask(alice, bob.name, first)
    two, _ = ask(alice, bob.name, second)
    other, _ = ask(carol, bob.name, first)  # two askers may choose the same word
    found = bob.deliveries(3, ack=False)
    bob.ack(found[1], correlationId=second, response="two")
    assert alice.delivered(two)["response"] == "two"
    bob.ack(found[2], correlationId=first, response="for Carol")
    assert carol.delivered(other)["response"] == "for Carol"
    alice.expect_none("ACK")
    bob.ack(found[0], correlationId=first, response="one")
    assert alice.delivered(one)["response"] == "one"


def test_a_question_that_does_not_block_is_a_plain_message(relay: Relay, correlation: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    meta = {"sync": {"correlationId": correlation, "timeoutMs": 200, "blocking": False}}
    alice.send_stored(bob.name, "no hurry", meta=meta)
    bob.ack(bob.expect("DELIVER"), correlationId=correlation, response="x")
    clock, _ = ask(alice, bob.name, fresh_id(), 600)
    alice.refused(clock, "DELIVERY_TIMEOUT")
    alice.expect_none("ACK", "NACK")


# --- CANCEL --------------------------------------------------------------------------------------------------------


def test_cancel_ends_the_wait(relay: Relay, correlation: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    _, message_id = ask(alice, bob.name, correlation, 500)
    (deliver,) = bob.deliveries(1)
    cancel = alice.say("CANCEL", {"correlationId": correlation})
    assert alice.answer(cancel)["type"] == "ACK"
    bob.ack(deliver, correlationId=correlation, response="too late")
    bob.send_stored(alice.name, "as a message", meta={"reply_to": message_id})
    assert bodies(alice.deliveries(1)) == ["as a message"]
    clock, _ = ask(alice, bob.name, fresh_id(), 900)
    alice.refused(clock, "DELIVERY_TIMEOUT")
    alice.expect_none("ACK", "NACK")  # neither the answer nor a time-out of the question that was cancelled


def test_after_cancel_an_answer_counts_as_one_to_a_plain_message(relay: Relay, correlation: str) -> None:
    """So the receipt that `requires_ack` asked for still comes."""
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request = alice.send(bob.name, "ready?", meta=question(correlation, requires_ack=True))
    alice.stored(request)
    alice.request("CANCEL", {"correlationId": correlation})
    bob.ack(bob.expect("DELIVER"), correlationId=correlation, response="yes")
    assert alice.delivered(request)["by"] == bob.name
    alice.expect_none("ACK", "NACK")


def test_nobody_can_cancel_the_question_of_another(relay: Relay, correlation: str) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    request, _ = ask(alice, bob.name, correlation)
    for other in (carol, bob):
        other.answer(other.say("CANCEL", {"correlationId": correlation}))
    bob.ack(bob.expect("DELIVER"), correlationId=correlation, response="still wanted")
    assert alice.delivered(request)["response"] == "still wanted"


def test_a_cancel_of_nothing_is_answered(relay: Relay) -> None:
    client = relay.join()
    client.answer(client.say("CANCEL", {"correlationId": "nothing"}))
    client.flush()
