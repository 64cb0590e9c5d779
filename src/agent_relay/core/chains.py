"""Chains of messages that answer each other, which the loop guard counts, and the place of each guarded agent in one.

A chain begins with a new input, and later chains have higher numbers. What an agent says after it has heard something
is one hop further in that chain, so a hop counts alike whether two agents answer each other or twenty pass the word round.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from agent_relay.core.mailbox import NEVER

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

_SPEAKERS_KEPT = 20  # the last ones to speak are the ring; of a larger one, only so many are named


class Stage(IntEnum):
    """The progress of an agent with a chain."""

    SLOWED = 1
    HELD = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class Chain:
    __slots__ = ("floor", "highest", "number", "ring")

    def __init__(self, number: int) -> None:
        self.number = number
        self.highest = 0  # the longest way from its beginning
        self.floor = 0  # hops up to here do not count: there was new input since
        self.ring: dict[Agent, Stage] = {}  # who answers whom, once that was noticed, and how far each was told


class Hop(NamedTuple):
    """A message's place in a chain."""

    chain: Chain
    hops: int  # from the chain's beginning
    speakers: tuple[Agent, ...]  # the last ones on the way here; the message's sender is the last

    @property
    def depth(self) -> int:
        """Hops since the last new input."""
        return self.hops - self.chain.floor


class Standing:
    """A guarded agent's place: the newest chain that has reached it, and how far along that it has heard."""

    __slots__ = ("barrier", "chain", "hops", "session_id", "speakers", "until")

    def __init__(self, chain: Chain, session_id: str) -> None:
        self.session_id = session_id
        self.barrier: Hop | None = None  # what stands first in its queue and may not go yet
        self.until = NEVER  # when it may; NEVER: not before there is new input
        self.move(chain)

    def move(self, chain: Chain) -> None:
        self.chain = chain
        self.hops = 0
        self.speakers: tuple[Agent, ...] = ()

    def hear(self, hop: Hop) -> None:
        """The newest chain counts, and in it the longest way."""
        if hop.chain.number > self.chain.number or (hop.chain is self.chain and hop.hops > self.hops):
            self.chain, self.hops, self.speakers = hop

    def speak(self, agent: Agent) -> Hop:
        chain = self.chain
        hops = max(self.hops, chain.floor) + 1
        chain.highest = max(chain.highest, hops)
        return Hop(chain, hops, (*self.speakers[1 - _SPEAKERS_KEPT :], agent))
