"""Small pieces of the daemon's own state, and the places they are kept in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Documents(Protocol):
    """Kept with the messages, so that whichever host of a cluster has the seat next finds them."""

    def find(self, prefix: str) -> dict[str, bytes]:
        """Those whose names begin so."""
        ...

    def put(self, name: str, content: bytes, then: Callable[[], None] | None = None) -> None:
        """In place of an earlier one; an empty one is removed. `then` is called once that is durable."""
        ...


class Shelf(Protocol):
    """The place for one piece of state. Both are quick."""

    def load(self) -> bytes:
        """Nothing: there is none. Raises OSError."""
        ...

    def save(self, content: bytes) -> None:
        """Raises OSError."""
        ...
