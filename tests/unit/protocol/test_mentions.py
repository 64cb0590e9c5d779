"""Mentions in a message to a channel."""

from __future__ import annotations

import pytest

from agent_relay.protocol.mentions import is_mentioned


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@Bob please look", True), ("please look, @bob.", True), ("(@Bob)", True), ("@Bob's turn", True), ("@Bobby", False),
        ("Bob", False), ("mail bob@example.org", False), ("x@Bob", False), ("@all: lunch", True), ("@everyone", True),
        ("@allen", False), ("@Bob-2", False), ("@", False), ("https://x.org/@Bob", False), ("one\n@BOB\ntwo", True),
    ],
)  # fmt: skip
def test_who_is_mentioned(text: str, expected: bool) -> None:
    assert is_mentioned("Bob", text) is expected


def test_a_name_may_end_in_a_mark() -> None:
    assert is_mentioned("Bob.", "ask @Bob.")
    assert is_mentioned("Bob", "ask @Bob...")
