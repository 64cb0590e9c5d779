"""Ids and message numbers that only ever grow, whatever the wall clock does."""

from __future__ import annotations

from agent_relay.ports.entropy import Entropy
from agent_relay.protocol.ulid import (
    COUNTER_LIMIT,
    RANDOM_BITS,
    encode_bits,
    encode_counter,
    encode_number,
    encode_time,
    time_of_number,
)


class IdSource:
    """After a clock that jumped back, ids go on from the latest time they had: order is worth more than the date."""

    __slots__ = ("_counter", "_milliseconds", "_prefix", "_random")

    def __init__(self, entropy: Entropy, last_number: int) -> None:
        self._random = encode_bits(entropy.bits(RANDOM_BITS), 12)
        self._milliseconds = time_of_number(last_number) if last_number else 0
        self._counter = COUNTER_LIMIT  # the first id opens a new millisecond, beyond the last number of the run before
        self._prefix = ""

    def reserve(self, wall_ms: int, count: int = 1) -> tuple[str, int]:
        """A ULID and its number; the `count - 1` ids behind it belong to the caller too."""
        prefix, number = self.reserve_run(wall_ms, count)
        return prefix + encode_counter(number % COUNTER_LIMIT), number

    def reserve_run(self, wall_ms: int, count: int) -> tuple[str, int]:
        """`count` ids in a row: what they begin with, and the number of the first; the counter of each is its end."""
        if wall_ms > self._milliseconds or self._counter + count > COUNTER_LIMIT:
            self._milliseconds = max(wall_ms, self._milliseconds + 1)
            self._counter = 0
            self._prefix = encode_time(self._milliseconds) + self._random
        counter = self._counter
        self._counter += count
        return self._prefix, encode_number(self._milliseconds, counter)
