"""The ledger: window, retries, refusals, the end of a message's time, and gaps that are declared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.ports.connection import FULL_BYTES
from tests.support.harness import Frame, HarnessClient, RelayHarness, connect_pair


def gaps(frames: list[Frame]) -> list[tuple[int, int | None]]:
    return [(frame["delivery"]["seq"], frame["delivery"].get("prev_seq")) for frame in frames]


# --- the window --------------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 5), st.lists(st.sampled_from(["send", "ack", "ack_last", "busy", "reject", "wait", "back"]), max_size=60))
def test_no_more_than_the_window_is_ever_unanswered(window: int, actions: list[str]) -> None:
    relay, alice, bob = connect_pair(window)
    open_: dict[str, Frame] = {}
    for action in actions:
        chosen = None if not open_ else open_[list(open_)[-1 if action == "ack_last" else 0]]
        match action:
            case "send":
                alice.send("Bob")
            case "wait":
                relay.advance(5_200)
            case "back":
                bob.drop()
                open_.clear()
                bob = relay.connect("Bob", token=bob.token, max_inflight=window)
            case "busy" if chosen:
                bob.nack(chosen, "AGENT_BUSY", retry_after_ms=1)
            case "reject" if chosen:
                del open_[chosen["id"]]
                bob.nack(chosen, "REJECTED")
            case _ if chosen:
                del open_[chosen["id"]]
                bob.ack(chosen)
        for deliver in bob.take("DELIVER"):
            open_[deliver["id"]] = deliver
        assert len(open_) <= window
        waiting = relay.relay.registry.agents["bob"].mailbox.waiting
        assert len(open_) == window or not waiting


def test_the_same_ack_again_frees_no_second_place() -> None:
    _, alice, bob = connect_pair(2)
    for number in range(6):
        alice.send("Bob", str(number))
    first, _second = bob.take("DELIVER")
    for _ in range(3):
        bob.ack(first)
    assert bob.bodies() == ["2"]


def test_an_ack_for_nothing_is_ignored() -> None:
    _, alice, bob = connect_pair(1)
    alice.send("Bob", "1")
    alice.send("Bob", "2")
    bob.say("ACK", {"ack_id": "d_nonsense"})
    bob.say("NACK", {"nack_id": "d_nonsense", "code": "REJECTED"})
    assert bob.bodies() == ["1"]
    assert not bob.frames


def test_nobody_can_acknowledge_what_was_sent_to_another() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    alice.send("Bob", meta={"requires_ack": True})
    deliver = bob.take_one("DELIVER")
    carol.ack(deliver)
    assert not alice.delivered()
    bob.ack(deliver)
    assert [receipt["by"] for receipt in alice.delivered()] == ["Bob"]


# --- retries -----------------------------------------------------------------------------------------------------


def test_the_retry_schedule_is_the_ack_timeout_and_a_growing_pause() -> None:
    relay, alice, bob = connect_pair()
    sent_at = []
    alice.send("Bob")
    for _ in range(60_000 // 50):
        relay.advance(50)
        sent_at += [(frame["delivery"]["attempt"], relay.steady_ms - 1_000) for frame in bob.take("DELIVER")]
    # 5,000, then each 5,000 and 300, 600, 1,200 more, on the grid of the ticks
    assert sent_at == [(1, 50), (2, 5_000), (3, 10_300), (4, 15_900), (5, 22_100)]
    assert relay.relay.registry.agents["bob"].mailbox.inflight


@pytest.mark.parametrize(("fraction", "pause_ms"), [(0.0, 240), (0.999, 360)])
def test_the_jitter_is_a_fifth_either_way(fraction: float, pause_ms: int) -> None:
    relay, alice, bob = connect_pair()
    relay.entropy.next_fraction = fraction
    alice.send("Bob")
    relay.advance(5_000)
    bob.take()
    relay.advance(5_000 + pause_ms - 1, step_ms=1)
    assert not bob.take()
    relay.advance(1, step_ms=1)
    assert bob.take_one("DELIVER")["delivery"]["attempt"] == 3


def test_a_redelivery_is_the_same_delivery_with_a_higher_attempt() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", "x")
    first = bob.take_one("DELIVER")
    relay.advance(5_000)
    second = bob.take_one("DELIVER")
    assert second["delivery"] == first["delivery"] | {"attempt": 2, "queued_ms": 5_000}
    assert {name: value for name, value in second.items() if name not in {"ts", "delivery"}} == {
        name: value for name, value in first.items() if name not in {"ts", "delivery"}
    }


def test_attempts_count_over_reconnects_and_each_connection_has_its_own_tries() -> None:
    relay, alice, bob = connect_pair(max_attempts=2)
    alice.send("Bob")
    relay.advance(60_000)
    assert [frame["delivery"]["attempt"] for frame in bob.take("DELIVER")] == [1, 2]
    bob.drop()
    again = relay.connect("Bob", token=bob.token)
    relay.advance(60_000)
    assert [frame["delivery"]["attempt"] for frame in again.take("DELIVER")] == [3, 4]


def test_a_recipient_that_does_not_read_is_not_sent_the_same_again() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob")
    bob.take()
    bob.stall(FULL_BYTES + 1)
    relay.advance(60_000)
    assert not bob.take("DELIVER")
    bob.read_all()
    relay.advance(10_000)
    assert bob.take("DELIVER")[0]["delivery"]["attempt"] == 2


# --- a recipient that refuses ------------------------------------------------------------------------------------


def test_busy_is_sent_again_after_the_time_it_named_and_is_no_failed_attempt() -> None:
    relay, alice, bob = connect_pair(max_attempts=2)
    alice.send("Bob")
    for attempt in range(1, 8):
        deliver = bob.take_one("DELIVER")
        assert deliver["delivery"]["attempt"] == attempt
        bob.nack(deliver, "AGENT_BUSY", retry_after_ms=700)
        relay.advance(650)
        assert not bob.take("DELIVER")
        relay.advance(50)
    assert not alice.take("NACK")


def test_busy_without_a_time_is_a_second() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob")
    bob.nack(bob.take_one("DELIVER"), "AGENT_BUSY")
    relay.advance(950)
    assert not bob.take("DELIVER")
    relay.advance(50)
    assert bob.take_one("DELIVER")


@pytest.mark.parametrize("code", ["REJECTED", "INVALID_FORMAT", "SOMETHING_NEW"])
def test_a_refusal_is_final_and_forwarded(code: str) -> None:
    relay, alice, bob = connect_pair(1)
    sent = alice.send("Bob", "no", meta={"requires_ack": True})
    alice.send("Bob", "next")
    (answer, _) = alice.stored()
    bob.nack(bob.take_one("DELIVER"), code, message="not my business", details={"why": "tests"})
    refusal = alice.payload("NACK")
    assert refusal == {
        "code": "REJECTED", "category": "delivery", "message": "not my business", "retryable": False,
        "details": {"why": "tests"}, "nack_id": sent, "message_id": answer["message_id"], "to": "Bob",
    }  # fmt: skip
    assert bob.bodies() == ["next"]
    relay.advance(60_000)
    assert "no" not in bob.bodies()
    assert not alice.delivered()


def test_a_refusal_is_only_told_once_it_is_durable() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob")
    alice.take()
    relay.store.hold()
    bob.nack(bob.take_one("DELIVER"), "REJECTED")
    assert not alice.take()
    relay.store.release()
    relay.settle()
    assert alice.payload("NACK")["code"] == "REJECTED"


def test_delivered_is_only_told_once_it_is_durable() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", meta={"requires_ack": True})
    alice.take()
    relay.store.hold()
    bob.ack(bob.take_one("DELIVER"))
    assert not alice.take()
    relay.store.release()
    relay.settle()
    assert [receipt["by"] for receipt in alice.delivered()] == ["Bob"]


def test_a_crash_before_an_acknowledgement_is_durable_leaves_one_receipt_and_no_other() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", meta={"requires_ack": True, "ttl_ms": 1_000})
    alice.take()
    relay.store.hold()
    bob.ack(bob.take_one("DELIVER"))
    relay.restart()
    alice, bob = relay.connect("Alice", token=alice.token), relay.connect("Bob", token=bob.token)
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(2_000)
    assert [receipt["by"] for receipt in alice.delivered()] == ["Bob"]
    assert not alice.take("NACK")


def test_an_answer_is_only_told_once_it_is_durable_that_the_question_was_read() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", meta={"sync": {"blocking": True, "correlationId": "q", "timeoutMs": 60_000}})
    alice.take()
    relay.store.hold()
    bob.ack(bob.take_one("DELIVER"), correlationId="q", response="yes")
    assert not alice.take()
    relay.store.release()
    relay.settle()
    assert [receipt["correlationId"] for receipt in alice.delivered()] == ["q"]


def test_a_reply_shows_that_its_question_was_read_so_it_neither_expires_nor_comes_again() -> None:
    relay, alice, bob = connect_pair()
    meta = {"sync": {"blocking": True, "correlationId": "q", "timeoutMs": 60_000}, "ttl_ms": 1_000, "requires_ack": True}
    alice.send("Bob", meta=meta)
    question = bob.take_one("DELIVER")
    bob.send("Alice", "yes", meta={"reply_to": question["delivery"]["message_id"]})
    assert len(alice.delivered()) == 1
    relay.advance(2_000)
    assert not alice.take("NACK")
    assert not alice.delivered()
    relay.restart()
    assert not relay.connect("Bob", token=bob.token).take("DELIVER")


# --- the end of a message's time -----------------------------------------------------------------------------------


def test_an_expired_message_becomes_a_dead_letter_and_its_sender_learns_it_when_that_is_durable() -> None:
    relay, alice, bob = connect_pair()
    bob.drop()
    sent = alice.send("Bob", meta={"ttl_ms": 1_000})
    (answer,) = alice.stored()
    relay.store.hold()
    relay.advance(1_000)
    assert not alice.take()
    assert not relay.log.named("dead_letter")
    relay.store.fail_next()
    relay.store.release()
    relay.settle()
    relay.advance(100)
    refusal = alice.payload("NACK")
    assert (refusal["code"], refusal["nack_id"], refusal["to"]) == ("DELIVERY_TIMEOUT", sent, "Bob")
    assert refusal["message_id"] == answer["message_id"]
    assert [fields["message_id"] for fields in relay.log.named("dead_letter")] == [answer["message_id"]]
    assert not relay.connect("Bob", token=bob.token).take("DELIVER")


def test_a_dead_letter_stays_dead_after_a_crash_once_its_sender_was_told() -> None:
    relay, alice, bob = connect_pair()
    bob.drop()
    alice.send("Bob", meta={"ttl_ms": 1_000})
    relay.advance(1_000)
    assert alice.take("NACK")
    relay.restart()
    assert not relay.connect("Bob", token=bob.token).take("DELIVER")


def test_a_message_on_the_wire_expires_too_and_a_late_ack_changes_nothing() -> None:
    relay, alice, bob = connect_pair(1)
    alice.send("Bob", "late", meta={"ttl_ms": 500, "requires_ack": True})
    alice.send("Bob", "next")
    deliver = bob.take_one("DELIVER")
    relay.advance(500)
    assert alice.payload("NACK")["code"] == "DELIVERY_TIMEOUT"
    assert bob.bodies() == ["next"]
    bob.ack(deliver)
    assert not alice.delivered()


def test_a_message_that_expires_in_the_very_turn_of_its_delivery_is_not_sent() -> None:
    relay, alice, bob = connect_pair()
    relay.store.hold()
    alice.send("Bob", meta={"ttl_ms": 5})
    relay.steady_ms += 5
    relay.wall_ms += 5
    relay.relay.clock_says(relay.steady_ms, relay.wall_ms)
    relay.store.release()
    relay.settle()
    relay.tick()
    assert not bob.take("DELIVER")
    assert alice.payload("NACK")["code"] == "DELIVERY_TIMEOUT"


def test_each_recipient_dies_its_own_death() -> None:
    relay, alice, bob = connect_pair()
    relay.connect("Carol").drop()
    alice.send(["Bob", "Carol"], meta={"ttl_ms": 1_000})
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(2_000)
    assert alice.payload("NACK")["to"] == "Carol"


def test_nothing_follows_an_expired_message_before_its_end_is_durable() -> None:
    relay, alice, bob = connect_pair(1)
    for body, meta in (("1", None), ("2", {"ttl_ms": 100, "requires_ack": True}), ("3", None)):
        alice.send("Bob", body, meta=meta)
    first = bob.take_one("DELIVER")
    relay.advance(90)
    relay.store.hold()
    relay.wall_ms += 50
    relay.steady_ms += 50  # no tick: it expires in the turn of the acknowledgement
    bob.ack(first)
    assert not bob.take("DELIVER")
    assert not alice.take("NACK")
    relay.store.release()
    relay.settle()
    assert alice.payload("NACK")["code"] == "DELIVERY_TIMEOUT"
    assert bob.bodies() == ["3"]


def test_an_expired_message_ends_as_dead_whatever_a_resume_says() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", "1", meta={"ttl_ms": 1_000, "requires_ack": True})
    alice.send("Bob", "2", meta={"requires_ack": True})
    bob.take("DELIVER")
    alice.take()
    relay.restart(wall_ms_later=5_000)
    alice, again = relay.connect("Alice", token=alice.token), relay.open()
    again.resume("Bob", bob.token, [{"topic": "", "peer": "Alice", "last_seq": 2}])
    relay.advance(200)
    assert [receipt["seq"] for receipt in alice.delivered()] == [2]
    assert alice.payload("NACK")["code"] == "DELIVERY_TIMEOUT"
    assert not again.take("DELIVER")


# --- gaps ----------------------------------------------------------------------------------------------------------


def test_a_message_that_expired_while_it_waited_leaves_a_declared_gap() -> None:
    relay, alice, bob = connect_pair(1)
    alice.send("Bob", "1")
    alice.send("Bob", "2", meta={"ttl_ms": 100})
    alice.send("Bob", "3")
    alice.send("Bob", "4")
    relay.advance(200)
    (first,) = bob.take("DELIVER")
    bob.ack(first)
    (third,) = bob.take("DELIVER")
    bob.ack(third)
    assert gaps([first, third, *bob.take("DELIVER")]) == [(1, None), (3, 1), (4, None)]


def test_a_message_lost_with_the_connection_and_expired_leaves_a_declared_gap() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", "1")
    bob.ack(bob.take_one("DELIVER"))
    alice.send("Bob", "2", meta={"ttl_ms": 100})
    assert bob.take_one("DELIVER")
    bob.drop()
    relay.advance(200)
    again = relay.connect("Bob", token=bob.token)
    alice.send("Bob", "3")
    assert gaps(again.take("DELIVER")) == [(3, 1)]


def test_a_message_that_arrived_and_expired_unanswered_leaves_no_gap() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", "1", meta={"ttl_ms": 100})
    relay.advance(200)
    alice.send("Bob", "2")
    assert gaps(bob.take("DELIVER")) == [(1, None), (2, None)]


def test_what_was_answered_shows_that_everything_before_it_arrived() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", "1", meta={"ttl_ms": 100})
    alice.send("Bob", "2")
    _first, second = bob.take("DELIVER")
    bob.ack(second)
    bob.drop()
    relay.advance(200)
    again = relay.connect("Bob", token=bob.token)
    alice.send("Bob", "3")
    assert gaps(again.take("DELIVER")) == [(3, None)]


def test_a_declared_gap_is_declared_again_when_it_was_lost() -> None:
    relay, alice, bob = connect_pair()
    bob.drop()
    alice.send("Bob", "1", meta={"ttl_ms": 100})
    alice.send("Bob", "2")
    relay.advance(200)
    for _ in range(3):
        bob = relay.connect("Bob", token=bob.token)
        assert gaps(bob.take("DELIVER")) == [(2, 0)]
        bob.drop()


def test_a_gap_is_declared_after_a_restart_as_well() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", "1")
    bob.ack(bob.take_one("DELIVER"))
    bob.drop()
    alice.send("Bob", "2", meta={"ttl_ms": 100})
    relay.advance(200)
    alice.send("Bob", "3")
    relay.restart()
    assert gaps(relay.connect("Bob", token=bob.token).take("DELIVER")) == [(3, 1)]


# --- coming back -----------------------------------------------------------------------------------------------------


def test_what_was_on_the_wire_comes_first_and_in_its_order() -> None:
    relay, alice, bob = connect_pair(3)
    for number in range(6):
        alice.send("Bob", str(number), meta={"priority": 9 - number})
    _, second, _ = bob.take("DELIVER")
    bob.ack(second)
    bob.take()
    bob.drop()
    again = relay.connect("Bob", token=bob.token, max_inflight=10)
    assert again.bodies() == ["0", "2", "3", "4", "5"]


def test_a_recipient_without_ack_has_acknowledged_when_the_bytes_are_gone() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob", capabilities={"ack": False})
    bob.stall()
    alice.send("Bob", meta={"requires_ack": True})
    assert len(bob.take("DELIVER")) == 1
    assert not alice.delivered()
    bob.read_all()
    assert [receipt["by"] for receipt in alice.delivered()] == ["Bob"]
    relay.advance(60_000)
    assert not bob.take("DELIVER")


def test_a_recipient_without_ack_gets_again_what_was_not_written() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob", capabilities={"ack": False})
    bob.stall()
    alice.send("Bob", "x")
    bob.drop()
    again = relay.connect("Bob", token=bob.token, capabilities={"ack": False})
    assert [(frame["payload"]["body"], frame["delivery"]["attempt"]) for frame in again.take("DELIVER")] == [("x", 2)]


def test_a_full_buffer_holds_deliveries_back_until_it_drains_and_nobody_else_notices() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    bob.stall(FULL_BYTES + 1)
    alice.send("*", "hello")
    assert not bob.take("DELIVER")
    assert carol.bodies() == ["hello"]
    bob.read_all()
    assert bob.bodies() == ["hello"]


def test_a_delivery_says_how_long_it_waited() -> None:
    relay, alice, bob = connect_pair()
    bob.drop()
    alice.send("Bob")
    relay.advance(7_000)
    assert relay.connect("Bob", token=bob.token).take_one("DELIVER")["delivery"]["queued_ms"] == 7_000


# --- evidence ------------------------------------------------------------------------------------------------------


def trail(client: HarnessClient, deliver: Frame) -> list[tuple[str, str]]:
    client.say("HISTORY", {"view": "message", "id": deliver["delivery"]["message_id"]})
    return [(step["event"], step["detail"]) for step in client.payload("HISTORY_RESULT")["trail"]]


@pytest.mark.parametrize(
    ("said", "told", "detail"),
    [
        ({"door": "typing", "evidence": "composer"}, {"door": "typing", "evidence": "composer"}, "door typing, seen: composer"),
        ({"door": "socket"}, {"door": "socket"}, "door socket"),
    ],
)
def test_an_acknowledgement_with_evidence_is_a_step_of_its_own(said: dict[str, str], told: dict[str, str], detail: str) -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", meta={"requires_ack": True})
    deliver = bob.take_one("DELIVER")
    bob.ack(deliver, **said)
    (receipt,) = alice.delivered()
    assert {name: receipt[name] for name in ("by", "seq", *told)} == {"by": "Bob", "seq": 1, **told}
    assert trail(alice, deliver) == [("sent", ""), ("injected", detail)]
    relay.restart()
    assert relay.connect("Bob", token=bob.token).take("DELIVER") == []


def test_evidence_of_nothing_is_a_plain_acknowledgement() -> None:
    _, alice, bob = connect_pair()
    alice.send("Bob", meta={"requires_ack": True})
    deliver = bob.take_one("DELIVER")
    bob.ack(deliver, evidence="composer")
    assert not {"door", "evidence"} & set(alice.delivered()[0])
    assert trail(alice, deliver) == [("sent", ""), ("acknowledged", "")]


def test_evidence_out_of_order_leaves_the_others_as_they_are() -> None:
    relay, alice, bob = connect_pair()
    for _ in range(3):
        alice.send("Bob")
    first, second, third = bob.take("DELIVER")
    bob.ack(second, door="typing")
    bob.ack(first)
    bob.ack(third)
    assert [trail(alice, deliver)[-1][0] for deliver in (first, second, third)] == ["acknowledged", "injected", "acknowledged"]
    relay.advance(1_000)
    relay.restart()
    assert relay.connect("Bob", token=bob.token).take("DELIVER") == []


def test_who_sends_again_is_told_the_evidence_again() -> None:
    relay, alice, bob = connect_pair()
    message = alice.message("Bob", meta={"requires_ack": True})
    alice.say_frames(message)
    bob.ack(bob.take_one("DELIVER"), door="typing", evidence="composer")
    first = alice.delivered()
    relay.advance(1_000)
    alice.say_frames(message)
    assert alice.delivered() == first


def test_the_answer_to_a_question_carries_the_evidence() -> None:
    _, alice, bob = connect_pair()
    alice.send("Bob", meta={"sync": {"correlationId": "c", "blocking": True}})
    bob.ack(bob.take_one("DELIVER"), correlationId="c", response="yes", door="typing", evidence="composer")
    (answer,) = alice.delivered()
    assert (answer["response"], answer["door"], answer["evidence"]) == ("yes", "typing", "composer")


@pytest.mark.parametrize("wrong", [{"door": 1}, {"door": "x" * 65}, {"evidence": []}, {"evidence": "x" * 201}])
def test_wrong_evidence_is_refused_and_the_message_waits(wrong: dict[str, Any]) -> None:
    _, alice, bob = connect_pair()
    alice.send("Bob")
    deliver = bob.take_one("DELIVER")
    bob.ack(deliver, **wrong)
    error = bob.payload("ERROR")
    assert (error["code"], error["details"]["field"]) == ("INVALID_FORMAT", f"payload.{next(iter(wrong))}")
    assert trail(alice, deliver) == [("sent", "")]
