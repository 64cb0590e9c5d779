"""Limits on how much one agent may send, and one address may try. Whole numbers throughout, so that what is allowed is exact."""

from __future__ import annotations

from collections import OrderedDict, deque

from agent_relay.transports.arc.settings import HOUR_MS, MINUTE_MS

_MOST_KEYS = 10_000  # addresses that are remembered, some megabytes; one more, and who tried last longest ago is forgotten


class Bucket:
    """Holds `count` and refills by `count` in `span_ms`. What is counted is milliseconds times count: one costs `span_ms`."""

    __slots__ = ("_at", "_count", "_level", "_span_ms")

    def __init__(self, count: int, span_ms: int, now_ms: int) -> None:
        self._count = count
        self._span_ms = span_ms
        self._level = count * span_ms
        self._at = now_ms

    def wait_ms(self, now_ms: int) -> int:
        """0: there is one to take. Otherwise how long until there is."""
        if now_ms > self._at:
            self._level = min(self._level + (now_ms - self._at) * self._count, self._count * self._span_ms)
            self._at = now_ms
        missing = self._span_ms - self._level
        return -(-missing // self._count) if missing > 0 else 0

    def take(self) -> None:
        self._level -= self._span_ms


class MessageRate:
    """A burst, and what can be kept up for long."""

    __slots__ = ("_buckets",)

    def __init__(self, per_minute: int, per_hour: int, now_ms: int) -> None:
        spans = ((per_minute, MINUTE_MS), (per_hour, HOUR_MS))
        self._buckets = tuple(Bucket(count, span_ms, now_ms) for count, span_ms in spans if count)

    @property
    def is_limited(self) -> bool:
        return bool(self._buckets)

    def take(self, now_ms: int) -> int:
        """0: go ahead. Otherwise nothing was taken, and this is how long it has to wait."""
        wait_ms = 0
        for bucket in self._buckets:
            wait_ms = max(wait_ms, bucket.wait_ms(now_ms))
        if not wait_ms:
            for bucket in self._buckets:
                bucket.take()
        return wait_ms


class Tries:
    """At most so many in any span of that length, for each address."""

    def __init__(self, count: int, span_ms: int) -> None:
        self._count = count
        self._span_ms = span_ms
        self._times: OrderedDict[str, deque[int]] = OrderedDict()  # who tried last stands last; nobody without a try is here

    def wait_ms(self, address: str, now_ms: int) -> int:
        """0: one more is allowed."""
        times = self._times.get(address)
        if times is None:
            return 0
        while times and now_ms - times[0] >= self._span_ms:
            times.popleft()
        if not times:
            del self._times[address]
        return self._span_ms - (now_ms - times[0]) if len(times) >= self._count else 0

    def add(self, address: str, now_ms: int) -> None:
        if not self._count:
            return
        times = self._times.get(address)
        if times is None:
            self._make_room(now_ms)
            times = self._times[address] = deque(maxlen=self._count)
        else:
            self._times.move_to_end(address)
        times.append(now_ms)

    def take_back(self, address: str, then_ms: int) -> None:
        """The one that was added at that moment came to nothing."""
        times = self._times.get(address)
        if times is not None and then_ms in times:
            times.remove(then_ms)
            if not times:
                del self._times[address]

    def _make_room(self, now_ms: int) -> None:
        """Forgets who has nothing to wait for any more, and where that is not enough, who tried last longest ago."""
        while self._times:
            address, times = next(iter(self._times.items()))
            if now_ms - times[-1] < self._span_ms and len(self._times) < _MOST_KEYS:
                return
            del self._times[address]
