"""Shadows are announced: both sides are told as messages, once for each change, when they are there to hear it.

What an agent was told last is a document of the store, so a restart repeats nothing; a crash at that very moment may.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from agent_relay.core.announcements import TRANSIENT
from agent_relay.core.context import Context
from agent_relay.core.registry import Registry
from agent_relay.core.rights import is_persons_name
from agent_relay.core.sending import Sending
from agent_relay.core.teams.shadows import Shadows
from agent_relay.core.voice import find_voice
from agent_relay.protocol.shadows import describe_traffic

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

DOCUMENT = "shadows"
KIND = "shadows"

Keep = Callable[[str, bytes], None]


class ShadowNotices:
    """`found`: the documents of the store."""

    def __init__(
        self, context: Context, registry: Registry, sending: Sending, shadows: Shadows, keep: Keep, found: Mapping[str, bytes]
    ) -> None:  # fmt: skip
        self._context = context
        self._registry = registry
        self._sending = sending
        self._shadows = shadows
        self._keep = keep
        self._told: dict[str, str] = {}  # by key: the last that each agent was told
        try:
            self._told = msgspec.json.decode(found.get(DOCUMENT) or b"{}", type=dict[str, str])
        except msgspec.MsgspecError as error:  # then they are told once more
            context.log.note("shadows_unreadable", error=str(error))

    def changed(self) -> None:
        """There are other shadows than before."""
        for agent in list(self._registry.connected.values()):
            self.opened(agent)

    def opened(self, agent: Agent) -> None:
        """It is here, and hears what it was not told yet. The owner, who set it up, needs no word."""
        if not self._shadows.all and not self._told:
            return
        if agent.traits.meta.get(TRANSIENT) is True or is_persons_name(agent.name, self._context.limits.owner):
            return
        text = self._describe(agent)
        if text == self._told.get(agent.key, ""):
            return
        said = text or "Nobody gets copies of your messages any more, and you get none of others'."
        mark = hashlib.sha256(f"{self._told.get(agent.key)}\n{text}".encode()).hexdigest()[:12]
        voice = find_voice(self._context, self._registry, self._sending)
        key = f"shadows-{agent.key}-{self._context.wall_ms}-{mark}"
        self._sending.post(
            voice, [agent], {"kind": KIND, "body": said}, key, lambda is_stored: self._stored(agent, text, is_stored=is_stored)
        )

    def _stored(self, agent: Agent, text: str, *, is_stored: bool) -> None:
        if not is_stored:
            return  # the next time that it comes, it is told
        self._told.pop(agent.key, None)
        if text:
            self._told[agent.key] = text
        self._told = {key: each for key, each in self._told.items() if self._registry.find(key) is not None}
        self._keep(DOCUMENT, msgspec.json.encode(self._told) if self._told else b"")

    def _describe(self, agent: Agent) -> str:
        lines = [
            f"{each.shadow} gets a copy of what {describe_traffic(each.traffic, 'you')}." for each in self._shadows.of(agent)
        ]
        lines += [f"You get a copy of what {describe_traffic(each.traffic, each.of)}." for each in self._shadows.by(agent)]
        if not lines:
            return ""
        if self._shadows.by(agent):
            lines.append("Copies are marked as such. Nobody waits for your answer to one.")
        return " ".join([*lines, "The relay's owner has set this up."])
