"""The short form of `make chaos-cluster`: a few faults with a fixed seed, and planted faults that are found."""

from __future__ import annotations

import pytest

from tests.cluster.chaos.run import play

SEED = 1
FAULTS = ("kill-host", "cut-seat-and-leader", "stop-host", "kill-server", "move")


@pytest.mark.slow
@pytest.mark.timeout(400)  # on a busy machine; it waits for conditions, and gives up by itself
def test_the_promise_holds_over_several_hosts() -> None:
    result = play(SEED, FAULTS)
    said = "\n".join(str(breach) for breach in result.breaches[:20])
    assert not result.breaches, f"{result.describe()}\n{said}\n`python -m tests.cluster.chaos --seed {SEED}` does more of it"
    assert sum(entry.kind == "stored" for entry in result.history.entries) > 50, result.describe()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_daemon_that_answers_before_its_log_has_confirmed_is_found() -> None:
    """One of the planted faults; `python -m tests.cluster.chaos --planted believe` has another."""
    result = play(SEED, ["kill-host"] * 3, planted="early", settle_s=5.0)
    assert {breach.rule for breach in result.breaches} & {"owed", "numbers", "once", "answers"}, result.describe()
