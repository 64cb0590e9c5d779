"""A run: so many faults on one set of machines, then rest, then judgement."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.habits import Habits
from tests.chaos.history import History
from tests.chaos.rules import Breach, check
from tests.cluster.chaos.faults import FAULTS
from tests.cluster.chaos.stage import SETTLE_S, ClusterStage
from tests.cluster.machines import run_machines

AGENTS = tuple(f"A{number}" for number in range(9))
HABITS = Habits(rate=8.0, leaves=0.1, moves=0.3, longest_retry_s=0.2, patience_s=4.0)
FLAGS = ("--queue-capacity=100000", "--ack-timeout-ms=1000", "--heartbeat-ms=5000")


@dataclass
class Result:
    history: History
    breaches: list[Breach]
    faults: list[str]
    seconds: float
    logs: dict[str, list[dict[str, object]]]  # of the hosts

    def describe(self) -> str:
        seen = Counter(entry.kind for entry in self.history.entries)
        told = Counter(entry.what["told"] for entry in self.history.entries if entry.kind == "outcome")
        outcomes = ", ".join(f"{told[name]} {name}" for name in sorted(told))
        seats = sum(note["event"] == "cluster_seated" for notes in self.logs.values() for note in notes)
        return (
            f"{len(self.faults)} faults, {self.seconds:.0f} s, the seat was taken {seats} times: {seen['sent']} sent, "
            f"{seen['stored']} stored, {seen['refused']} refused, {seen['arrived']} arrived, {seen['cut']} connections cut, "
            f"outcomes: {outcomes or 'none'}; {len(self.breaches)} breaches"
        )


def choose(seed: object, count: int, only: Sequence[str] = ()) -> list[str]:
    names = list(only) or list(FAULTS)
    return random.Random(f"{seed}-faults").choices(names, [FAULTS[name][0] for name in names], k=count)


def play(
    seed: object, faults: Sequence[str], *, habits: Habits = HABITS, planted: str = "", until: float = float("inf"),
    say: bool = False, settle_s: float = SETTLE_S,
) -> Result:  # fmt: skip
    """These faults in turn; none is begun after `until`. `planted`: a fault that every daemon has."""
    began = time.monotonic()
    command = [sys.executable, "-E", "-P", str(Path(__file__).with_name("planted.py")), planted] if planted else []
    with run_machines(flags=FLAGS, command=command) as machines:
        stage = ClusterStage(seed, AGENTS, habits, machines)
        done = asyncio.run(_live(stage, faults, until, settle_s, say=say))
        logs = {host: machines.notes(host) for host in machines.hosts}
    return Result(stage.history, check(stage.history), done, time.monotonic() - began, logs)


async def _live(stage: ClusterStage, faults: Sequence[str], until: float, settle_s: float, *, say: bool) -> list[str]:
    done: list[str] = []
    async with stage:
        stage.begin_load()
        for name in faults:
            if time.monotonic() > until:
                break
            await stage.let_it_run(0.5, 3.0)
            await FAULTS[name][1](stage)
            done.append(name)
            if say:
                _report(stage, len(done))
        await stage.let_it_run(1.0, 2.0)
        await asyncio.to_thread(stage.machines.nats.wait_ready)
        await stage.settle(settle_s)
    return done


def _report(stage: ClusterStage, number: int) -> None:
    last = next(entry for entry in reversed(stage.history.entries) if entry.kind == "fault")
    stored = sum(entry.kind == "stored" for entry in stage.history.entries)
    print(f"  {number:3}. {last.who:<16} {stored} stored, {sum(agent.connected for agent in stage.agents)} connected", flush=True)
