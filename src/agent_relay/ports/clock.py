"""Time, as the program is told it. Deadlines use the steady clock; what people and files see uses the wall clock."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def steady_ms(self) -> int:
        """Milliseconds that only ever go forward, at an unspecified start."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as the machine believes; may jump either way."""
        ...
