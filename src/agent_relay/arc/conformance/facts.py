"""Facts that the relay says about itself in its welcome, if it says any."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Facts:
    welcome: dict[str, Any] | None = None
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def max_message_size(self) -> int | None:
        size = self.limits.get("max_message_size")
        return size if isinstance(size, int) and 0 < size < 64 * 1024 * 1024 else None

    @property
    def messages_a_minute(self) -> int | None:
        """`100/min`, as the welcome says it."""
        number, slash, unit = str(self.limits.get("rate_limit", "")).partition("/")
        return int(number) if slash and unit.startswith("min") and number.isdigit() else None

    def has(self, name: str) -> bool:
        if self.welcome is None:
            return False
        return any(name in part for part in map(self.welcome.get, ("capabilities", "extensions")) if isinstance(part, list))


def read_facts(welcome: dict[str, Any] | None) -> Facts:
    limits = (welcome or {}).get("limits")
    return Facts(welcome, limits if isinstance(limits, dict) else {})
