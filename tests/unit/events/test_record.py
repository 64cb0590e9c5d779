"""What filters look at is read off the line; what is no event is no record."""

from __future__ import annotations

import json

import pytest

from agent_relay.events.codec import decode_event, encode_event
from agent_relay.events.record import gap_record, read_record, read_records
from agent_relay.events.types import StreamGap
from tests.unit.events.examples import ENVELOPE, EXAMPLES


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_record_has_what_filters_need(kind: str) -> None:
    line = json.dumps({"type": kind, **ENVELOPE, **EXAMPLES[kind]}).encode()
    record = read_record(line)
    assert record is not None
    assert (record.seq, record.ts, record.type) == (9, 1_800_000_000_000, kind)
    assert (record.agent, record.session_id, record.line) == ("Alice", "ses_1", line)
    assert record.sender == EXAMPLES[kind].get("from", "")
    assert record.to == EXAMPLES[kind].get("to", "")


@pytest.mark.parametrize(
    "line", [b"", b'{"type":"item.de', b"\0\0\0", b"[1]", b'{"type":"stream.gap"}', b'{"_seq":"1"}', b"\xff"]
)
def test_half_a_line_is_none(line: bytes) -> None:
    assert read_record(line) is None
    assert read_records([line]) == []


def test_a_gap_is_numbered_so_that_resuming_after_it_misses_nothing() -> None:
    record = gap_record(100, 5)
    assert record.seq == 99
    assert decode_event(record.line) == StreamGap(seq=99, ts=5, oldest=100)
    assert encode_event(decode_event(record.line)) == record.line
