"""Why an agent gets no messages now, as far as the daemon knows it: from its connection, its queue and what it reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_relay.protocol.holds import Hold, HoldReason

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.loops import Loops
    from agent_relay.protocol.reports import StateReport
    from agent_relay.protocol.requests import OpenRequest


def find_hold(agent: Agent, loops: Loops, requests: list[OpenRequest], waiting: int) -> Hold | None:
    """The reason that has to end first. `requests`: what it asks people; `waiting`: how many messages wait for it."""
    peer = agent.peer
    if peer is None or not peer.active:
        return Hold(HoldReason.OFFLINE.value, since=agent.last_seen_at)
    looping = loops.hold_of(agent)
    if looping is not None:
        return looping
    if agent.report is not None:
        return _reported(agent.report, requests, waiting)
    if not waiting:
        return None
    is_full = peer.connection.is_full
    return Hold((HoldReason.NOT_READING if is_full else HoldReason.UNACKNOWLEDGED).value)


def _reported(said: StateReport, requests: list[OpenRequest], waiting: int) -> Hold | None:
    """The hold that a wrapper reports of its agent."""
    if said.paused:
        return Hold(HoldReason.KEYBOARD.value) if said.keyboard else Hold(HoldReason.PAUSED.value, by=said.paused_by or "")
    if said.state == "waiting":
        id_, kind = next(((found.request.id, found.request.kind) for found in requests), ("", ""))
        return Hold(HoldReason.DIALOG.value, said.waiting_for or "", request=id_, kind=kind)
    if said.hold is not None:
        return Hold(said.hold, said.hold_detail or "")
    if not waiting:
        return None
    if said.state in {"starting", "working"}:
        return Hold(HoldReason(said.state).value)
    return Hold(HoldReason.UNACKNOWLEDGED.value)
