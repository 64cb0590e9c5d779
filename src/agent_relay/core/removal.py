"""Taking an agent's name off the lists: on the owner's order (CONTROL `remove`), or when an agent that was to leave nothing ends.

What was said stays in the history, and what it sent still arrives. What waits for it never will: whoever sent that is told, and
on the owner's order it becomes a dead letter. The name is free for whoever comes next; `forget` is for erasing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_relay.core.agents import Traits
from agent_relay.core.commit import Committer
from agent_relay.core.context import Context
from agent_relay.core.owed_mail import OwedMail
from agent_relay.core.registry import Registry
from agent_relay.core.tokens import Tokens
from agent_relay.ports.connection import NOBODY_UID
from agent_relay.ports.names import NameTraits
from agent_relay.ports.store import Batch, MemberRow, StoreError, SubscriptionRow
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import did_you_mean, show

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

Tell = Callable[["int | RelayError"], None]  # how many messages waited for it


class Removal:
    def __init__(
        self, context: Context, registry: Registry, tokens: Tokens, committer: Committer, owed: OwedMail, registered: NameTraits
    ) -> None:  # fmt: skip
        self._context = context
        self._registry = registry
        self._tokens = tokens
        self._committer = committer
        self._owed = owed
        self._registered = registered

    def find(self, name: str) -> Agent:
        """Raises RelayError where there is none that could be removed."""
        agent = self._registry.find(name)
        if agent is None or agent.hidden:
            known = did_you_mean(name, list(self._registry.names()))
            raise RelayError(
                ErrorCode.AGENT_NOT_FOUND,
                f"No agent {show(name)} has ever connected, or it was removed.",
                name=show(name, 80),
                did_you_mean=known,
            )
        if agent.is_registered:
            sentence = self._registered.removal.replace("{name}", agent.name)
            raise RelayError(ErrorCode.REJECTED, sentence, reason=f"{self._registered.kind}_name", name=agent.name)
        return agent

    def remove(self, agent: Agent, tell: Tell, *, has_letters: bool) -> None:
        """Of one that does not run. `has_letters`: what waits for it becomes dead letters."""
        before = (agent.uid, agent.traits)
        patterns, channels = sorted(agent.subscriptions), sorted(agent.channels)
        self._hide(agent)
        buried = 0

        def fill(batch: Batch) -> None:
            batch.agents.append(agent.row())
            batch.subscriptions += [SubscriptionRow(agent.name, pattern, active=False) for pattern in patterns]
            batch.members += [MemberRow(channel, agent.name, active=False) for channel in channels]

        def settled(error: StoreError | None) -> None:
            if error is None:
                bury()
                return
            agent.hidden = False
            agent.uid, agent.traits = before
            for pattern in patterns:
                self._registry.subscribe(agent, pattern)
            for channel in channels:
                self._registry.join(agent, channel)
            sentence = f"{agent.name} could not be removed ({error}). Try again."
            tell(RelayError(ErrorCode.SERVICE_UNAVAILABLE, sentence, retry_after_ms=1_000))

        def ended(count: int) -> None:
            nonlocal buried
            buried += count
            self._committer.when_written(bury if agent.mailbox.reserved else done)

        def bury() -> None:
            """Also what was being stored meanwhile; unless somebody has taken the name, whose mail that is then."""
            if agent.hidden:
                self._owed.bury(agent, ended, is_kept=has_letters)
            else:
                done()

        def done() -> None:
            self._context.log.note("removed", agent=agent.name, waiting=buried)
            tell(buried)

        self._committer.change(fill, settled)

    def _hide(self, agent: Agent) -> None:
        agent.hidden = True
        agent.uid = NOBODY_UID
        agent.traits = Traits(first_number=agent.traits.first_number)
        agent.notices.clear()
        self._tokens.revoke(agent)
        for pattern in list(agent.subscriptions):
            self._registry.unsubscribe(agent, pattern)
        for channel in list(agent.channels):
            self._registry.leave(agent, channel)
