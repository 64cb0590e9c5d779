from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from agent_relay.protocol.decode import decode_daemon_frame
from agent_relay.protocol.encode import (
    encode_deliver,
    encode_envelope,
    encode_stored,
    encode_tail,
    read_tail,
)
from agent_relay.protocol.envelope import Deliver, Receipt
from agent_relay.protocol.framing import FrameDecoder

from .strategies import identifiers, json_objects, moments, names, spellings

topics = st.just("") | st.text(min_size=1, max_size=40)
ulids = st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26)
versions = st.sampled_from([1, 2])
counts = st.integers(0, 2**53)


def only_frame(data: bytes) -> bytes:
    decoder = FrameDecoder(2**32 - 1)
    (frame,) = decoder.feed(data)
    assert decoder.buffered_bytes == 0
    return frame


def messages() -> st.SearchStrategy[tuple[str, str, tuple[Any, bytes], tuple[Any, bytes]]]:
    return st.tuples(names, topics, spellings(), st.just((None, b"")) | spellings())


def expected_message(message: tuple[str, str, tuple[Any, bytes], tuple[Any, bytes]]) -> dict[str, Any]:
    sender, topic, payload, meta = message
    expected: dict[str, Any] = {"from": sender, "payload": payload[0]}
    if topic:
        expected["topic"] = topic
    if meta[1]:
        expected["payload_meta"] = meta[0]
    return expected


@given(messages(), st.booleans())
def test_a_tail_reads_back_as_the_message(message: tuple[str, str, tuple[Any, bytes], tuple[Any, bytes]], raw: bool) -> None:
    sender, topic, payload, meta = message
    wrap: Any = Raw if raw else bytes
    tail = encode_tail(sender, topic, wrap(payload[1]), wrap(meta[1]))
    assert json.loads(b"{" + tail) == expected_message(message)
    assert read_tail(tail) == expected_message(message)
    assert payload[1] in tail  # spliced, not written anew


@given(messages(), versions, names, ulids, ulids, ulids, moments, counts, counts, counts, st.none() | counts)
def test_a_spliced_deliver_is_exactly_the_object_it_should_be(
    message: tuple[str, str, tuple[Any, bytes], tuple[Any, bytes]],
    version: int,
    to: str,
    delivery: str,
    session: str,
    stored: str,
    ts: int,
    seq: int,
    attempt: int,
    queued_ms: int,
    prev_seq: int | None,
) -> None:
    sender, topic, payload, meta = message
    tail = encode_tail(sender, topic, payload[1], meta[1])
    delivery_id, session_id, message_id = f"d_{delivery}", f"ses_{session}", f"msg_{stored}"
    frame = only_frame(
        encode_deliver(version, delivery_id, ts, to, session_id, message_id, seq, attempt, queued_ms, prev_seq, tail)
    )
    numbers = {"seq": seq, "session_id": session_id, "message_id": message_id, "attempt": attempt, "queued_ms": queued_ms}
    if prev_seq is not None:
        numbers["prev_seq"] = prev_seq
    assert json.loads(frame) == {
        "v": version,
        "type": "DELIVER",
        "id": delivery_id,
        "ts": ts,
        "to": to,
        "delivery": numbers,
    } | expected_message(message)
    found = decode_daemon_frame(frame)
    assert isinstance(found, Deliver)
    assert (found.to, found.from_, found.topic or "", bytes(found.payload)) == (to, sender, topic, payload[1])
    assert (found.delivery.seq, found.delivery.prev_seq) == (seq, prev_seq)


@given(versions, moments, identifiers, ulids, counts, counts, st.lists(names), st.sampled_from(["", "f_again"]))
def test_a_spliced_stored_ack_is_exactly_the_object_it_should_be(
    version: int, ts: int, ack_id: str, stored: str, recipients: int, queued: int, skipped: list[str], again: str
) -> None:
    body = only_frame(encode_stored(version, ts, ack_id, f"msg_{stored}", recipients, queued, skipped, again))
    payload = {"ack_id": ack_id, "stage": "stored", "message_id": f"msg_{stored}", "recipients": recipients, "queued": queued}
    more: dict[str, Any] = {"skipped": skipped} if skipped else {}
    if again:
        more["duplicate"] = True
    assert json.loads(body) == {"v": version, "type": "ACK", "id": again or f"a_{stored}", "ts": ts, "payload": payload | more}
    receipt = decode_daemon_frame(body)
    assert isinstance(receipt, Receipt)
    assert (receipt.payload.ack_id, receipt.payload.duplicate) == (ack_id, bool(again))
    assert receipt.payload.skipped == skipped


@given(st.text(max_size=20), identifiers, moments, json_objects, versions, st.none() | st.text(), st.none() | st.lists(names))
def test_an_envelope(
    kind: str, id_: str, ts: int, payload: dict[str, Any], version: int, topic: str | None, to: list[str] | None
) -> None:
    frame = only_frame(encode_envelope(kind, id_, ts, payload, version, topic=topic, to=to, from_="Bob"))
    expected = {"v": version, "type": kind, "id": id_, "ts": ts, "from": "Bob", "payload": payload, "topic": topic, "to": to}
    assert json.loads(frame) == {name: value for name, value in expected.items() if value is not None}


def test_raw_parts_of_a_payload_are_written_as_they_are() -> None:
    frame = only_frame(encode_envelope("ACK", "x", 1, {"response": Raw(b'{ "a" : 1.0 }')}))
    assert b'{ "a" : 1.0 }' in frame


@pytest.mark.parametrize("number", [b"1e999", b"9" * 5_000])
def test_one_message_with_an_unreadable_number_does_not_hide_itself(number: bytes) -> None:
    tail = encode_tail(
        "Bob", "a.b", b'{"body":"x","strange":%s,"data":{"n":1}}' % number, b'{"priority":1,"strange":[%s]}' % number
    )
    assert read_tail(tail) == {
        "from": "Bob",
        "topic": "a.b",
        "payload": {"body": "x", "data": {"n": 1}},
        "payload_meta": {"priority": 1},
    }
