"""A few hundred worlds in every test run; `make simulate` runs thousands."""

from __future__ import annotations

import pytest

from tests.simulation.world import run_seed


@pytest.mark.parametrize("block", range(10))
def test_every_promise_holds_in_every_world(block: int) -> None:
    for seed in range(block * 20, (block + 1) * 20):
        run_seed(seed, steps=600)


def test_among_these_worlds_are_some_where_agents_that_only_answer_each_other_were_held() -> None:
    assert any(run_seed(seed, steps=600).held for seed in range(100))


def test_among_these_worlds_are_some_where_batches_waited_for_more() -> None:
    assert sum(run_seed(seed, steps=600).gathered for seed in range(50)) > 20
