"""The rate limit of a connection: a bucket of one second's worth that refills steadily."""

from __future__ import annotations

from agent_relay.core.context import Context
from agent_relay.protocol.errors import ErrorCode, RelayError


class Allowance:
    __slots__ = ("_at", "_per_second", "_tokens")

    def __init__(self, per_second: int, now_ms: int) -> None:
        self._per_second = per_second
        self._tokens = float(per_second)
        self._at = now_ms

    def take(self, now_ms: int) -> int:
        """0: go ahead. Otherwise how many milliseconds until the next message is allowed."""
        self._tokens = min(self._tokens + (now_ms - self._at) * self._per_second / 1000, float(self._per_second))
        self._at = now_ms
        if self._tokens >= 1:
            self._tokens -= 1
            return 0
        return max(1, round((1 - self._tokens) * 1000 / self._per_second))


def check_rate(context: Context, allowance: Allowance) -> None:
    """Takes one from the allowance; raises RATE_LIMITED where nothing is left of it."""
    wait_ms = allowance.take(context.steady_ms)
    if wait_ms:
        limit = context.limits.rate_limit
        raise RelayError(
            ErrorCode.RATE_LIMITED, f"More than {limit} messages per second.", retry_after_ms=wait_ms, limit_per_second=limit
        )
