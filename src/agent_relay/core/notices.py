"""Telling a sender what became of its message, now or when it comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_relay.core.context import Context

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent


def tell(context: Context, agent: Agent, kind: str, payload: dict[str, Any]) -> None:
    peer = agent.peer
    if peer is not None and peer.active:
        peer.say(kind, payload)
    elif len(agent.notices) < context.limits.notice_capacity:
        agent.notices.append((kind, payload))


def tell_what_was_missed(agent: Agent) -> None:
    notices, agent.notices = agent.notices, []
    assert agent.peer is not None
    for kind, payload in notices:
        agent.peer.say(kind, payload)
