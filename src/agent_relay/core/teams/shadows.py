"""Copies of messages for shadows: by the owner's setting, and by the team that the owner confirmed.

A copy is one more delivery of the same message, numbered, kept and repeated like any other. But its shadow is no recipient:
nobody is told that it has the message, refuses it or lets it expire, it answers no question, and its full queue stops nobody.
While there are no shadows, nothing of this is looked at when a message passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agent_relay.core.context import Context
from agent_relay.core.registry import Registry
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.shadows import CAPABILITY, Shadowing, describe_shadowings

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent


class Shadows:
    def __init__(self, context: Context, registry: Registry) -> None:
        self._context = context
        self._registry = registry
        self._own = context.limits.shadows
        self._known: dict[str, tuple[Shadowing, ...]] = {}  # by the key of whoever is shadowed
        self.all: tuple[Shadowing, ...] = self._own

    def take_team(self, shadowings: Iterable[Shadowing]) -> None:
        """Those of the team, in place of those of the team before."""
        self.all = tuple(dict.fromkeys((*self._own, *shadowings)))
        self._known.clear()

    def of(self, agent: Agent) -> tuple[Shadowing, ...]:
        """Those by which others get copies of its messages."""
        found = self._known.get(agent.key)
        if found is None:
            found = tuple(each for each in self.all if each.is_of(agent.name) and fold_name(each.shadow) != agent.key)
            self._known[agent.key] = found
        return found

    def by(self, agent: Agent) -> tuple[Shadowing, ...]:
        """Those by which it gets copies."""
        return tuple(each for each in self.all if fold_name(each.shadow) == agent.key)

    def find(self, sender: Agent, recipients: list[Agent]) -> list[Agent]:
        """Those who get a copy of the message, each once; never whoever sent it or gets it anyway. The relay's own words are
        nobody's traffic."""
        if not self.all or sender.hidden:
            return []
        names = {each.shadow: None for each in self.of(sender) if each.hears_outgoing}
        for recipient in recipients:
            names |= {each.shadow: None for each in self.of(recipient) if each.hears_incoming}
        involved = {sender.key, *(recipient.key for recipient in recipients)}
        found = {agent.key: agent for agent in map(self._registry.find, names) if agent is not None and self._can_be(agent)}
        return [agent for key, agent in found.items() if key not in involved]

    def _can_be(self, agent: Agent) -> bool:
        """An agent of this machine's owner, whose program tells copies from messages."""
        is_own = not agent.hidden and not agent.is_registered and agent.uid not in self._context.limits.allowed_uids
        return is_own and CAPABILITY in agent.traits.capabilities

    def describe(self, agent: Agent) -> tuple[list[str], list[str]]:
        """For lists: whose messages it gets, and who gets its own."""
        return describe_shadowings(self.by(agent)), list(dict.fromkeys(each.shadow for each in self.of(agent)))
