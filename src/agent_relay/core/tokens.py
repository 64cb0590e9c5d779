"""Resume tokens: who may take up a session again, and how a stolen one shows.

A token is kept as its hash only. Every WELCOME and SYNC hands out a new one; the one before stays good until a frame
from the client shows that it has the new one, and is spent from then on. A spent token that comes back was copied.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import Enum, auto
from typing import TYPE_CHECKING

from agent_relay.core.context import Context
from agent_relay.core.journal import Journal

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.ports.store import SpentToken


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class TokenVerdict(Enum):
    GOOD = auto()
    EXPIRED = auto()
    REPLAYED = auto()  # spent by this very agent: somebody has a copy
    FOREIGN = auto()  # another agent's, or another user's
    UNKNOWN = auto()


class Tokens:
    def __init__(self, context: Context, journal: Journal, spent: list[SpentToken]) -> None:
        self._context = context
        self._journal = journal
        self._owners: dict[str, Agent] = {}  # hash of a token that is good → whose
        self._spent: dict[str, tuple[str, int]] = {row.token_hash: (row.agent.lower(), row.spent_at) for row in spent}

    def adopt(self, agent: Agent) -> None:
        """An agent restored from the store."""
        for token_hash in (agent.token_hash, agent.previous_token_hash):
            if token_hash:
                self._owners[token_hash] = agent

    def judge(self, agent: Agent | None, token: str, uid: int) -> TokenVerdict:
        token_hash = hash_token(token)
        spent_by, _ = self._spent.get(token_hash, (None, 0))
        if spent_by is not None:
            return TokenVerdict.REPLAYED if agent is not None and spent_by == agent.key else TokenVerdict.FOREIGN
        owner = self._owners.get(token_hash)
        if owner is None:
            return TokenVerdict.UNKNOWN
        if owner is not agent or agent.uid != uid or not _is_current(agent, token_hash):
            return TokenVerdict.FOREIGN
        away_ms = 0 if agent.connected else self._context.wall_ms - agent.last_seen_at
        return TokenVerdict.EXPIRED if away_ms > self._context.limits.resume_ttl_ms else TokenVerdict.GOOD

    def issue(self, agent: Agent, presented: str | None) -> str:
        """A new token; the one that was presented, if any, stays good until the new one is known to have arrived."""
        self.forget(agent)
        token = self._context.entropy.token()
        agent.token_hash = hash_token(token)
        agent.previous_token_hash = hash_token(presented) if presented is not None else None
        self.adopt(agent)
        return token

    def confirm(self, agent: Agent) -> None:
        """The client has its new token."""
        previous, agent.previous_token_hash = agent.previous_token_hash, None
        if previous is not None:
            self._owners.pop(previous, None)
            self._spent[previous] = (agent.key, self._context.wall_ms)
            self._journal.token_spent(previous, agent.name)
            self._journal.agent_changed(agent)

    def revoke(self, agent: Agent) -> None:
        self.forget(agent)
        agent.token_hash = ""
        agent.previous_token_hash = None
        self._journal.agent_changed(agent)

    def drop(self, agent: Agent) -> None:
        """It could not be registered."""
        self.forget(agent)
        self._journal.agent_dropped(agent)

    def restore(self, agent: Agent, token_hash: str, previous: str | None) -> None:
        """Undoes an `issue` that could not be made durable."""
        self.forget(agent)
        agent.token_hash, agent.previous_token_hash = token_hash, previous
        self.adopt(agent)

    def forget_old(self) -> None:
        """Spent tokens older than any session could be need no watching."""
        oldest = self._context.wall_ms - self._context.limits.resume_ttl_ms
        for token_hash in [token_hash for token_hash, (_, at) in self._spent.items() if at < oldest]:
            del self._spent[token_hash]

    def forget(self, agent: Agent) -> None:
        """Its tokens are nobody's from now on."""
        self._owners.pop(agent.token_hash, None)
        if agent.previous_token_hash is not None:
            self._owners.pop(agent.previous_token_hash, None)


def _is_current(agent: Agent, token_hash: str) -> bool:
    previous = agent.previous_token_hash or ""
    return hmac.compare_digest(token_hash, agent.token_hash) or hmac.compare_digest(token_hash, previous)
