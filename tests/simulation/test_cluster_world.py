"""A few whole clusters in every test run; `make simulate` runs more."""

from __future__ import annotations

import pytest

from agent_relay.cluster.link import Link, Op
from tests.simulation.cluster_world import ClusterWorld, run_cluster_seed

SEEDS = range(4)


@pytest.mark.slow
def test_every_promise_holds_over_several_hosts() -> None:
    worlds = [run_cluster_seed(seed) for seed in SEEDS]
    assert all(sum(entry.kind == "stored" for entry in world.history.entries) > 100 for world in worlds)
    assert any(world.seats_lost for world in worlds)
    assert any(world.late_answers for world in worlds), "no acknowledgement came after a move"


def find_breaches(seed: int, *, checks_sequence: bool = True) -> set[str]:
    """An exception is a breach, too: daemons note it and go on."""
    world = ClusterWorld(seed, checks_sequence=checks_sequence)
    try:
        world.live()
    except Exception as error:  # noqa: BLE001 - whatever the fault breaks
        return {type(error).__name__}
    return {breach.rule for breach in world.check()}


@pytest.mark.slow
def test_a_log_that_does_not_compare_is_found_out() -> None:
    assert any(find_breaches(seed, checks_sequence=False) for seed in range(12))


@pytest.mark.slow
def test_a_link_that_takes_packets_as_they_come_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: Link, number: int, acknowledged: int, ops: list[Op]) -> None:
        self._heard_to = max(self._heard_to, number) - (number > 0)
        heard(self, self._heard_to + 1 if number > 0 else number, acknowledged, ops)

    heard = Link.heard
    monkeypatch.setattr(Link, "heard", careless)
    assert any(find_breaches(seed) for seed in range(3))
