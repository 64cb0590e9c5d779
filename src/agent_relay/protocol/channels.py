"""Channels, put together from what the daemon tells of agents and of conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class ChannelFacts(NamedTuple):
    """One that has members, or in which something was said."""

    name: str
    members: tuple[str, ...]
    messages: int
    last_at: int | None  # milliseconds since 1970; None: nothing was said yet


def gather_channels(agents: Iterable[Mapping[str, Any]], conversations: Iterable[Mapping[str, Any]]) -> list[ChannelFacts]:
    """By name; from the agents of AGENTS and the conversations of HISTORY_RESULT."""
    members: dict[str, list[str]] = {}
    for agent in agents:
        for channel in agent.get("channels") or ():
            members.setdefault(channel, []).append(agent["name"])
    said = {each["key"]: each for each in conversations if each["type"] == "channel"}
    facts = []
    for name in sorted({*members, *said}):
        conversation = said.get(name)
        count, last_at = (0, None) if conversation is None else (conversation["count"], conversation["last"]["ts"])
        facts.append(ChannelFacts(name, tuple(members.get(name, ())), count, last_at))
    return facts
