"""An answer fits into a frame, and a page ends where the next message would not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.core.lookups.pages import read_cursor, read_place, take_conversations, take_what_fits
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.ulid import number_of
from tests.support.harness import RelayHarness

AROUND_BYTES = 2_048


def shown(body: str) -> dict[str, Any]:
    return {"message_id": "msg_x", "kind": "message", "payload": {"body": body, "data": {"x": body}}, "payload_meta": None,
            "recipients": [{"name": "Bob", "seq": 1, "status": "done"}]}  # fmt: skip


@given(st.lists(st.integers(0, 3_000), max_size=12), st.integers(4_096, 12_000))
def test_what_is_taken_fits_and_is_the_beginning(sizes: list[int], limit: int) -> None:
    messages = [shown("x" * size) for size in sizes]
    taken, was_all = take_what_fits(messages, limit)
    assert was_all == (taken == messages)
    assert len(json.dumps(taken, separators=(",", ":"))) <= limit - AROUND_BYTES + len(taken) + 2
    if messages:
        assert taken
    if taken and "truncated" not in taken[0]:
        assert taken == messages[: len(taken)]


@given(st.text(min_size=1, max_size=20))
def test_one_that_is_too_large_is_cut_short_and_says_so(words: str) -> None:
    body = words * (6_000 // len(words))
    (cut,), was_all = take_what_fits([shown(body)], 6_000)
    assert not was_all
    assert cut["truncated"] is True
    assert body.startswith(cut["payload"]["body"])
    assert "data" not in cut["payload"]
    assert len(json.dumps(cut, ensure_ascii=False, separators=(",", ":")).encode()) <= 6_000


def test_a_long_history_comes_in_pages_that_fit_and_miss_nothing() -> None:
    relay = RelayHarness(max_frame_bytes=8_192)
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    for number in range(20):
        alice.send("Bob", f"{number}:" + "x" * 1_500)
    alice.send("Bob", "large:" + "y" * 5_000, payload={"data": {"z": "z" * 2_000}})
    bodies, cursor, pages = [], None, 0
    while True:
        bob.take()
        bob.say("HISTORY", {"limit": 50, "cursor": cursor})
        (frame,) = bob.take("HISTORY_RESULT")
        assert len(json.dumps(frame)) <= 8_192
        bodies += [message["payload"]["body"].split(":")[0] for message in frame["payload"]["messages"]]
        cursor, pages = frame["payload"]["next_cursor"], pages + 1
        if cursor is None:
            break
    assert bodies == ["large", *(str(number) for number in range(19, -1, -1))]
    assert pages > 5


def test_a_message_is_a_place_to_go_on_from() -> None:
    ulid = "01KA2V8Z5T7Q4M9C3XKJ0000A1"
    assert read_place(f"msg_{ulid}") == number_of(ulid)
    assert (read_place("42"), read_place(None)) == (42, None)
    for wrong in ("msg_1", "msg_" + "Z" * 26, ulid, "x", "9" * 20):
        with pytest.raises(RelayError, match=r"cursor is not valid|not a message id"):
            read_place(wrong)
    with pytest.raises(RelayError):
        read_cursor(f"msg_{ulid}")


def test_conversations_fit_into_a_frame() -> None:
    many = [{"key": "x" * 500} for _ in range(20)]
    taken = take_conversations(many, AROUND_BYTES + 2_600)
    assert taken == many[:5]
    assert take_conversations(many, 1_000_000) == many
