"""A guard against slow decay: what a message costs the daemon, in frames of the bare forwarder in the same process.

Both are measured in turns, in slices of about a millisecond of processor time, and of each the quickest twentieth counts: what a
slice costs when nobody else is on the processor or in its caches. So it holds on a busy machine, where clocks say nothing.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

import pytest

from agent_relay.core.reception import Reception
from tests.cost.path import ForwarderPath, MessagePath

RECORDED = {(3, 11): 111, (3, 12): 125, (3, 13): 125}  # a message in frames of the forwarder, by the version of Python
ALLOWED = 1.3
_SLICES = 400


def measure_ratio() -> float:
    message, forwarder = MessagePath(), ForwarderPath()
    costs: list[list[float]] = [[], []]
    gc.collect()
    gc.disable()
    try:
        for _ in range(_SLICES):
            costs[0].append(message.measure())
            costs[1].append(forwarder.measure())
    finally:
        gc.enable()
    ours, theirs = (sorted(each)[_SLICES // 20] for each in costs)
    return ours / theirs


def find_ratio() -> float:
    """The lowest of five, unless an earlier one is good enough: a neighbour mostly makes a message look dearer."""
    found: list[float] = []
    while len(found) < 5 and not (found and found[-1] <= ALLOWED * recorded()):
        found.append(measure_ratio())
    return min(found)


def recorded() -> float:
    """A version that is not here yet is held to the newest that is."""
    return RECORDED.get(sys.version_info[:2], RECORDED[max(RECORDED)])


def test_a_message_costs_no_more_than_it_did() -> None:
    ratio = find_ratio()
    assert ratio <= ALLOWED * recorded(), (
        f"A message costs as much as {ratio:.0f} frames of the bare forwarder: above {ALLOWED} times the recorded {recorded()}. "
        "Find what became slower (`python -m cProfile -m tests.cost.test_cost` helps), or record the new figure and say why."
    )


def test_the_record_is_not_out_of_date() -> None:
    """What became much cheaper is recorded, or it could become dear again unseen."""
    assert any(measure_ratio() >= recorded() / ALLOWED for _ in range(5))


def test_a_planted_slowdown_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every frame is read three times more, by the standard library."""
    plain = Reception.received

    def received(self: Reception, peer: Any, frames: list[bytes]) -> None:
        for frame in 3 * frames:
            json.loads(frame)
        plain(self, peer, frames)

    monkeypatch.setattr(Reception, "received", received)
    assert find_ratio() > ALLOWED * recorded()


if __name__ == "__main__":
    print(f"A message costs as much as {measure_ratio():.1f} frames of the bare forwarder.")
