"""Wire contract, section 5: SEND, its receipts, de-duplication, and what a DELIVER carries."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import pytest

from agent_relay.testing.raw_client import answers, encode, envelope

from .conftest import StartRelay
from .contract import is_id
from .relay import Relay, bodies, pass_time, seqs

TEXTS = ["", "plain", "zwei\nZeilen\t", "größer 😀 \u2028", 'quotes " and \\ and </x>', "\u0000 control \u001f", "e\u0301"]


# --- the stored ACK ------------------------------------------------------------------------------------------------


def test_a_send_is_answered_once_with_where_it_went(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    away = relay.offline()
    request = alice.send(bob.name, "online")
    ack = alice.stored(request)
    assert (ack["ack_id"], ack["stage"], ack["recipients"], ack["queued"]) == (request, "stored", 1, 0)
    assert is_id(ack["message_id"], "msg_")
    assert not ack.get("duplicate")
    assert bob.deliveries(1)[0]["delivery"]["message_id"] == ack["message_id"]
    offline = alice.send_stored(away, "offline")
    assert (offline["recipients"], offline["queued"]) == (1, 1)
    both = alice.send_stored([bob.name, away], "both")
    assert (both["recipients"], both["queued"]) == (2, 1)
    assert len({ack["message_id"], offline["message_id"], both["message_id"]}) == 3
    bob.deliveries(1)
    alice.expect_none("ACK", "NACK", "ERROR")


def test_every_one_of_many_sends_is_answered_exactly_once(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob", auto_ack=True)
    good = [alice.message(bob.name, f"good {n}") for n in range(60)]
    bad = [alice.message(bob.name, n) for n in range(20)] + [alice.message("nobody-at-all", "x") for _ in range(20)]
    mixed = [frame for group in zip(good, bad + good[:20], strict=True) for frame in group]
    alice.write(b"".join(map(encode, mixed)))
    bob.deliveries(60)
    alice.flush()
    found = alice.listen(0.2, "ACK", "NACK", "ERROR")
    assert len(found) == len(mixed)
    for frame in bad:
        assert [f["type"] for f in found if answers(f, frame["id"])] == ["NACK"]
    for frame in good:
        acks = [f for f in found if answers(f, frame["id"])]
        assert {f["type"] for f in acks} == {"ACK"}
        assert sum(not f["payload"].get("duplicate") for f in acks) == 1
    bob.expect_none("DELIVER")


@pytest.mark.parametrize("capabilities", [{"ack": False}, None])
def test_a_client_without_the_ack_capability_is_not_sent_the_stored_ack(
    relay: Relay, capabilities: dict[str, Any] | None
) -> None:
    bob = relay.join("Bob")
    quiet = relay.connect()
    hello = envelope("HELLO", {"agent": relay.name("Quiet")})
    if capabilities is not None:
        hello["payload"]["capabilities"] = capabilities
    quiet.write_frame(hello)
    quiet.expect("WELCOME")
    quiet.send(bob.name, "delivered all the same")
    assert bodies(bob.deliveries(1)) == ["delivered all the same"]
    refused = quiet.send("nobody-at-all", "x")
    quiet.refused(refused, "AGENT_NOT_FOUND")
    quiet.expect_none("ACK")


# --- de-duplication ------------------------------------------------------------------------------------------------


def test_the_same_id_again_is_answered_alike_and_delivered_once(relay: Relay) -> None:
    alice, bob, away = relay.join("Alice"), relay.join("Bob"), relay.offline()
    message = alice.message([bob.name, away], "once")
    alice.write(encode(message) * 2)  # both in one turn
    first, second = (alice.stored(message["id"]) for _ in range(2))
    bob.deliveries(1)
    alice.write_frame(message)
    third = alice.stored(message["id"])
    assert not first.get("duplicate")
    for again in (second, third):
        assert again.pop("duplicate") is True
        assert again == {key: value for key, value in first.items() if key != "duplicate"}
    alice.send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]
    assert bodies(relay.rejoin(away).deliveries(1)) == ["once"]


def test_a_duplicate_is_known_by_its_id_alone(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    first = alice.send_stored(bob.name, "the first", id="same-id")
    again = alice.send_stored(carol.name, "something else", id="same-id")
    assert (again["duplicate"], again["message_id"]) == (True, first["message_id"])
    alice.send_stored(carol.name, "marker")
    assert bodies(carol.deliveries(1)) == ["marker"]
    assert bodies(bob.deliveries(1)) == ["the first"]


def test_ids_of_different_senders_are_different_messages(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    first = alice.send_stored(carol.name, "by Alice", id="shared-id")
    second = bob.send_stored(carol.name, "by Bob", id="shared-id")
    assert first["message_id"] != second["message_id"]
    assert not second.get("duplicate")
    assert sorted(bodies(carol.deliveries(2))) == ["by Alice", "by Bob"]


def test_duplicates_are_known_over_reconnects_in_any_case_of_the_name(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    first = alice.send_stored(bob.name, "once", id="kept-id")
    relay.cut(alice)
    again = relay.rejoin(alice.name.upper())
    second = again.send_stored(bob.name, "once", id="kept-id")
    assert (second["duplicate"], second["message_id"]) == (True, first["message_id"])
    bob.deliveries(1)
    bob.expect_none("DELIVER")


def test_a_refused_send_may_be_tried_again_under_its_id(relay: Relay) -> None:
    alice, late = relay.join("Alice"), relay.name("Late")
    message = alice.message(late, "now?")
    alice.write_frame(message)
    alice.refused(message["id"], "AGENT_NOT_FOUND")
    bob = relay.rejoin(late)
    alice.write_frame(message)
    assert not alice.stored(message["id"]).get("duplicate")
    assert bodies(bob.deliveries(1)) == ["now?"]


def test_the_window_holds_as_many_ids_as_it_says(start_relay: StartRelay) -> None:
    relay = start_relay("--dedup-ids", "50")
    alice, bob = relay.join("Alice"), relay.join("Bob", auto_ack=True)
    messages = [alice.message(bob.name, str(n)) for n in range(80)]
    alice.write(b"".join(map(encode, messages)))
    first = {message["id"]: alice.stored(message["id"])["message_id"] for message in messages}
    alice.write(b"".join(map(encode, messages[-50:])))
    for message in messages[-50:]:
        again = alice.stored(message["id"])
        assert (again["duplicate"], again["message_id"]) == (True, first[message["id"]])
    assert bodies(bob.deliveries(80)) == [str(n) for n in range(80)]
    bob.expect_none("DELIVER")


# --- requires_ack --------------------------------------------------------------------------------------------------


def test_the_delivered_ack_follows_the_recipients_own(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request = alice.send(bob.name, "please confirm", meta={"requires_ack": True})
    stored = alice.stored(request)
    deliver = bob.expect("DELIVER")
    alice.expect_none("ACK")
    bob.ack(deliver, correlationId="c-1", response="fine", responseData={"lines": [1, 2], "ok": None})
    delivered = alice.delivered(request)
    assert delivered["message_id"] == stored["message_id"]
    assert (delivered["ack_id"], delivered["by"], delivered["seq"]) == (request, bob.name, deliver["delivery"]["seq"])
    assert (delivered["correlationId"], delivered["response"]) == ("c-1", "fine")
    assert delivered["responseData"] == {"lines": [1, 2], "ok": None}
    bob.ack(deliver)
    bob.flush()
    alice.expect_none("ACK")


def test_without_requires_ack_there_is_no_second_ack(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    alice.send_stored(bob.name, "no need")
    alice.send_stored(bob.name, "no need", meta={"requires_ack": False})
    bob.deliveries(2)
    bob.flush()
    alice.expect_none("ACK")


def test_each_recipient_gets_its_own_delivered_ack(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    away = relay.offline()
    for target, expected in (([bob.name, carol.name, away], {bob, carol}), ("*", {bob, carol})):
        request = alice.send(target, "all of you", meta={"requires_ack": True})
        alice.stored(request)
        for client in expected:
            (deliver,) = client.deliveries(1)
            receipt = alice.delivered(request)
            assert (receipt["by"], receipt["seq"]) == (client.name, deliver["delivery"]["seq"])
        alice.expect_none("ACK")
    late = relay.rejoin(away)
    late.deliveries(1)
    assert alice.expect("ACK")["payload"]["by"] == away


def test_a_duplicate_repeats_the_receipts_of_those_who_acknowledged(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    message = alice.message([bob.name, carol.name], "x", meta={"requires_ack": True})
    alice.write_frame(message)
    alice.stored(message["id"])
    bob.deliveries(1)
    carol.deliveries(1, ack=False)
    alice.delivered(message["id"])
    alice.write_frame(message)
    assert alice.stored(message["id"])["duplicate"] is True
    assert alice.delivered(message["id"])["by"] == bob.name
    alice.expect_none("ACK")


def test_a_sender_that_was_away_is_told_when_it_returns(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request = alice.send(bob.name, "x", meta={"requires_ack": True})
    alice.stored(request)
    (deliver,) = bob.deliveries(1, ack=False)
    relay.cut(alice)
    bob.ack(deliver)
    bob.flush()
    again = relay.rejoin(alice.name, token=alice.token)
    assert again.delivered(request)["by"] == bob.name


# --- what a DELIVER carries ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["message", "action", "state", "thinking", "review", "x"])
def test_kinds_are_forwarded(relay: Relay, kind: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    alice.send_stored(bob.name, "x", payload={"kind": kind})
    assert bob.deliveries(1)[0]["payload"] == {"body": "x", "kind": kind}


def test_the_payload_arrives_unchanged(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    payload = {
        "thread": "t/1", "kind": "action", "data": {"big": 12345678901234567890123, "none": None, "list": [1.5, [], {}], "": "ü"},
        "later": {"unknown": True},
    }  # fmt: skip
    for text in TEXTS:
        alice.send_stored(bob.name, text, payload=payload)
        assert bob.deliveries(1)[0]["payload"] == {"body": text, **payload}


def test_the_bytes_of_the_payload_are_not_rewritten(relay: Relay) -> None:
    """Numbers no float can hold, escapes and spaces: whoever signs the text must find it as it was."""
    alice, bob = relay.join("Alice"), relay.join("Bob")
    head = f'{{"v":2,"type":"SEND","id":"raw-bytes","ts":1,"to":"{bob.name}","payload":'
    alice.write(encode(head.encode() + b'{"data": {"n": 1.10, "e": 1E5},  "body":"\\u00fc"}}'))
    alice.stored("raw-bytes")
    (deliver,) = bob.deliveries(1)
    assert deliver["payload"] == {"data": {"n": 1.1, "e": 100000.0}, "body": "ü"}
    assert list(deliver["payload"]) == ["data", "body"]


def test_payload_meta_arrives_as_sent(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    meta = {"priority": 3, "ttl_ms": 60000, "reply_to": "msg_whatever", "colour": {"r": 1}}
    alice.send_stored(bob.name, "x", meta=meta)
    assert bob.deliveries(1)[0]["payload_meta"] == meta
    alice.send_stored(bob.name, "none")
    assert not bob.deliveries(1)[0].get("payload_meta")


def test_the_delivery_block(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    stored = alice.send_stored(bob.name, "x", topic="code.review")
    (deliver,) = bob.deliveries(1)
    assert (deliver["from"], deliver["to"], deliver["topic"]) == (alice.name, bob.name, "code.review")
    delivery = deliver["delivery"]
    assert delivery["message_id"] == stored["message_id"]
    assert delivery["session_id"] == bob.welcome["session_id"]
    assert (delivery["seq"], delivery["attempt"]) == (1, 1)
    assert "prev_seq" not in delivery
    alice.send_stored(bob.name, "no topic")
    assert not bob.deliveries(1)[0].get("topic")


def test_queued_ms_says_how_long_it_waited(relay: Relay) -> None:
    alice, away = relay.join("Alice"), relay.offline()
    alice.send_stored(away, "waits")
    pass_time(0.3)
    assert relay.rejoin(away).deliveries(1)[0]["delivery"]["queued_ms"] >= 250


def test_each_target_of_a_message_has_a_delivery_id_of_its_own(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    alice.send_stored([bob.name, carol.name], "x")
    first, second = bob.deliveries(1)[0], carol.deliveries(1)[0]
    assert first["id"] != second["id"]
    assert first["delivery"]["message_id"] == second["delivery"]["message_id"]


# --- checksums -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
def test_good_checksums_pass(relay: Relay, text: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    data = text.encode()
    for checksum in ("sha256:" + hashlib.sha256(data).hexdigest(), f"crc32:{zlib.crc32(data):08x}"):
        alice.send_stored(bob.name, text, meta={"checksum": checksum})
        assert bob.deliveries(1)[0]["payload_meta"]["checksum"] == checksum


@pytest.mark.parametrize("checksum", ["sha256:" + "0" * 64, "crc32:00000000", "sha256:", "md5:abc", "nonsense", ""])
def test_a_wrong_checksum_is_refused_and_nothing_is_stored(relay: Relay, checksum: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request = alice.send(bob.name, "damaged", meta={"checksum": checksum})
    alice.refused(request, "CHECKSUM_MISMATCH")
    alice.send_stored(bob.name, "marker")
    found = bob.deliveries(1)
    assert bodies(found) == ["marker"]
    assert seqs(found) == [1]
    assert bodies(relay.history(**{"with": alice.name})) == ["marker"]
