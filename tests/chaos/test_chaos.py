"""The short form of `make chaos`: a few faults of every family, with a fixed seed. A failure names what repeats it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.chaos.faults import FAMILIES
from tests.chaos.run import play

CYCLES = {"kill": 3, "stop": 2, "slow": 2, "fsync": 2, "clock": 2, "http": 2, "postgres": 2}  # one of the others
CROWD = 120  # of the 500 that `make chaos` has
SEED = 1


@pytest.mark.slow
@pytest.mark.timeout(300)  # on a busy machine; it waits for conditions, and gives up by itself
@pytest.mark.parametrize("name", FAMILIES)
def test_the_promise_holds_under(name: str) -> None:
    family = FAMILIES[name]
    reason = family.why_not()
    if reason:
        pytest.skip(reason)
    family = replace(family, names=family.names[:CROWD])
    result = asyncio.run(play(family, f"{SEED}.{name}.0", CYCLES.get(name, 1)))
    said = "\n".join(str(breach) for breach in result.breaches[:20])
    assert not result.breaches, f"{result.describe()}\n{said}\n`python -m tests.chaos --only {name} --seed {SEED}`"
    assert sum(entry.kind == "stored" for entry in result.history.entries) > 20, result.describe()
