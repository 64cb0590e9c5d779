"""The wait before trying again. The caller draws the random number, so that a test can choose it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    base_ms: int
    cap_ms: int
    jitter: float  # 0.2: up to a fifth more or less, so that many who failed together do not come back together
    factor: int = 2

    def delay_ms(self, attempt: int, random: float) -> int:
        """The wait after the `attempt`-th failure (1, 2, …); `random` is uniform in [0, 1)."""
        doublings = min(max(attempt - 1, 0), 62)  # beyond that every policy is at its cap
        delay: int = min(self.base_ms * self.factor**doublings, self.cap_ms)
        return round(delay * (1 + self.jitter * (2 * random - 1)))

    def delay_s(self, attempt: int, random: float, at_least_s: float = 0.0) -> float:
        """The same in seconds, or longer where the other side advised it."""
        return max(self.delay_ms(attempt, random) / 1000, at_least_s)


REDELIVERY = RetryPolicy(base_ms=300, cap_ms=30_000, jitter=0.2)
RECONNECT = RetryPolicy(base_ms=100, cap_ms=30_000, jitter=0.15)
RECONNECT_ATTEMPTS = 10
