"""The things that every part of the core shares: the limits, the moment, the source of ids and of chance, the log."""

from __future__ import annotations

from agent_relay.core.ids import IdSource
from agent_relay.core.limits import Limits
from agent_relay.ports.entropy import Entropy
from agent_relay.ports.events import EventSink
from agent_relay.ports.log import Log
from agent_relay.protocol.ulid import encode_bits


class Context:
    """`steady_ms` and `wall_ms` are the moment of this turn, as `Relay.clock_says` was told; nobody here asks a clock."""

    __slots__ = (
        "_frame_number", "_frame_prefix", "entropy", "events", "first_seq", "ids", "limits", "log", "steady_ms", "stopping",
        "wall_ms", "wall_text",
    )  # fmt: skip

    def __init__(
        self, limits: Limits, entropy: Entropy, log: Log, last_number: int, steady_ms: int, wall_ms: int,
        events: EventSink | None = None, first_seq: int = 0,
    ) -> None:  # fmt: skip
        self.limits = limits
        self.entropy = entropy
        self.log = log
        self.events = events  # None: nobody wants to know
        self.ids = IdSource(entropy, last_number)
        self.first_seq = first_seq  # streams that are new begin after this number
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
