"""SEND: answered exactly once, with ACK or NACK, whatever is in it and whatever the store does."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.harness import HarnessClient, RelayHarness


def test_the_answer_says_what_was_stored(alice: HarnessClient, bob: HarnessClient) -> None:
    sent = alice.send("Bob")
    (answer,) = alice.stored()
    assert set(answer) == {"ack_id", "stage", "message_id", "recipients", "queued"}
    assert (answer["ack_id"], answer["recipients"], answer["queued"]) == (sent, 1, 0)
    assert bob.take_one("DELIVER")["delivery"]["message_id"] == answer["message_id"]


@pytest.mark.parametrize("id_", ["x", 'quote " and \\ backslash', "ünïcode ☃", "\n\t", "x" * 128])
def test_any_id_comes_back_as_it_was(alice: HarnessClient, bob: HarnessClient, id_: str) -> None:
    for _ in range(2):
        alice.send("Bob", id=id_)
    assert [answer["ack_id"] for answer in alice.stored()] == [id_, id_]


def test_the_payload_arrives_unchanged(alice: HarnessClient, bob: HarnessClient) -> None:
    payload = {"kind": "action", "data": {"deep": [1, {"ü": None}], "big": 2**53}, "thread": "t", "unknown": {"x": [True]}}
    meta = {"priority": 3, "requires_ack": True, "unknown": 1}
    alice.send("Bob", "wörds ☃ \u2028", payload=payload, meta=meta, topic="a.b")
    deliver = bob.take_one("DELIVER")
    assert deliver["payload"] == {"body": "wörds ☃ \u2028", **payload}
    assert deliver["payload_meta"] == meta
    assert (deliver["from"], deliver["to"], deliver["topic"]) == ("Alice", "Bob", "a.b")


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"body": 1}, "INVALID_FORMAT", "payload.body"),
        ({"payload": {"kind": "Not Lower"}}, "INVALID_FORMAT", "payload.kind"),
        ({"payload": {"thread": 5}}, "INVALID_FORMAT", "payload.thread"),
        ({"meta": {"priority": 10}}, "INVALID_FORMAT", "payload_meta.priority"),
        ({"meta": {"ttl_ms": 0}}, "INVALID_FORMAT", "payload_meta.ttl_ms"),
        ({"meta": []}, "INVALID_FORMAT", "payload_meta"),
        ({"to": 5}, "INVALID_FORMAT", "to"),
        ({"to": [1]}, "INVALID_FORMAT", "to"),
        ({"meta": {"checksum": "md5:00"}}, "CHECKSUM_MISMATCH", "payload_meta.checksum"),
    ],
)
def test_a_wrong_field_is_refused_and_named(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient, fields: dict[str, Any], code: str, field: str
) -> None:
    sent = alice.send(**({"to": "Bob"} | fields))
    refusal = alice.payload("NACK")
    assert (refusal["nack_id"], refusal["code"], refusal["details"]["field"]) == (sent, code, field)
    assert not alice.frames
    assert relay.store.stats().messages == 0
    assert not bob.frames


def test_a_checksum_is_checked(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    body = "ü"
    good = [f"sha256:{hashlib.sha256(body.encode()).hexdigest()}", f"crc32:{zlib.crc32(body.encode()):08x}"]
    for checksum in good:
        alice.send("Bob", body, meta={"checksum": checksum})
    assert len(bob.bodies()) == 2
    for checksum in good:
        alice.send("Bob", body + "x", meta={"checksum": checksum})
    assert [frame["payload"]["code"] for frame in alice.take("NACK")] == ["CHECKSUM_MISMATCH"] * 2
    assert relay.store.stats().messages == 2


def test_nobody_speaks_as_another(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    alice.send("Bob", **{"from": "Bob"})
    assert alice.payload("NACK")["code"] == "PERMISSION_DENIED"
    alice.send("Bob", **{"from": "aLICE"})
    assert bob.take_one("DELIVER")["from"] == "Alice"
    assert relay.store.stats().messages == 1


def test_a_client_without_ack_is_only_told_when_it_fails(relay: RelayHarness, bob: HarnessClient) -> None:
    quiet = relay.connect("Quiet", capabilities={"ack": False})
    quiet.send("Bob")
    assert not quiet.frames
    quiet.send("Nobody")
    assert quiet.payload("NACK")["code"] == "AGENT_NOT_FOUND"
    assert len(bob.bodies()) == 1


def test_a_requested_receipt_comes_once_from_each_recipient(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    carol = relay.connect("Carol")
    sent = alice.send(["Bob", "Carol"], meta={"requires_ack": True})
    for client in (carol, bob):
        deliver = client.take_one("DELIVER")
        client.ack(deliver, response="ok")
        client.ack(deliver, response="again")
    assert [(r["ack_id"], r["by"], r["seq"], r["response"]) for r in alice.delivered()] == [
        (sent, "Carol", 1, "ok"),
        (sent, "Bob", 1, "ok"),
    ]


def test_a_receipt_that_was_not_requested_does_not_come(alice: HarnessClient, bob: HarnessClient) -> None:
    alice.send("Bob")
    bob.ack(bob.take_one("DELIVER"), response="ok")
    assert not alice.delivered()


def test_the_store_answers_nobody_who_has_left(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    relay.store.hold()
    alice.send("Bob", "kept")
    alice.drop()
    relay.store.release()
    relay.settle()
    assert not alice.frames
    assert bob.bodies() == ["kept"]


# --- every SEND is answered exactly once, under any mixture ---------------------------------------------------------

STEP = st.sampled_from(["send", "send", "send", "again", "bad", "stranger", "fail", "hold", "release", "lose", "tick"])


@settings(max_examples=120, deadline=None)
@given(st.lists(STEP, max_size=60))
def test_every_send_is_answered_as_often_as_it_was_sent_and_what_was_stored_arrives_once(steps: list[str]) -> None:
    relay = RelayHarness(queue_capacity=5)
    alice, bob = relay.connect("Alice"), relay.connect("Bob", max_inflight=3)
    sent: dict[str, int] = {}
    count = 0
    for step in steps:
        match step:
            case "send" | "bad" | "stranger":
                count += 1
                id_ = f"m{count}"
                sent[id_] = 1
                to = "Stranger" if step == "stranger" else "Bob"
                alice.send(to, 5 if step == "bad" else id_, id=id_)
            case "again" if sent:
                id_ = list(sent)[len(steps) % len(sent)]
                sent[id_] += 1
                alice.send("Bob", id_, id=id_)
            case "fail":
                relay.store.fail_next()
            case "hold":
                relay.store.hold()
            case "release":
                relay.store.release()
                relay.settle()
            case "lose":
                relay.store.fail_next_read()
            case "tick":
                relay.advance(100)
    relay.store.release()
    relay.store.mend()
    relay.advance(1_000)  # a repetition waits while the store cannot be read
    told = [(frame["type"], frame["payload"]) for frame in alice.take("ACK", "NACK")]
    answers = [payload.get("ack_id") or payload["nack_id"] for _, payload in told]
    assert {id_: answers.count(id_) for id_ in sent} == sent
    acknowledged: set[str] = set()
    for kind, payload in told:
        if kind == "ACK":
            acknowledged.add(payload["ack_id"])
        else:
            assert payload["nack_id"] not in acknowledged, "refused after it was stored"
    bodies = []
    while arrived := bob.take("DELIVER"):
        for deliver in arrived:
            bodies.append(deliver["payload"]["body"])
            bob.ack(deliver)
    stored = [row.client_id for batch in relay.store.batches for row in batch.messages]
    assert bodies == stored
    assert len(set(stored)) == len(stored)
