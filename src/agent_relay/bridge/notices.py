"""Notices of a bridge, for whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Counts:
    sent: int = 0  # to the remote relay
    received: int = 0  # from it
    refused: int = 0  # either way, and whoever sent it was told where that is possible


@dataclass(frozen=True, slots=True)
class Notice:
    what: str  # joined, lost, back, peer, sent, received, refused, waiting, warning
    text: str  # a sentence
    details: dict[str, Any] = field(default_factory=dict)


class Notices:
    def __init__(self, listener: Callable[[Notice], None]) -> None:
        self.counts = Counts()
        self._listener = listener

    def tell(self, what: str, text: str, **details: Any) -> None:
        self._listener(Notice(what, text, details))

    def tell_refused(self, text: str, **details: Any) -> None:
        self.counts.refused += 1
        self.tell("refused", text, **details)
