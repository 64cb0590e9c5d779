"""Ids for what a client says: unique over clients and processes by 60 random bits, cheap by a counter."""

from __future__ import annotations

import secrets
import time

from agent_relay.protocol.ulid import COUNTER_LIMIT, RANDOM_BITS, encode_bits, encode_counter, encode_time


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class IdSource:
    """One random stem serves a million ids; then a new one is drawn. Each client has its own source: a process that
    forks, or runs several clients in threads, never gives an id out twice."""

    __slots__ = ("_counter", "_stem")

    def __init__(self) -> None:
        self._stem = ""
        self._counter = COUNTER_LIMIT

    def next(self, prefix: str) -> str:
        if self._counter >= COUNTER_LIMIT:
            self._stem = encode_time(wall_ms()) + encode_bits(secrets.randbits(RANDOM_BITS), 12)
            self._counter = 0
        counter = self._counter
        self._counter += 1
        return prefix + self._stem + encode_counter(counter)
