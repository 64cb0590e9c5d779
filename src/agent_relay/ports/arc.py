"""ARC, as the parts see each other: what is kept of a registration, who keeps it, hooks.

An agent over ARC is an agent like any other inside: it has a name, a mailbox, streams. What is ARC's own is the registration:
who may come in under a name, which is nobody else's from then on.
"""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from agent_relay.ports.names import RowDone


class ArcRow(Struct, frozen=True):
    """One registration. It stays until the owner frees its name: no id is given out twice before."""

    agent_id: str
    token_hash: str
    registered_at: int  # all times by the wall clock
    expires_at: int | None = None  # of the token
    old_token_hash: str | None = None  # the one before it, which is good for a little longer
    old_expires_at: int | None = None
    revoked_at: int | None = None


class InvitationRow(Struct, frozen=True):
    """Lets somebody register who has no API token. Its code is known by its hash alone."""

    id: str  # how the owner names it; not secret
    code_hash: str
    agent_id: str | None  # the one id it is for; None: any
    uses_left: int
    made_at: int
    expires_at: int


class ArcBook(Struct):
    """Everything there is."""

    registrations: list[ArcRow] = []
    invitations: list[InvitationRow] = []


class ArcStore(Protocol):
    def open(self) -> ArcBook:
        """Blocks until it is ready; raises StoreUnusable."""
        ...

    def write(self, row: ArcRow | InvitationRow, done: RowDone) -> None:
        """Makes it durable, in place of an earlier one of the same id; calls back on the loop, exactly once."""
        ...

    def erase(self, row: ArcRow | InvitationRow, done: RowDone) -> None:
        """Makes it durable that there is none of this id."""
        ...

    def close(self) -> None:
        """Blocks until everything given to `write` is durable."""
        ...


class Hook(Protocol):
    """An extension of the relay that others write. Every method is called in a thread of the hook's own, one after another.

    Any of the methods may be missing. One that fails is logged, one that is slow falls behind and misses some; routing does
    not notice either.
    """

    name: str  # announced in the welcome, under `extensions`

    def joined(self, agent_id: str) -> None: ...

    def left(self, agent_id: str) -> None: ...

    def routed(self, message: dict[str, Any]) -> None:
        """A message from an ARC agent that was given to the relay, as it came."""
        ...

    def command(self, agent_id: str, command: str, payload: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a command that the relay itself does not know; None: it is not known here either."""
        ...
