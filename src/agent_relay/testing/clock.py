"""A clock that stands still until the test moves it."""

from __future__ import annotations

_START_STEADY_MS = 1_000
_START_WALL_MS = 1_800_000_000_000  # in January 2027


class ManualClock:
    """Implements `ports.Clock`. `time` and `monotonic` are the same in seconds, for code that takes a function."""

    def __init__(self, *, steady_ms: int = _START_STEADY_MS, wall_ms: int = _START_WALL_MS) -> None:
        self._steady_ms = steady_ms
        self._wall_ms = wall_ms

    def steady_ms(self) -> int:
        return self._steady_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic(self) -> float:
        return self._steady_ms / 1000

    def time(self) -> float:
        return self._wall_ms / 1000

    def advance(self, milliseconds: int) -> None:
        """Time passes, on both clocks."""
        if milliseconds < 0:
            raise ValueError("time only passes forward; `set_wall` moves the wall clock alone")
        self._steady_ms += milliseconds
        self._wall_ms += milliseconds

    def set_wall(self, wall_ms: int) -> None:
        """Somebody sets the wall clock, forward or back; the steady one goes on."""
        self._wall_ms = wall_ms
