"""Figures of one host of a cluster, for whoever watches it: plain numbers that only grow. The daemon renders them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from msgspec import Struct, field

from agent_relay.ports.cluster import AppendDone, Appended, LogWriter, NotNext

# Upper bounds of the histogram, in seconds. A flush on a good disk is below a millisecond; an election of NATS takes 4 to 9 s.
CONFIRM_BOUNDS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)


class Figures(Struct):
    """Counted since the daemon started."""

    confirms: list[int] = field(default_factory=lambda: [0] * (len(CONFIRM_BOUNDS_S) + 1))  # one more: above all bounds
    confirm_s: float = 0.0
    records_resent: int = 0  # to the log, for want of an answer
    log_readings: int = 0  # consumers made; every one after the first is a reconnect, a silence or a gap
    packets_resent: int = 0  # of links
    link_sent_bytes: int = 0
    link_received_bytes: int = 0
    nats_connections: int = 0  # every one after the first is a reconnect
    seats_taken: int = 0
    seats_lost: dict[str, int] = field(default_factory=dict)  # by reason
    seat_moves: int = 0  # to other hosts

    def confirmed(self, seconds: float) -> None:
        self.confirms[bisect_left(CONFIRM_BOUNDS_S, seconds)] += 1
        self.confirm_s += seconds

    def lost_seat(self, reason: str) -> None:
        self.seats_lost[reason] = self.seats_lost.get(reason, 0) + 1


class TimedLog:
    """A log whose confirmations are timed, resends included. `seconds` is a clock finer than the ticks of the log itself."""

    def __init__(self, log: LogWriter, figures: Figures, seconds: Callable[[], float]) -> None:
        self._log = log
        self._figures = figures
        self._seconds = seconds

    def append(self, record: bytes, after: int, done: AppendDone) -> None:
        began = self._seconds()

        def answered(outcome: Appended | NotNext) -> None:
            if isinstance(outcome, Appended):
                self._figures.confirmed(self._seconds() - began)
            done(outcome)

        self._log.append(record, after, answered)

    def give_up(self) -> None:
        self._log.give_up()
