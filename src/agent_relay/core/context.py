"""The things that every part of the core shares: the limits, the moment, the source of ids and of chance, the log."""

from __future__ import annotations

from agent_relay.core.limits import Limits
from agent_relay.ports.entropy import Entropy
from agent_relay.ports.events import EventSink
from agent_relay.ports.log import Log
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


class Context:
    """`steady_ms` and `wall_ms` are the moment of this turn, as `Relay.clock_says` was told; nobody here asks a clock."""

    __slots__ = (
        "_frame_number", "_frame_prefix", "entropy", "events", "first_seq", "host", "ids", "limits", "log", "steady_ms",
        "stopping", "wall_ms", "wall_text",
    )  # fmt: skip

    def __init__(
        self, limits: Limits, entropy: Entropy, log: Log, last_number: int, steady_ms: int, wall_ms: int,
        events: EventSink | None = None, first_seq: int = 0, host: str = "",
    ) -> None:  # fmt: skip
        self.limits = limits
        self.entropy = entropy
        self.log = log
        self.events = events  # None: nobody wants to know
        self.ids = IdSource(entropy, last_number)
        self.first_seq = first_seq  # streams that are new begin after this number
        self.host = host  # the name of this machine in its cluster; "": there is none
        self.stopping = False  # True: no new sessions, no new messages
        self.clock_says(steady_ms, wall_ms)
        self._frame_prefix = "f_" + encode_bits(entropy.bits(40), 8)
        self._frame_number = 0

    def clock_says(self, steady_ms: int, wall_ms: int) -> None:
        self.steady_ms = steady_ms
        self.wall_ms = wall_ms
        self.wall_text = str(wall_ms)  # as it stands in every frame of this turn

    def frame_id(self) -> str:
        """An id for a frame of the daemon's own. Nothing is ever looked up by it, so a counter will do."""
        self._frame_number += 1
        return f"{self._frame_prefix}{self._frame_number:x}"
