"""A question that is asked again: answered once, never left open under an id that is taken."""

from __future__ import annotations

from tests.support.harness import RelayHarness


def question(correlation: str = "q-1", **more: object) -> dict[str, object]:
    return {"sync": {"blocking": True, "correlationId": correlation, "timeoutMs": 1_000}, **more}


def test_a_question_repeated_after_its_answer_gets_the_answer_again() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", id="ask", meta=question())
    delivery = bob.take_one("DELIVER")
    bob.say("ACK", {"ack_id": delivery["id"], "correlationId": "q-1", "responseData": {"yes": 1}})
    first = alice.delivered()
    alice.send("Bob", id="ask", meta=question())
    again = alice.delivered()
    assert first == again
    assert first[0]["responseData"] == {"yes": 1}
    relay.advance(5_000)
    assert not alice.take("NACK")


def test_another_question_under_an_open_id_is_refused() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", id="one", meta=question())
    alice.take()
    alice.send("Bob", id="two", meta=question())
    refusal = alice.payload("NACK")
    assert (refusal["nack_id"], refusal["details"]["field"]) == ("two", "payload_meta.sync.correlationId")
    assert len(bob.take("DELIVER")) == 1


def test_an_answer_by_message_is_the_only_receipt() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", id="ask", meta=question(requires_ack=True))
    delivery = bob.take_one("DELIVER")
    bob.send("Alice", meta={"reply_to": delivery["delivery"]["message_id"]})
    bob.say("ACK", {"ack_id": delivery["id"]})
    receipts = alice.delivered()
    assert [(ack["by"], ack["correlationId"]) for ack in receipts] == [("Bob", "q-1")]
