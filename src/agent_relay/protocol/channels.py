"""Channels, put together from what the daemon tells of agents and of conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agent_relay.protocol.errors import ErrorCode, RelayError

AT_LEISURE, AWAKE = "at-leisure", "awake"  # TYPE of a `join` in the header format
MAX_TOPIC_LINE = 200  # characters; it is shown on one line


class ChannelFacts(NamedTuple):
    """One that has members, or in which something was said."""

    name: str
    members: tuple[str, ...]
    messages: int
    last_at: int | None  # milliseconds since 1970; None: nothing was said yet
    topic_line: str = ""  # what it is for; "": nobody said


def name_attention(at_leisure: bool | None) -> str | None:
    """The TYPE of a `join`; None: as it was."""
    return None if at_leisure is None else AT_LEISURE if at_leisure else AWAKE


def read_topic_line(text: str, field: str) -> str:
    """On one line, without spaces around it; raises RelayError. Whoever shows it makes what cannot be printed harmless."""
    line = " ".join(text.split())
    if len(line) > MAX_TOPIC_LINE:
        raise RelayError(
            ErrorCode.INVALID_FORMAT, f"`{field}` must be one line of at most {MAX_TOPIC_LINE} characters.", field=field
        )
    return line


def gather_channels(
    agents: Iterable[Mapping[str, Any]], conversations: Iterable[Mapping[str, Any]], topic_lines: Mapping[str, str]
) -> list[ChannelFacts]:
    """By name; from the agents and the topic lines of AGENTS, and the conversations of HISTORY_RESULT."""
    members: dict[str, list[str]] = {}
    for agent in agents:
        for channel in agent.get("channels") or ():
            members.setdefault(channel, []).append(agent["name"])
    said = {each["key"]: each for each in conversations if each["type"] == "channel"}
    facts = []
    for name in sorted({*members, *said}):
        conversation = said.get(name)
        count, last_at = (0, None) if conversation is None else (conversation["count"], conversation["last"]["ts"])
        facts.append(ChannelFacts(name, tuple(members.get(name, ())), count, last_at, topic_lines.get(name, "")))
    return facts
