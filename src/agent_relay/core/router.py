"""Recipients of a message: the table of `to` in the wire contract, row by row."""

from __future__ import annotations

from agent_relay.core.agents import Agent
from agent_relay.core.registry import Registry
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import BROADCAST, CHANNEL_MARK, did_you_mean, is_channel, is_name, is_topic, show

# Who gets it; whom to name as addressed in the history; what DELIVER says in `to` (None: each recipient's own name); and
# whether it is for many (`*`, a channel, a topic), so that a full recipient is skipped instead of refusing the message.
Route = tuple[list[Agent], str, str | None, bool]


class Router:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def resolve(self, sender: Agent, to: str | list[str] | None, topic: str) -> Route:
        """Raises RelayError where nobody can be meant."""
        if topic and not is_topic(topic):
            raise RelayError(
                ErrorCode.INVALID_FORMAT,
                f"{show(topic)} is not a topic: use tokens separated by dots, without wildcards or spaces.",
                field="topic",
            )
        if isinstance(to, str):
            agent = self._registry.by_name.get(to)
            if agent is not None and not agent.hidden:  # exactly as registered; every other form is looked at below
                return [agent], to, None, False
            return self._resolve_one(sender, to, topic)
        if to is None:
            return self._resolve_topic(sender, topic)
        return self._resolve_list(to)

    def _resolve_one(self, sender: Agent, to: str, topic: str) -> Route:
        if to == BROADCAST:
            agents = self._connected_listeners(sender, topic) if topic else list(self._registry.connected.values())
            return [agent for agent in agents if agent is not sender], BROADCAST, BROADCAST, True
        if to[:1] == CHANNEL_MARK:
            return self._resolve_channel(sender, to)
        agent = self.find(to)
        return [agent], agent.name, None, False

    def _resolve_topic(self, sender: Agent, topic: str) -> Route:
        if not topic:
            raise RelayError(ErrorCode.INVALID_FORMAT, "The message has neither a recipient in `to` nor a `topic`.", field="to")
        recipients = [agent for agent in self._connected_listeners(sender, topic) if agent is not sender]
        return recipients, "", None, True

    def _resolve_channel(self, sender: Agent, to: str) -> Route:
        if not is_channel(to):
            raise RelayError(ErrorCode.INVALID_TARGET, f"{show(to)} is not a channel: a channel is '#' plus a name.", field="to")
        channel = self._registry.channel(to)
        if channel is None:
            known = [members.name for members in self._registry.channels.values()]
            raise RelayError(
                ErrorCode.CHANNEL_NOT_FOUND,
                f"There is no channel {to}; the first to join creates it.",
                channel=to,
                did_you_mean=did_you_mean(to, known),
            )
        recipients = [agent for agent in channel.members.values() if agent is not sender]
        return recipients, channel.name, channel.name, True

    def _resolve_list(self, to: list[str]) -> Route:
        if not to:
            raise RelayError(ErrorCode.INVALID_TARGET, "`to` is an empty list.", field="to")
        recipients = {agent.key: agent for agent in map(self.find, to)}
        target = ",".join(agent.name for agent in recipients.values())
        return list(recipients.values()), target, None, False

    def resolve_known(self, sender: Agent, to: str | list[str] | None) -> Route:
        """For a sender whose contract says that whoever is not known is passed over; raises where nobody is left."""
        if isinstance(to, str):
            agent = self._registry.by_name.get(to)
            if agent is not None and not agent.hidden:
                return [agent], to, None, False
        if to == BROADCAST or not to:
            return self.resolve(sender, to, "")
        names = [to] if isinstance(to, str) else to
        known = [name for name in names if (found := self._registry.find(name)) is not None and not found.hidden]
        return self._resolve_list(known or names)

    def find(self, name: str, field: str = "to") -> Agent:
        """The one agent of that name; `field` is where the name stood."""
        agent = self._registry.find(name)
        if agent is not None and not agent.hidden:
            return agent
        if not is_name(name):
            raise RelayError(
                ErrorCode.INVALID_TARGET, f"{show(name)} cannot be an agent's name.", field=field, name=show(name, 80)
            )
        raise RelayError(
            ErrorCode.AGENT_NOT_FOUND,
            f"No agent {name} has ever connected.",
            name=name,
            did_you_mean=did_you_mean(name, list(self._registry.names())),
        )

    def _connected_listeners(self, sender: Agent, topic: str) -> list[Agent]:
        """Of the topic, and of whatever the sender says to many."""
        connected = self._registry.connected
        found = dict.fromkeys((*self._registry.listeners(topic), *self._registry.followers(sender)))
        return [agent for agent in found if agent.key in connected]
