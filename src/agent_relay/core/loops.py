"""The loop guard: agents that only answer each other are slowed, and then held until somebody says something new.

Only agents that the relay runs are guarded. New input is a message from anybody else, what a person types to an agent or
tells it through the relay, and a new session; it begins a chain (see `core.chains`). A message far along a chain waits in
its recipient's queue, and everything behind it waits with it, so nothing is lost or changes places: for a while that grows
with every hop, and in the end until new input reaches the recipient or anyone of the ring. A message of a chain older than
the newest one that has reached its recipient never waits.

All of this is in memory: after a restart of the daemon every message that still waits counts as new input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_relay.core.announcements import publish
from agent_relay.core.chains import Chain, Hop, Stage, Standing
from agent_relay.core.context import Context
from agent_relay.core.journal import Journal
from agent_relay.core.mailbox import NEVER
from agent_relay.events.types import LoopDetected
from agent_relay.protocol.holds import Hold, HoldReason, encode_waits

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery

_FIRST_DELAY_MS = 2_000
_DELAY_GROWTH = 1.5
_LONGEST_DELAY_MS = 30_000
_GROWTH_ENDS = 10  # hops; the longest delay is reached before


class Loops:
    """`wake` has the ledger look at an agent's queue again."""

    def __init__(self, context: Context, journal: Journal, wake: Callable[[Agent], None]) -> None:
        self._context = context
        self._journal = journal
        self._wake = wake
        self._slow_after = context.limits.loop_slow_after
        self._hold_after = context.limits.loop_hold_after
        self._chains = 0
        self._closed: dict[str, Agent] = {}  # agents whose queue waits for time or for new input

    # --- new input --------------------------------------------------------------------------------------------------

    def connected(self, agent: Agent, *, guarded: bool) -> None:
        standing = agent.loop
        if not guarded or not (self._slow_after or self._hold_after):
            self.look_again(agent)
            agent.loop = None
        elif standing is None:
            agent.loop = Standing(self._begin(), agent.session_id)
        elif standing.session_id != agent.session_id:  # somebody has started it anew
            standing.session_id = agent.session_id
            self.new_input(agent)

    def new_input(self, agent: Agent) -> None:
        if agent.loop is not None:
            self._move(agent, agent.loop, self._begin())

    def _begin(self) -> Chain:
        self._chains += 1
        return Chain(self._chains)

    def _move(self, agent: Agent, standing: Standing, chain: Chain) -> None:
        """Something newer has reached this agent: a ring that it is part of is none any more."""
        left = standing.chain
        standing.move(chain)
        waited_for = [other.loop.barrier.chain for other in self._closed.values() if other.loop and other.loop.barrier]
        for old in dict.fromkeys((left, *waited_for)):
            if agent in old.ring:
                self._context.log.note("loop_opened", agents=_names(old))
                old.ring.clear()
                old.floor = old.highest
        for other in self._closed.values():
            self._wake(other)

    # --- a message's way --------------------------------------------------------------------------------------------

    def arrived(self, standing: Standing, delivery: Delivery) -> None:
        """A message has come into a guarded agent's queue."""
        hop = delivery.message.hop
        if delivery.replay or delivery.is_copy:
            return
        if hop is None:
            self.new_input(delivery.recipient)
            return
        stage = self._stage(standing, hop)
        if stage is not None:
            self._notice(hop, stage)
            self._note(delivery, hop, stage)
        elif hop.chain.number > standing.chain.number:  # somebody's new input, passed on
            self._move(delivery.recipient, standing, hop.chain)

    def look_again(self, recipient: Agent) -> None:
        """Whether its queue has to wait is decided anew."""
        if recipient.loop is not None:
            recipient.loop.barrier = None
            self._closed.pop(recipient.key, None)

    def lets_go(self, standing: Standing, delivery: Delivery) -> bool:
        """Whether the first message in a guarded agent's queue may go on the wire; if not, the others wait behind it."""
        hop = None if delivery.is_copy else delivery.message.hop
        stage = None if hop is None else self._stage(standing, hop)
        if hop is None or stage is None:
            return True
        until = NEVER if stage is Stage.HELD else delivery.message.accepted + self._delay_ms(hop)
        if until <= self._context.steady_ms:
            return True
        standing.barrier, standing.until = hop, until
        self._closed[delivery.recipient.key] = delivery.recipient
        return False

    def heard(self, standing: Standing, delivery: Delivery) -> None:
        """A guarded agent has acknowledged a message. A copy gives it nothing to do."""
        if delivery.is_copy:
            return
        hop = delivery.message.hop
        if hop is None:
            self.new_input(delivery.recipient)
        else:
            standing.hear(hop)

    def clock_says(self, now: int) -> None:
        for agent in self._closed.values():
            if agent.loop is not None and agent.loop.until <= now:
                self._wake(agent)

    def _stage(self, standing: Standing, hop: Hop) -> Stage | None:
        if hop.chain.number < standing.chain.number:
            return None
        if self._hold_after and hop.depth >= self._hold_after:
            return Stage.HELD
        return Stage.SLOWED if self._slow_after and hop.depth >= self._slow_after else None

    def _delay_ms(self, hop: Hop) -> int:
        further = min(hop.depth - self._slow_after, _GROWTH_ENDS)
        return min(round(_FIRST_DELAY_MS * _DELAY_GROWTH**further), _LONGEST_DELAY_MS)

    # --- saying so --------------------------------------------------------------------------------------------------

    def _note(self, delivery: Delivery, hop: Hop, stage: Stage) -> None:
        """In the message's trail: why it waits."""
        self._journal.noted(delivery, "waits", encode_waits(_hold(hop, stage)))

    def _notice(self, hop: Hop, stage: Stage) -> None:
        """Tells whoever is part of it and was not told yet."""
        ring = hop.chain.ring
        untold = [agent for agent in dict.fromkeys(hop.speakers) if ring.get(agent, 0) < stage]
        if not untold:
            return
        ring.update(dict.fromkeys(untold, stage))
        names = _names(hop.chain)
        fields = {"agents": names, "hops": hop.depth, "stage": stage.word}
        self._context.log.note("loop_detected", **fields)
        text = _explain(names, hop.depth, stage)
        event = {"type": "loop.detected", "fields": fields | {"text": text}}
        for agent in untold:
            publish(self._context, agent, LoopDetected(agents=tuple(names), hops=hop.depth, stage=stage.word, text=text))
            if agent.loop is not None and agent.peer is not None and agent.peer.active:
                agent.peer.say("AGENT_EVENT", event)

    def hold_of(self, agent: Agent) -> Hold | None:
        """Why its queue waits; None: not because of a loop."""
        standing = agent.loop
        if standing is None or standing.barrier is None:
            return None
        return _hold(standing.barrier, Stage.HELD if standing.until == NEVER else Stage.SLOWED)

    def describe(self, agent: Agent) -> dict[str, Any] | None:
        """The entry in LIST_AGENTS of an agent that is part of a ring, or has to wait because of one."""
        standing = agent.loop
        if standing is None:
            return None
        chain = standing.chain if standing.barrier is None else standing.barrier.chain
        if not chain.ring or (standing.barrier is None and agent not in chain.ring):
            return None
        stage = chain.ring.get(agent) or max(chain.ring.values())
        return {"stage": stage.word, "hops": chain.highest - chain.floor, "agents": _names(chain)}


def _hold(hop: Hop, stage: Stage) -> Hold:
    reason = HoldReason.LOOP_GUARD if stage is Stage.HELD else HoldReason.LOOP_SLOWED
    return Hold(reason.value, count=hop.depth)


def _names(chain: Chain) -> list[str]:
    return sorted(agent.name for agent in chain.ring)


def _explain(names: list[str], hops: int, stage: Stage) -> str:
    """For the agents, and for people: how to go on, and no way to go on without anybody."""
    who = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    begin = f"{who} have answered each other {hops} times without new input."
    if stage is Stage.HELD:
        return f"{begin} Further messages wait until a person types or sends something to one of them."
    return (
        f"{begin} Messages to them are now delivered more and more slowly. Do not answer if there is nothing left to say; "
        "anything a person types or sends to one of them ends this."
    )
