"""What is said of agents that only answer each other: a word in the table, and below it how they go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_relay.cli.safe_text import clean_line

if TYPE_CHECKING:
    from agent_relay.cli.screen import Screen
    from agent_relay.sdk.views import AgentInfo


def loop_note(agent: AgentInfo) -> str:
    return f"{agent.loop.get('stage')}, see below" if agent.loop else ""


def show_loops(screen: Screen, agents: Sequence[AgentInfo]) -> None:
    """A line for each ring."""
    rings: dict[tuple[str, ...], list[AgentInfo]] = {}
    for agent in agents:
        if agent.loop:
            rings.setdefault(tuple(map(str, agent.loop.get("agents") or ())), []).append(agent)
    for ring, members in rings.items():
        loops = [agent.loop for agent in members if agent.loop]
        hops = max(int(loop.get("hops") or 0) for loop in loops)
        stage = "held" if any(loop.get("stage") == "held" for loop in loops) else "slowed"
        names = ", ".join(ring)
        screen.line()
        screen.line(
            (f"Messages are {stage}", "yellow"),
            clean_line(f": {names} have answered each other {hops} times without new input. They go on when one of them is"),
        )
        screen.line(
            clean_line(f"written to, by a person or a program, or with: agent-relay resume {ring[0] if ring else 'NAME'}")
        )
