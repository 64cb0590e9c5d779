"""Names that are registered with a transport, which are theirs for ever, and whom their agents are subscribed to.

Implements `ports.names.AgentNames`. A name is in the registry from the moment it is claimed, so that nobody else can take it, and
belongs to no user of this machine, so that no client of the socket can say HELLO with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agent_relay.core.agents import Agent
from agent_relay.core.commit import Committer
from agent_relay.core.context import Context
from agent_relay.core.owed_mail import OwedMail
from agent_relay.core.registry import FOLLOWS, Registry
from agent_relay.core.rights import is_persons_name
from agent_relay.ports.connection import NOBODY_UID, REGISTERED_UID
from agent_relay.ports.store import Batch, StoreError, SubscriptionRow
from agent_relay.protocol.names import fold_name


class RegisteredNames:
    def __init__(
        self,
        context: Context,
        registry: Registry,
        committer: Committer,
        owed: OwedMail,
        kind: str,
        is_arriving: Callable[[str], bool],
    ) -> None:
        self._context = context
        self._registry = registry
        self._committer = committer
        self._owed = owed
        self._kind = kind  # as what their agents are listed
        self._is_arriving = is_arriving
        self._watchers: list[Callable[[str, bool], None]] = []

    # --- names --------------------------------------------------------------------------------------------------------

    def claim(self, name: str) -> bool:
        known = self._registry.find(name)
        if self._is_arriving(name) or (known is not None and known.uid != NOBODY_UID):
            return False
        if is_persons_name(name, self._context.limits.owner):
            return False
        if known is None:
            self._add(name)
        else:
            known.begin_anew(REGISTERED_UID, self._context.wall_ms, self._context.ids.reserve(self._context.wall_ms)[1])
            known.cli = self._kind
        return True

    def _add(self, name: str) -> Agent:
        agent = Agent(name, REGISTERED_UID, self._context.wall_ms, self._context.limits.dedup_ids)
        agent.cli = self._kind
        agent.hidden = True
        self._registry.add(agent)
        return agent

    def abandon(self, name: str) -> None:
        agent = self._find(name)
        if agent is not None and agent.hidden:
            if agent.streams:  # it was freed before, and the numbers of its streams go on
                agent.uid = NOBODY_UID
            else:
                self._registry.remove(agent)

    def register(self, name: str, done: Callable[[StoreError | None], None]) -> None:
        agent = self._find(name)
        assert agent is not None, "a name is claimed before it is registered"

        def settled(error: StoreError | None) -> None:
            if error is None:
                agent.hidden = False
            done(error)

        self._save(agent, settled)

    def _save(self, agent: Agent, settled: Callable[[StoreError | None], None]) -> None:
        def fill(batch: Batch) -> None:
            batch.agents.append(agent.row())

        self._committer.change(fill, settled)

    def retire(self, name: str) -> None:
        agent = self._find(name)
        if agent is not None:
            agent.hidden = True

    def free(self, name: str, done: Callable[[StoreError | None], None]) -> None:
        agent = self._find(name)
        if agent is None:  # it was, before somebody pulled the plug
            done(None)
            return
        followed = list(agent.subscriptions)
        agent.hidden = True
        agent.uid = NOBODY_UID
        self._set(agent, followed, active=False)
        self._owed.bury(agent)

        def fill(batch: Batch) -> None:
            batch.agents.append(agent.row())
            batch.subscriptions += [SubscriptionRow(agent.name, pattern, active=False) for pattern in sorted(followed)]

        def settled(error: StoreError | None) -> None:
            self._owed.bury(agent)  # what was being stored when the name was freed
            done(error)

        self._committer.change(fill, settled)

    def adopt(self, current: Iterable[str], revoked: Iterable[str]) -> None:
        """Brings both stores together, which may differ: the daemon can be killed between two writes, and people copy files."""
        known = {fold_name(name): False for name in current} | {fold_name(name): True for name in revoked}
        for agent in self._registry.agents.values():
            if agent.is_registered and agent.key not in known:
                agent.hidden = True
        for key, hidden in known.items():
            agent_ = self._registry.agents.get(key)
            if agent_ is None:
                agent_ = self._add(key)
                self._save(agent_, lambda _error: None)
            if agent_.is_registered:
                agent_.hidden = hidden
            else:
                self._context.log.note(f"{self._kind}_name_conflict", agent=agent_.name)

    def _find(self, name: str) -> Agent | None:
        agent = self._registry.find(name)
        return agent if agent is not None and agent.is_registered else None

    # --- who is there ---------------------------------------------------------------------------------------------------

    def when_written(self, then: Callable[[], None]) -> None:
        self._committer.when_written(then)

    def present(self) -> list[tuple[str, bool]]:
        registry = self._registry
        return [(agent.name, agent.key in registry.connected) for agent in registry.agents.values() if not agent.hidden]

    def watch(self, changed: Callable[[str, bool], None]) -> None:
        self._watchers.append(changed)

    def changed(self, agent: Agent, *, is_here: bool) -> None:
        for watcher in self._watchers:
            watcher(agent.name, is_here)

    # --- subscriptions --------------------------------------------------------------------------------------------------

    def follow(self, name: str, others: Iterable[str], done: Callable[[StoreError | None], None], *, active: bool) -> None:
        agent = self._find(name)
        assert agent is not None
        wanted = {FOLLOWS + fold_name(other) for other in others}
        changed = wanted - agent.subscriptions if active else wanted & agent.subscriptions
        self._set(agent, changed, active=active)

        def settled(error: StoreError | None) -> None:
            if error is not None:
                self._set(agent, changed, active=not active)
            done(error)

        def fill(batch: Batch) -> None:
            batch.subscriptions += [SubscriptionRow(agent.name, pattern, active=active) for pattern in sorted(changed)]

        self._committer.change(fill, settled)

    def _set(self, agent: Agent, patterns: Iterable[str], *, active: bool) -> None:
        change = self._registry.subscribe if active else self._registry.unsubscribe
        for pattern in patterns:
            change(agent, pattern)

    def followed(self, name: str) -> list[str]:
        agent = self._find(name)
        found = () if agent is None else agent.subscriptions
        return sorted(pattern.removeprefix(FOLLOWS) for pattern in found if pattern.startswith(FOLLOWS))
