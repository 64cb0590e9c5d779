"""Channels put together from agents and conversations."""

from __future__ import annotations

from agent_relay.protocol.channels import ChannelFacts, gather_channels


def test_channels_have_members_or_a_history_or_both() -> None:
    agents = [{"name": "Bob", "channels": ["#dev", "#general"]}, {"name": "Carol", "channels": ["#general"]}, {"name": "Dave"}]
    said = [
        {"type": "channel", "key": "#general", "count": 3, "last": {"ts": 7}},
        {"type": "channel", "key": "#old", "count": 1, "last": {"ts": 5}},
        {"type": "pair", "key": "bob,carol", "count": 9, "last": {"ts": 9}},
    ]
    assert gather_channels(agents, said) == [
        ChannelFacts("#dev", ("Bob",), 0, None),
        ChannelFacts("#general", ("Bob", "Carol"), 3, 7),
        ChannelFacts("#old", (), 1, 5),
    ]
