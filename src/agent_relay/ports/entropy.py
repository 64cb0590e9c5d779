"""Randomness, so that a simulation can have it from a seed."""

from __future__ import annotations

from typing import Protocol


class Entropy(Protocol):
    def fraction(self) -> float:
        """Uniform in [0, 1), for jitter."""
        ...

    def bits(self, count: int) -> int:
        """Unpredictable bits, for ids."""
        ...

    def token(self) -> str:
        """256 unpredictable bits as url-safe text, for credentials."""
        ...
