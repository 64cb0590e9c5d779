"""Figures of a host, and the log that is timed."""

from __future__ import annotations

from agent_relay.cluster.figures import CONFIRM_BOUNDS_S, Figures, TimedLog
from agent_relay.ports.cluster import AppendDone, Appended, FollowHeard, LastDone, NotNext


class Log:
    def __init__(self) -> None:
        self.appends: list[AppendDone] = []

    def append(self, record: bytes, after: int, done: AppendDone) -> None:
        self.appends.append(done)

    def give_up(self) -> None:
        self.appends.clear()

    def follow(self, after: int, heard: FollowHeard) -> None:
        heard(after + 1, b"record")

    def unfollow(self) -> None: ...

    def ask_last(self, done: LastDone) -> None:
        done(7)


def test_each_time_falls_into_one_bucket() -> None:
    figures = Figures()
    for seconds in (0.0, 0.001, 0.0011, 9.0, 21.0):
        figures.confirmed(seconds)
    found = dict(zip((*CONFIRM_BOUNDS_S, "more"), figures.confirms, strict=True))
    assert {bound: count for bound, count in found.items() if count} == {0.001: 2, 0.002: 1, 10.0: 1, "more": 1}
    assert figures.confirm_s == 0.0 + 0.001 + 0.0011 + 9.0 + 21.0


def test_a_confirmed_record_is_timed_and_a_refused_one_is_not() -> None:
    figures, log, now = Figures(), Log(), [100.0]
    timed = TimedLog(log, figures, lambda: now[0])
    outcomes: list[Appended | NotNext] = []
    for outcome in (Appended(1), NotNext(2)):
        timed.append(b"", 0, outcomes.append)
        now[0] += 0.25
        log.appends.pop()(outcome)
    assert outcomes == [Appended(1), NotNext(2)]
    assert (sum(figures.confirms), figures.confirm_s) == (1, 0.25)


def test_giving_up_is_passed_on() -> None:
    log = Log()
    timed = TimedLog(log, Figures(), lambda: 0.0)
    timed.append(b"", 0, lambda _: None)
    timed.give_up()
    assert log.appends == []


def test_lost_seats_are_counted_by_reason() -> None:
    figures = Figures()
    for reason in ("superseded", "left", "superseded"):
        figures.lost_seat(reason)
    assert figures.seats_lost == {"superseded": 2, "left": 1}
