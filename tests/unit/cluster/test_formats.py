"""Two versions side by side: what was recorded with the first version that had a cluster is read, and what is new is passed over
where it may be."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import msgspec
import pytest

from agent_relay.cluster.link import RESET, OpKind, read_packet
from agent_relay.cluster.records import FORMAT, Claim, decode_record, encode_batch, encode_claim
from agent_relay.cluster.seat import Alive
from agent_relay.ports.cluster import Opening
from agent_relay.ports.store import (
    AgentRow,
    BacklogRow,
    Batch,
    DeadLetterRow,
    MemberRow,
    MessageRow,
    SpentToken,
    StreamRow,
    SubscriptionRow,
    TrailRow,
)

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "cluster" / "format-1.json").read_text("utf-8"))
BATCH = Batch(
    messages=[
        MessageRow(
            7, "msg_01", "Alice", "c-1", "Bob", "jobs", "message", "t1", 1, 2, 5, 0, ("Eve",), (("Bob", 3),), b'"from":"Alice"}'
        )
    ],
    agents=[AgentRow("Alice", "claude", -3, "ses_1", "hash", None, 1, 2, True, b"{}")],
    forgotten=["Zoe"],
    spent_tokens=[SpentToken("h", "Alice", 9)],
    subscriptions=[SubscriptionRow("Bob", "jobs.*")],
    members=[MemberRow("#dev", "Bob")],
    streams=[StreamRow("jobs", "Alice", "Bob", 3, 3, 2, 2, (5, -7))],
    trail=[TrailRow("jobs", "Alice", "Bob", 1, 3, 8, "sent", "to b")],
    dead_letters=[DeadLetterRow(6, "Bob", 8, "EXPIRED")],
    backlog_removed=[("Bob", 5)],
    backlog_added=[BacklogRow("Bob", 7, 3, 2, 15)],
    checkpoint=6,
)  # fmt: skip


def recorded(name: str) -> bytes:
    return base64.b64decode(RECORDED[name])


def test_records_of_the_first_version_are_read_and_written_as_then() -> None:
    assert RECORDED["format"] == FORMAT
    assert decode_record(recorded("batch")) == BATCH
    assert encode_batch(BATCH) == recorded("batch")
    assert decode_record(recorded("empty_batch")) == Batch()
    assert decode_record(recorded("claim")) == Claim(4, "a", "a-1f")
    assert encode_claim(Claim(4, "a", "a-1f")) == recorded("claim")


def test_packets_of_the_first_version_are_read() -> None:
    opening = recorded("opening")
    ops = [(int(OpKind.OPEN), 1, opening), (int(OpKind.DATA), 1, b"hello")]
    assert read_packet(recorded("packet")) == ("a/1f", 1, 0, ops)
    assert read_packet(recorded("reset")) == ("a/1f", RESET, 0, [])
    assert msgspec.msgpack.decode(opening, type=Opening) == Opening("a", True, "Alice", "proof")
    assert msgspec.json.decode(recorded("alive"), type=Alive) == Alive("a", "a-1f", 4, 12)


def test_what_a_later_version_adds_at_the_end_of_a_packet_is_passed_over() -> None:
    packet = msgspec.msgpack.decode(recorded("packet"))
    assert read_packet(msgspec.msgpack.encode([*packet, {"later": 1}])) == read_packet(recorded("packet"))


def test_a_seat_that_is_given_back_is_a_claim_for_the_first_version() -> None:
    """It waits for a word of that host, hears none, and claims the seat after three seconds as always."""
    record = encode_claim(Claim(5, "a", "a-1f", leaves=True))
    fields = msgspec.json.decode(record[1:])
    assert (record[:1], fields) == (b"C", {"term": 5, "host": "a", "mark": "a-1f", "leaves": True})


@pytest.mark.parametrize("data", [b"", b"\x94", b"\x90", msgspec.msgpack.encode(["a", 1, 0]), msgspec.msgpack.encode({"a": 1})])
def test_half_a_packet_is_none(data: bytes) -> None:
    assert read_packet(data) is None
