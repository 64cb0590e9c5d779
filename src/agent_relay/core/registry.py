"""The registry: agents known, agents connected, and listeners. Names are compared without regard to case everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from agent_relay.core.agents import Agent
from agent_relay.protocol.names import fold_name, pattern_matches

FOLLOWS = "from "  # and a key: what that agent says to many. No topic and no pattern of a client has a space in it
_CACHED_TOPICS = 1_024  # topics seen lately, with their listeners; beyond that the cache starts anew


class ChannelMembers:
    __slots__ = ("has_history", "members", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_history = False  # something was said in it: it stays when the last member leaves
        self.members: dict[str, Agent] = {}


class Registry:
    def __init__(self) -> None:
        self.agents: dict[str, Agent] = {}  # by key
        self.by_name: dict[str, Agent] = {}  # by name as shown: what most senders write
        self.connected: dict[str, Agent] = {}  # with an open session, in the order they came
        self.channels: dict[str, ChannelMembers] = {}
        self._listeners: dict[str, dict[str, Agent]] = {}  # pattern → who
        self._by_topic: dict[str, tuple[Agent, ...]] = {}

    def find(self, name: str) -> Agent | None:
        return self.by_name.get(name) or self.agents.get(fold_name(name))

    def add(self, agent: Agent) -> None:
        self.agents[agent.key] = agent
        self.by_name[agent.name] = agent

    def remove(self, agent: Agent) -> None:
        self.agents.pop(agent.key, None)
        self.by_name.pop(agent.name, None)
        self.connected.pop(agent.key, None)
        for pattern in list(agent.subscriptions):
            self.unsubscribe(agent, pattern)
        for channel in list(agent.channels):
            self.leave(agent, channel)
        for other in self.agents.values():
            for key in [key for key in other.streams if key[1] == agent.key]:
                del other.streams[key]

    # --- topics ---------------------------------------------------------------------------------------------------

    def subscribe(self, agent: Agent, pattern: str) -> None:
        agent.subscriptions.add(pattern)
        self._listeners.setdefault(pattern, {})[agent.key] = agent
        self._by_topic.clear()

    def unsubscribe(self, agent: Agent, pattern: str) -> None:
        agent.subscriptions.discard(pattern)
        listeners = self._listeners.get(pattern)
        if listeners is not None:
            listeners.pop(agent.key, None)
            if not listeners:
                del self._listeners[pattern]
        self._by_topic.clear()

    def listeners(self, topic: str) -> tuple[Agent, ...]:
        """Everyone with a subscription that matches, each once, connected or not."""
        found = self._by_topic.get(topic)
        if found is None:
            matching: dict[str, Agent] = {}
            for pattern, agents in self._listeners.items():
                if pattern_matches(pattern, topic):
                    matching.update(agents)
            if len(self._by_topic) >= _CACHED_TOPICS:
                self._by_topic.clear()
            found = self._by_topic[topic] = tuple(matching.values())
        return found

    def followers(self, agent: Agent) -> Iterable[Agent]:
        """Agents that subscribed to that agent, connected or not."""
        return self._listeners.get(FOLLOWS + agent.key, {}).values()

    # --- channels -------------------------------------------------------------------------------------------------

    def channel(self, name: str) -> ChannelMembers | None:
        return self.channels.get(fold_name(name))

    def open_channel(self, name: str) -> ChannelMembers:
        return self.channels.setdefault(fold_name(name), ChannelMembers(name))

    def join(self, agent: Agent, channel: str) -> None:
        members = self.open_channel(channel)
        members.members[agent.key] = agent
        agent.channels.add(members.name)

    def leave(self, agent: Agent, channel: str) -> None:
        members = self.channel(channel)
        if members is not None:
            members.members.pop(agent.key, None)
            agent.channels.discard(members.name)
            if not members.members and not members.has_history:
                del self.channels[fold_name(channel)]

    def names(self) -> Iterable[str]:
        return (agent.name for agent in self.agents.values() if not agent.hidden)
