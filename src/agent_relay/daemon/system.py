"""The real clock and the real dice."""

from __future__ import annotations

import random
import secrets
import time


class SystemClock:
    def steady_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SystemEntropy:
    def fraction(self) -> float:
        return random.random()

    def bits(self, count: int) -> int:
        return secrets.randbits(count)

    def token(self) -> str:
        return secrets.token_urlsafe(32)
