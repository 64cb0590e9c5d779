"""A message keeps its meaning over a bridge, and over two of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.bridge.directions import MessageContent, from_arc, to_arc


@pytest.mark.parametrize(
    ("payload", "there"),
    [
        ({"body": "hi"}, "hi"),
        ({"body": "hi", "kind": "message"}, "hi"),
        ({"body": "hi", "kind": "action"}, {"body": "hi", "kind": "action"}),
        ({"body": "hi", "data": {"n": 1}, "thread": None}, {"body": "hi", "data": {"n": 1}}),
    ],
)
def test_a_text_is_a_text_there(payload: dict[str, Any], there: Any) -> None:
    assert to_arc(payload) == there


@pytest.mark.parametrize(
    ("payload", "here"),
    [
        ("hi", MessageContent("hi")),
        ({"body": "hi", "kind": "action", "thread": "t"}, MessageContent("hi", "action", "t")),
        ({"n": 1}, MessageContent('{"n":1}', data={"n": 1})),
        ({"body": "hi", "more": 1}, MessageContent('{"body":"hi","more":1}', data={"body": "hi", "more": 1})),
        ({"body": "hi", "kind": "No Kind", "thread": 7, "data": 3}, MessageContent("hi")),
        ([1, "é"], MessageContent('[1,"é"]')),
        (None, MessageContent("null")),
    ],
)
def test_anything_from_there_is_a_message_here(payload: Any, here: MessageContent) -> None:
    assert from_arc(payload) == here


@given(
    st.text(min_size=1), st.sampled_from(["message", "action", "state"]), st.none() | st.text(max_size=20),
    st.none() | st.dictionaries(st.text(max_size=5), st.integers() | st.text()),
)  # fmt: skip
def test_over_two_bridges_it_is_what_it_was(body: str, kind: str, thread: str | None, data: dict[str, Any] | None) -> None:
    payload = {"body": body, "kind": kind, "thread": thread, "data": data}
    assert from_arc(to_arc(payload)) == MessageContent(body, kind, thread, data)
