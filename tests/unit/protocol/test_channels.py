"""Channels put together from agents and conversations."""

from __future__ import annotations

import pytest

from agent_relay.protocol.channels import MAX_TOPIC_LINE, ChannelFacts, gather_channels, read_topic_line
from agent_relay.protocol.errors import RelayError


def test_channels_have_members_or_a_history_or_both() -> None:
    agents = [{"name": "Bob", "channels": ["#dev", "#general"]}, {"name": "Carol", "channels": ["#general"]}, {"name": "Dave"}]
    said = [
        {"type": "channel", "key": "#general", "count": 3, "last": {"ts": 7}},
        {"type": "channel", "key": "#old", "count": 1, "last": {"ts": 5}},
        {"type": "pair", "key": "bob,carol", "count": 9, "last": {"ts": 9}},
    ]
    assert gather_channels(agents, said, {"#dev": "Work"}) == [
        ChannelFacts("#dev", ("Bob",), 0, None, "Work"),
        ChannelFacts("#general", ("Bob", "Carol"), 3, 7),
        ChannelFacts("#old", (), 1, 5),
    ]


def test_a_topic_line_is_one_line() -> None:
    assert read_topic_line("  the new\n parser ", "text") == "the new parser"
    assert read_topic_line(" ", "text") == ""


def test_one_that_is_too_long_is_refused() -> None:
    with pytest.raises(RelayError, match="`text` must be one line"):
        read_topic_line("x" * (MAX_TOPIC_LINE + 1), "text")
