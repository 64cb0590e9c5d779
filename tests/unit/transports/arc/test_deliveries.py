"""What is cut out of a row is what is read from it, whoever wrote it and in whatever order messages come."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_relay.ports.store import MessageRow
from agent_relay.protocol.arc.client_frames import read_said
from agent_relay.protocol.arc.translation import encode_tail, make_payload
from agent_relay.protocol.encode import encode_tail as encode_stored_tail
from agent_relay.protocol.ulid import encode_bits, encode_time
from agent_relay.transports.arc import deliveries as module
from agent_relay.transports.arc.deliveries import Deliveries
from agent_relay.transports.arc.frames import encode_text
from tests.support.store_driver import make_message
from tests.unit.protocol.arc.test_client_frames import JSON

ARC = {"ann-1", "bob-1"}
OPENED_MS = 1_000


def make_row(
    place: int, sender: str, to: str, topic: str, payload: bytes, meta: bytes, recipients: int, ts: int = 5
) -> MessageRow:
    return make_message(
        place, id=f"msg_{encode_time(ts)}{encode_bits(place, 16)}", sender=sender, target=to, topic=topic,
        tail=encode_stored_tail(sender, topic, payload, meta),
        recipients=tuple((f"bob-{number}", 1) for number in range(1, recipients + 1)),
    )  # fmt: skip


def encode_with_care(row: MessageRow, accepted_ms: int, agent_id: str) -> bytes:
    to, from_arc, stored = row.target or agent_id, row.sender in ARC, accepted_ms < OPENED_MS
    return encode_text(encode_tail(row.id, row.sender, to, row.topic, row.tail, from_arc=from_arc, stored=stored))


def say(**fields: Any) -> bytes:
    return make_payload(read_said(json.dumps(fields).encode()))[0]


SAID = st.builds(lambda payload: say(to=["bob-1"], payload=payload), JSON | st.text(max_size=200))
TYPED = st.builds(lambda payload, kind: say(to=["bob-1"], payload=payload, type=kind), JSON, st.text())
MORE = st.dictionaries(st.sampled_from(["data", "kind"]), st.text(), max_size=2) | st.just({"arc": {}})
STYLES = st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :")])
SENT = st.builds(  # by a client of the socket, which writes as it likes
    lambda body, more, style: json.dumps({"body": body} | more, separators=style).encode(), st.text(), MORE, STYLES
)
PLACES, COUNTS = st.integers(1, 1_000), st.integers(1, 3)
ROWS = st.builds(
    make_row, PLACES, st.sampled_from(["ann-1", "bob-1", "Sock"]), st.sampled_from(["bob-1", "*", "a-1,b-1"]), st.just(""),
    SAID | TYPED | SENT, st.sampled_from([b"", b'{"x":"y"}']), COUNTS, st.sampled_from([1, 1_700_000_000_000]),
) | st.builds(
    make_row, PLACES, st.just("Sock"), st.sampled_from(["", "bob-1"]), st.just("news"), SENT, st.just(b""), COUNTS
)  # fmt: skip
HANDED = st.lists(st.tuples(ROWS, st.sampled_from([OPENED_MS - 1, OPENED_MS])), max_size=6, unique_by=lambda one: one[0].id)


def hand(payload: bytes, meta: bytes = b"") -> list[tuple[MessageRow, int]]:
    return [(make_row(1, "ann-1", "bob-1", "", payload, meta, 1), OPENED_MS)]


@given(messages=HANDED)
@example(messages=hand(b'{"body":"x","data":"y"}'))
@example(messages=hand(b'{"body":"x" }'))
@example(messages=hand(b'{"body":"x","data":5}'))
@example(messages=hand(b'{"body":"x"}', b'{"body":"y"}'))
@example(messages=hand(b'{"body":"' + b"x" * 65_535 + b'"}'))
@example(messages=hand(b'{"body":"' + b"x" * 65_430 + b'"}'))
@example(messages=hand(b'{"body":""}'))
@example(messages=hand(rb'{"body":"a \"word\" and \\"}'))
def test_everybody_gets_what_is_read_from_the_row(messages: list[tuple[MessageRow, int]]) -> None:
    deliveries = Deliveries(ARC)
    for agent_id in ("bob-1", "bob-2"):
        wanted = [encode_with_care(row, accepted_ms, agent_id) for row, accepted_ms in messages]
        assert deliveries.encode(messages, agent_id, OPENED_MS) == b"".join(wanted)


def test_each_of_many_has_its_own_sender_recipient_and_moment() -> None:
    kinds = [
        ("ann-1", "bob-1", 5),
        ("bob-1", "bob-1", 5),
        ("bob-1", "*", 5),
        ("bob-1", "*", 6),
        ("Sock", "bob-1", 6),
        ("ann-1", "bob-1", 5),
    ]
    rows = [
        make_row(place, sender, to, "", say(to=["bob-1"], payload=f"text {place}"), b"", 1, ts)
        for place, (sender, to, ts) in enumerate(kinds * 2)
    ]
    found = Deliveries(ARC).encode([(row, OPENED_MS) for row in rows], "bob-1", OPENED_MS)
    assert found == b"".join(encode_with_care(row, OPENED_MS, "bob-1") for row in rows)


@pytest.mark.parametrize("moments", [(OPENED_MS, OPENED_MS - 1), (OPENED_MS - 1, OPENED_MS)], ids=["live first", "stored first"])
def test_one_gets_it_live_and_the_other_from_the_store(moments: tuple[int, int]) -> None:
    deliveries = Deliveries(ARC)
    row = make_row(1, "ann-1", "*", "", say(to=["*"], payload="text"), b"", 2)
    for accepted_ms in moments:
        assert deliveries.encode([(row, accepted_ms)], "bob-1", OPENED_MS) == encode_with_care(row, accepted_ms, "bob-1")


@pytest.mark.parametrize("recipients", [1, 2])
def test_a_message_is_read_once_at_most(recipients: int, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def encode(message_id: str, *parts: Any, **more: Any) -> bytes:
        read.append(message_id)
        return encode_tail(message_id, *parts, **more)

    monkeypatch.setattr(module, "encode_tail", encode)
    deliveries = Deliveries(ARC)
    rows = [make_row(place, "ann-1", "*", "", say(to=["*"], payload="text"), b"", recipients) for place in range(1, 11)]
    for number in range(1, recipients + 1):
        deliveries.encode([(row, OPENED_MS) for row in rows], f"bob-{number}", OPENED_MS)
    assert read == ([] if recipients == 1 else [row.id for row in rows])  # the text of a single one's is cut out


def test_no_more_frames_are_kept_than_some() -> None:
    deliveries = Deliveries(ARC)
    rows = [make_row(place, "ann-1", "*", "", say(to=["*"], payload="text"), b"", 2) for place in range(1, 2_001)]
    deliveries.encode([(row, OPENED_MS) for row in rows], "bob-1", OPENED_MS)
    assert 0 < len(deliveries._frames) <= 256
