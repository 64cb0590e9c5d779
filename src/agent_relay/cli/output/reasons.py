"""Reasons on the screen: why messages wait, below a list of agents and behind what was sent or is explained; and why an agent is
not reached in a better way, as its wrapper reported it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_relay.cli.output.formats import format_minute, now_ms
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.person import person
from agent_relay.protocol.holds import describe_hold, show_hold
from agent_relay.protocol.message_states import MessageState
from agent_relay.protocol.visible_text import reveal

if TYPE_CHECKING:
    from agent_relay.cli.output.screen import Screen
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.views import AgentInfo

_UNDELIVERED = {MessageState.QUEUED, MessageState.SENT}
_MOST_SHOWN = 5  # of a message to many
# What nobody can do anything about, and the columns of a list say already.
_PLAIN = {"offline", "working", "starting", "unacknowledged"}


def hold_line(agent: AgentInfo) -> str:
    """The whole sentence; empty where nothing holds it."""
    if agent.hold is None:
        return ""
    return clean_line(reveal(describe_hold(agent.hold, agent.name, _show_time, person()).line))


def show_holds(screen: Screen, agents: Iterable[AgentInfo]) -> None:
    """A line for each agent that a person should know about."""
    held = [agent for agent in agents if agent.hold is not None and (agent.hold.reason not in _PLAIN or _has_waiting(agent))]
    if held:
        screen.line()
    for agent in held:
        screen.line((clean_line(agent.name), "bold"), "  ", (hold_line(agent), "yellow"))


def agent_for_programs(agent: AgentInfo) -> dict[str, Any]:
    """As the daemon describes it, and the sentences of its hold."""
    return {**agent.raw, "hold": show_hold(agent.raw, _show_time, person())}


def waiting_lines(message: Mapping[str, Any], agents: Iterable[AgentInfo]) -> list[tuple[str, str]]:
    """(recipient, why) of those that have not got the message yet."""
    known = {agent.name.lower(): agent for agent in agents}
    undelivered = [str(one.get("name")) for one in _addressed(message) if one.get("status") in _UNDELIVERED]
    lines = [(name, hold_line(known[name.lower()])) for name in undelivered if name.lower() in known]
    return [(name, line) for name, line in lines if line]


def _addressed(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Without those who only get a copy."""
    return [one for one in message.get("recipients") or () if not one.get("copy")]


async def explain_waiting(relay: RelayClient, message_id: str) -> list[tuple[str, str]]:
    """The reason why a message that was sent is not delivered yet, for each recipient where that is known."""
    message = (await relay.message(message_id)).message
    if not any(one.get("status") in _UNDELIVERED for one in _addressed(message)):
        return []
    return waiting_lines(message, (await relay.agents()).agents)


def show_waiting(screen: Screen, lines: list[tuple[str, str]]) -> None:
    for name, line in lines[:_MOST_SHOWN]:
        screen.line(("waits", "yellow"), "  ", (clean_line(name), "bold"), f": {line}")
    if len(lines) > _MOST_SHOWN:
        screen.line(f"and {len(lines) - _MOST_SHOWN} more; `agent-relay agents` shows why.")


def _has_waiting(agent: AgentInfo) -> bool:
    return bool(agent.queue_depth + agent.inflight)


def _show_time(at_ms: int) -> str:
    return format_minute(at_ms, now_ms())


class BetterWay(NamedTuple):
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
