"""Agents that register with a transport: their names belong to a registration there, and to no user of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct

from agent_relay.ports.store import StoreError

RowDone = Callable[["StoreError | None"], None]


class NameTraits(Struct, frozen=True):
    """Registered names, as the transport that registers them describes them to the core."""

    kind: str = "registered"  # as what their agents are listed
    keeps_offline: bool = True  # messages wait for one that is not connected; False: it gets nothing
    removal: str = "{name} is registered."  # said to an owner who tries to remove one: how to end a registration


class AgentNames(Protocol):
    """The core's side of registrations and subscriptions."""

    def claim(self, name: str) -> bool:
        """The name is this registration's from now on, and nobody can write to it yet. False: somebody has it."""
        ...

    def abandon(self, name: str) -> None:
        """A claim that came to nothing."""
        ...

    def register(self, name: str, done: RowDone) -> None:
        """From when this is durable, the claimed name can be written to."""
        ...

    def retire(self, name: str) -> None:
        """Nobody can write to it any more; the name stays taken."""
        ...

    def free(self, name: str, done: RowDone) -> None:
        """A retired name is anybody's from when this is durable. What waited for its holder becomes dead letters: whoever
        takes the name next is somebody else."""
        ...

    def adopt(self, current: Iterable[str], revoked: Iterable[str]) -> None:
        """At the start: all registrations there are."""
        ...

    def follow(self, name: str, others: Iterable[str], done: RowDone, *, active: bool) -> None:
        """`name` subscribes to what these say to many, or not any more."""
        ...

    def followed(self, name: str) -> list[str]:
        """The agents it is subscribed to, sorted."""
        ...

    def when_written(self, then: Callable[[], None]) -> None:
        """Calls back once everything that was said so far can be found in the history."""
        ...

    def present(self) -> list[tuple[str, bool]]:
        """Every agent that can be written to, registered or not, and whether it is connected."""
        ...

    def watch(self, changed: Callable[[str, bool], None]) -> None:
        """Calls back whenever an agent has come (True) or gone."""
        ...
