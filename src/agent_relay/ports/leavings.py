"""Leavings of an agent besides messages: events, and the files of its wrapper. The core orders that it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from agent_relay.ports.store import StoreError


class Left(Struct, frozen=True):
    """The amount that was removed."""

    events: int = 0
    files: int = 0


LeftDone = Callable[["Left | StoreError"], None]


class Leavings(Protocol):
    def is_held(self, agent: str) -> bool:
        """A wrapper of that name runs, connected or not."""
        ...

    def erase(self, agent: str, done: LeftDone) -> None:
        """Returns at once, and calls back from the loop, exactly once."""
        ...


class NoLeavings:
    """Leavings where nothing else is kept."""

    def is_held(self, agent: str) -> bool:
        del agent
        return False

    def erase(self, agent: str, done: LeftDone) -> None:
        del agent
        done(Left())
