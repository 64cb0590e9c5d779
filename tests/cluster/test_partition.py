"""Networks that are cut: what clients see at the cut host and elsewhere, and that healing loses nothing.

By network namespaces where root may make them; elsewhere through gates, where a server that is cut is one that hangs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from tests.chaos.habits import Habits
from tests.chaos.history import Entry
from tests.chaos.rules import check
from tests.cluster.chaos.run import FLAGS
from tests.cluster.chaos.stage import SETTLE_S, ClusterStage
from tests.cluster.machines import run_machines

AGENTS = tuple(f"A{number}" for number in range(6))
# Everybody talks all the time, and stays where it is.
STEADY = Habits(
    rate=5.0, leaves=0.0, fresh=0.0, short_lived=0.0, ignores=0.0, is_busy=0.0, rejects=0.0, is_slow=0.0, longest_retry_s=0.2
)
PATIENCE_S = 90.0
REASON = "cannot reach its cluster"
SLACK_S = 1.0  # what was on its way when the network was cut


@dataclass
class Seen:
    """What the clients saw of one cut."""

    cut_at: float
    healed_at: float
    there: list[Entry]  # by clients of the cut host
    elsewhere: list[Entry]
    breaches: list[str]

    def stored(self, entries: list[Entry], since: float, until: float) -> list[Entry]:
        return [entry for entry in entries if entry.kind == "stored" and since <= entry.at <= until]

    def first_after(self, entries: list[Entry], kind: str, since: float) -> float:
        """How many seconds later the first such entry came."""
        return next((entry.at - since for entry in entries if entry.kind == kind and entry.at > since), float("inf"))

    def describe(self) -> str:
        pauses = [entry.at for entry in self.elsewhere if entry.kind == "stored" and entry.at > self.cut_at]
        longest = max((later - earlier for earlier, later in zip([self.cut_at, *pauses], pauses, strict=False)), default=-1.0)
        return (
            f"cut for {self.healed_at - self.cut_at:.0f} s; "
            f"there: closed after {self.first_after(self.there, 'cut', self.cut_at):.1f} s, "
            f"refused after {self.first_after(self.there, 'turned_away', self.cut_at):.1f} s, "
            f"stored again {self.first_after(self.there, 'stored', self.healed_at):.1f} s after healing; "
            f"elsewhere: nothing stored for at most {longest:.1f} s"
        )


Choose = Callable[[ClusterStage], Awaitable[list[str]]]


async def cut_off(stage: ClusterStage, choose: Choose, seconds: float, *, until_told: bool = True) -> Seen:
    async with stage:
        stage.begin_load()
        await stage.wait(lambda: sum(entry.kind == "stored" for entry in stage.history.entries) > 30, PATIENCE_S)
        places = await choose(stage)
        socket = stage.sockets[places[0]]
        names = {agent.name for agent in stage.agents if agent.socket == socket}
        stage.history.fault("cut")
        for place in places:
            await asyncio.to_thread(stage.machines.cut, place)
        cut_at = time.monotonic()
        await stage.let_it_run(seconds, seconds)
        if (
            until_told
        ):  # at first a host only misses the seat; that it is cut off itself it learns from NATS, on a busy machine later
            await stage.wait(lambda: names <= _told_why(stage, cut_at), PATIENCE_S)
        healed_at = time.monotonic()
        for place in places:
            await asyncio.to_thread(stage.machines.heal, place)
        stage.history.fault("cut", ends=True)
        await stage.wait(lambda: all(agent.connected for agent in stage.agents), PATIENCE_S)
        await stage.wait(lambda: names & _stored_since(stage, healed_at), PATIENCE_S)
        await stage.settle(SETTLE_S)
    entries = stage.history.entries
    return Seen(
        cut_at, healed_at, [entry for entry in entries if entry.who in names],
        [entry for entry in entries if entry.who in set(AGENTS) - names], [str(breach) for breach in check(stage.history)],
    )  # fmt: skip


def _stored_since(stage: ClusterStage, since: float) -> set[str]:
    return {entry.who for entry in stage.history.entries if entry.kind == "stored" and entry.at > since}


def _told_why(stage: ClusterStage, since: float) -> set[str]:
    told = [entry for entry in stage.history.entries if entry.kind == "turned_away" and entry.at > since]
    return {entry.who for entry in told if REASON in entry.what["said"]}


async def an_edge(stage: ClusterStage) -> list[str]:
    seat = await stage.seat()
    return [next(host for host in stage.machines.hosts if host != seat)]


async def the_seat(stage: ClusterStage) -> list[str]:
    return [await stage.seat()]


async def the_seat_and_the_leader(stage: ClusterStage) -> list[str]:
    return [await stage.seat(), await stage.leader()]


CUTS: dict[str, tuple[Choose, float]] = {  # and for how many seconds at least
    "an edge": (an_edge, 9.0),
    "the seat": (the_seat, 18.0),
    "the seat and the leader": (the_seat_and_the_leader, 20.0),
}


def see(choose: Choose, seconds: float, *, until_told: bool = True) -> Seen:
    with run_machines(flags=FLAGS) as machines:
        stage = ClusterStage(choose.__name__, AGENTS, STEADY, machines)
        return asyncio.run(cut_off(stage, choose, seconds, until_told=until_told))


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", CUTS)
def test_a_cut_is_told_and_loses_nothing(name: str) -> None:
    seen = see(*CUTS[name])
    assert not seen.breaches, "\n".join([seen.describe(), *seen.breaches[:10]])
    assert not seen.stored(seen.there, seen.cut_at + SLACK_S, seen.healed_at), "something was confirmed without a majority"
    told = [entry.what for entry in seen.there if entry.kind == "turned_away" and seen.cut_at < entry.at < seen.healed_at]
    assert told, seen.describe()
    assert {each["code"] for each in told} == {"SERVICE_UNAVAILABLE"}
    assert any(REASON in each["said"] for each in told), told[-1]
    assert seen.stored(seen.there, seen.healed_at, float("inf")), "nothing is stored there after healing"
    assert seen.stored(seen.elsewhere, seen.cut_at + SLACK_S, seen.healed_at), "the others were not served meanwhile"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_seat_that_is_back_before_it_has_given_up_serves_its_clients_as_an_edge() -> None:
    """It learns from its successor's first words that it has lost the seat, and has to link to it."""
    seen = see(the_seat, 8.0, until_told=False)
    assert not seen.breaches, "\n".join([seen.describe(), *seen.breaches[:10]])
    assert seen.stored(seen.there, seen.healed_at, float("inf")), "nothing is stored there after healing"
