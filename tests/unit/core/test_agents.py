"""An agent and its row: what survives a restart about it."""

from __future__ import annotations

from agent_relay.core.agents import Agent, Traits, restore_agent


def make_agent() -> Agent:
    agent = Agent("Bob", 1_000, 77, 10)
    agent.cli = "claude"
    agent.last_seen_at = 99
    agent.session_id = "ses_x"
    agent.token_hash = "h1"
    agent.previous_token_hash = "h0"
    agent.traits = Traits(meta={"task": "ünïcode", "n": 1}, capabilities=["ack"], version=2, max_inflight=3)
    return agent


def test_a_row_restores_the_agent() -> None:
    agent = make_agent()
    restored = restore_agent(agent.row(), 10)
    assert restored.row() == agent.row()
    assert restored.traits == agent.traits
    assert (restored.key, restored.connected) == ("bob", False)


def test_a_stream_is_one_per_sender_and_topic_whatever_the_case() -> None:
    agent, sender = make_agent(), Agent("Alice", 1_000, 0, 10)
    plain, news = agent.stream_from(sender, ""), agent.stream_from(sender, "news")
    assert plain is not news
    assert agent.stream_from(Agent("ALICE", 1_000, 0, 10), "") is plain
    assert (plain.sender, plain.recipient, news.topic) == ("Alice", "Bob", "news")


def test_two_agents_share_nothing() -> None:
    first, second = Agent("A", 0, 0, 10), Agent("B", 0, 0, 10)
    first.traits.meta["x"] = 1
    first.subscriptions.add("t")
    first.notices.append(("ACK", {}))
    assert (second.traits.meta, second.subscriptions, second.notices) == ({}, set(), [])
