"""Agents that only answer each other, in the table of agents and below it."""

from __future__ import annotations

import io

import pytest

from agent_relay.cli.agent_table import show_agents
from agent_relay.cli.screen import Screen
from agent_relay.sdk.views import AgentInfo, read_agent

LOOP = {"stage": "held", "hops": 60, "agents": ["Alice", "Bob"]}


def shown(*agents: AgentInfo) -> str:
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        patch.setenv("COLUMNS", "200")
        show_agents(Screen(), agents)
    return out.getvalue()


def agent(name: str, **fields: object) -> AgentInfo:
    return read_agent({"name": name, "connected": True, "state": "idle", **fields})


def test_a_ring_is_explained_once_and_marked_at_each_of_its_agents() -> None:
    text = shown(agent("Alice", loop=LOOP), agent("Bob", loop=LOOP), agent("Carol", loop=None))
    assert text.count("held, see below") == 2
    assert text.count("Alice, Bob have answered each other 60 times without new input.") == 1
    assert "agent-relay resume Alice" in text


def test_two_rings_are_two() -> None:
    other = {"stage": "slowed", "hops": 31, "agents": ["Carol", "Dan"]}
    text = shown(agent("Alice", loop=LOOP), agent("Carol", loop=other), agent("Dan", loop=other))
    assert "Messages are held: Alice, Bob" in text
    assert "Messages are slowed: Carol, Dan" in text


def test_without_a_loop_nothing_is_said() -> None:
    assert "below" not in shown(agent("Alice"))
    assert "Messages" not in shown(agent("Alice"))
