"""Letting go of what is too old to matter: messages, dead letters, spent tokens, ended sessions, agents long away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_relay.core.commit import Committer
from agent_relay.core.context import Context
from agent_relay.core.journal import Journal
from agent_relay.core.registry import Registry
from agent_relay.core.spawned.orders import Spawning
from agent_relay.core.tokens import Tokens
from agent_relay.ports.store import Batch, DeadLetterQuery, DeadLetterRow, MessageRow, MessageStore, StoreError
from agent_relay.protocol.ulid import first_number_at

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

_EVERY_MS = 10_000
_MESSAGES_AT_ONCE = 500  # small enough that a sender never notices the transaction before its own
_LETTERS_AT_ONCE = 500  # for the same reason


class Housekeeping:
    def __init__(
        self, context: Context, registry: Registry, tokens: Tokens, journal: Journal, committer: Committer, store: MessageStore,
        spawning: Spawning,
    ) -> None:  # fmt: skip
        self._context = context
        self._registry = registry
        self._tokens = tokens
        self._journal = journal
        self._committer = committer
        self._store = store
        self._spawning = spawning
        self._done_at = context.steady_ms
        self._pruning = False
        self._forgetting = False  # dead letters

    def clock_says(self, now: int) -> None:
        if now - self._done_at < _EVERY_MS:
            return
        self._done_at = now
        self._tokens.forget_old()
        self._forget_agents()
        self._forget_dead_letters()
        self._spawning.forget_old(self._context.wall_ms - self._context.limits.message_retention_ms)
        self._prune_messages()

    def _prune_messages(self) -> None:
        if self._pruning:
            return
        self._pruning = True

        def pruned(count: int | StoreError) -> None:
            self._pruning = False
            if isinstance(count, int) and count >= _MESSAGES_AT_ONCE:
                self._done_at = self._context.steady_ms - _EVERY_MS  # there is more: go on at the next tick

        self._store.prune(self._context.wall_ms - self._context.limits.message_retention_ms, _MESSAGES_AT_ONCE, pruned)

    def _forget_dead_letters(self) -> None:
        """A page at a time; the next one once these are gone from the store."""
        if self._forgetting or not self._journal.dead_letters:
            return
        self._forgetting = True
        oldest = first_number_at(self._context.wall_ms - self._context.limits.message_retention_ms)

        def found(letters: list[tuple[DeadLetterRow, MessageRow]] | StoreError) -> None:
            self._forgetting = False
            old = [] if isinstance(letters, StoreError) else [letter for letter, _ in letters if letter.number < oldest]
            for letter in old:
                self._journal.revived(letter.number, letter.recipient)
            if len(old) == _LETTERS_AT_ONCE:
                self._committer.when_written(self._forget_dead_letters)

        self._store.dead_letters(DeadLetterQuery(after=(0, ""), limit=_LETTERS_AT_ONCE), found)

    def _forget_agents(self) -> None:
        """Whoever has been away that long, and is owed nothing, is a stranger again."""
        oldest = self._context.wall_ms - self._context.limits.message_retention_ms
        for agent in list(self._registry.agents.values()):
            if agent.is_registered:  # its name is its own for ever
                continue
            if agent.peer is None and agent.last_seen_at < oldest and agent.mailbox.idle and not agent.mailbox.reserved:
                self._forget(agent)

    def _forget(self, agent: Agent) -> None:
        def fill(batch: Batch) -> None:
            batch.forgotten.append(agent.name)

        self._registry.remove(agent)
        self._tokens.forget(agent)
        self._committer.change(fill, lambda _error: None)
        self._context.log.note("forgotten", agent=agent.name)
