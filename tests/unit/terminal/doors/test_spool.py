"""The spool of a door by hooks: order, room, and the marker that lets hooks ask."""

from __future__ import annotations

from pathlib import Path

from agent_relay.terminal.doors.spool import Spool, size_of
from tests.unit.terminal.doors.heard import message


def test_the_marker_is_there_while_something_waits(tmp_path: Path) -> None:
    marker = tmp_path / "waiting"
    spool = Spool(str(marker))
    spool.mark()
    assert not marker.exists()
    spool.add(message(1))
    assert marker.exists()
    assert marker.stat().st_mode & 0o777 == 0o600
    assert message(1) in spool
    assert spool.take_all() == [message(1)]
    assert not marker.exists()
    assert not spool


def test_hooks_may_be_wanted_for_another_reason(tmp_path: Path) -> None:
    marker, reasons = tmp_path / "waiting", [1]
    spool = Spool(str(marker), lambda: bool(reasons))
    spool.mark()
    assert marker.exists()
    spool.add(message(1))
    reasons.clear()
    spool.take_all()
    assert not marker.exists()


def test_what_fits_is_taken_and_none_overtakes_another(tmp_path: Path) -> None:
    marker = tmp_path / "waiting"
    spool = Spool(str(marker))
    short, long, last = message(1), message(2, "é" * 500), message(3)
    for one in (short, long, last):
        spool.add(one)
    assert size_of(long) > 1_000
    assert spool.take(1_000) == [short]
    assert marker.exists()
    assert spool.take(1_000) == []
    spool.put_back([short])
    assert spool.take(500, lambda one: len(one.text)) == [short]
    assert spool.take(size_of(long) + size_of(last)) == [long, last]
    assert not marker.exists()
