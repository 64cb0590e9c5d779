"""Reasons why an agent is not reached in a better way, as its wrapper reported it: one source for all commands that tell it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_relay.cli.safe_text import clean_line

if TYPE_CHECKING:
    from agent_relay.cli.screen import Screen
    from agent_relay.sdk.views import AgentInfo


class BetterWay(Struct, frozen=True):
    door: str
    reason: str  # a sentence
    mend: str  # what to do; empty: nothing

    @property
    def text(self) -> str:
        return f"{self.door} is not used: {self.reason}"


def better_ways(agent: AgentInfo) -> list[BetterWay]:
    """The best first; none where the best is in use, or no program is wrapped."""
    if not agent.connected:
        return []
    return [BetterWay(*(clean_line(str(one.get(name, ""))) for name in ("door", "reason", "mend"))) for one in agent.unused_doors]


def show_better_ways(screen: Screen, agents: Iterable[AgentInfo]) -> None:
    for agent in agents:
        for way in better_ways(agent):
            name, door = clean_line(agent.name), clean_line(agent.door or "")
            screen.line((name, "bold"), f" is reached by {door}; {way.text}")
            if way.mend:
                screen.line(("  → ", "dim"), way.mend)
