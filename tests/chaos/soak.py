"""A long calm load: does anything grow? Every minute what the daemon holds and how long it takes, and at the end the slopes.

Memory grows until the dedup window is full (100,000 ids of each sender), and is to be flat after that. So the slopes are of
the second half.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.agent import Agent
from tests.chaos.faults import DATABASE
from tests.chaos.habits import CALM
from tests.chaos.history import Entry, History
from tests.chaos.stage import Stage

AGENTS = 10
_MOST_UNANSWERED = 200  # of one agent; beyond it the daemon does not keep up, and the agent waits
_MEBIBYTE = 1024 * 1024
_TURN_S = 0.01


class NoHistory(History):
    """Hours of it would be what grows."""

    def _add(self, kind: str, who: str, **what: object) -> None:
        if kind in {"refused", "cut", "locked_out"}:
            self.entries.append(Entry(time.monotonic(), kind, who, dict(what)))


@dataclass
class Sample:
    minute: float
    rss_mib: float
    fds: int
    wal_mib: float
    database_mib: float
    events_mib: float
    sent_per_s: float
    median_ms: float
    p99_ms: float


FIELDS = ("rss_mib", "fds", "wal_mib", "database_mib", "events_mib", "sent_per_s", "median_ms", "p99_ms")


async def soak(minutes: float, rate: float, flags: Sequence[str]) -> int:
    """Prints; 1 if anything was refused or cut off, which nothing gave a reason for."""
    names = [f"S{number}" for number in range(AGENTS)]
    stage = Stage("soak", names, CALM, ("--queue-capacity=100000", *flags), history=NoHistory())
    async with stage:
        loads = [asyncio.create_task(_send_steadily(agent, rate / AGENTS)) for agent in stage.agents]
        stage.tasks += loads
        samples: list[Sample] = []
        print("minute " + " ".join(f"{name:>12}" for name in FIELDS), flush=True)
        began, sent = time.monotonic(), 0
        every_s = min(60.0, minutes * 60 / 4)
        while time.monotonic() - began < minutes * 60:
            started = time.monotonic()
            await stage.wait(lambda: False, every_s)
            count = sum(agent.count for agent in stage.agents)
            samples.append(_take_sample(stage, (time.monotonic() - began) / 60, (count - sent) / (time.monotonic() - started)))
            sent = count
            print(_format(samples[-1]), flush=True)
        for load in loads:
            load.cancel()
        half = samples[len(samples) // 2 :]
        print("slopes per minute, second half: " + ", ".join(f"{name} {_slope(half, name):+.3f}" for name in FIELDS))
        surprises = stage.history.entries
        for entry in surprises[:10]:
            print(f"  {entry.who}: {entry.kind} {entry.what}")
        print(f"{sent} sent, {len(surprises)} refused or cut off")
        return 1 if surprises else 0


async def _send_steadily(agent: Agent, rate: float) -> None:
    """Direct messages to the others in turn, as many as are due; nothing is kept of what is answered."""
    others = [name for name in agent.everybody if name != agent.name]
    began, base = time.monotonic(), agent.count
    while True:
        await asyncio.sleep(_TURN_S)
        due = base + int((time.monotonic() - began) * rate)
        while agent.count < due and len(agent.unanswered) < _MOST_UNANSWERED and agent.connected:
            agent.send((others[agent.count % len(others)],), ttl_ms=3_600_000)
        for ref in [ref for ref in agent.sent if ref not in agent.unanswered]:
            del agent.sent[ref]
        agent.read.clear()


def _take_sample(stage: Stage, minute: float, rate: float) -> Sample:
    process = Path(f"/proc/{stage.daemon.pid}")
    resident = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    latencies = sorted(latency for agent in stage.agents for latency in agent.latencies) or [0.0]
    for agent in stage.agents:
        agent.latencies.clear()
    state = stage.daemon.state_dir
    events = sum(path.stat().st_size for path in state.glob("events*"))
    return Sample(
        minute, resident / _MEBIBYTE, len(list((process / "fd").iterdir())), _size(state / f"{DATABASE}-wal"),
        _size(state / DATABASE), events / _MEBIBYTE, rate, statistics.median(latencies) * 1000,
        latencies[int(len(latencies) * 0.99)] * 1000,
    )  # fmt: skip


def _size(path: Path) -> float:
    return path.stat().st_size / _MEBIBYTE if path.exists() else 0.0


def _format(sample: Sample) -> str:
    return f"{sample.minute:6.1f} " + " ".join(f"{getattr(sample, name):12.2f}" for name in FIELDS)


def _slope(samples: list[Sample], name: str) -> float:
    """By least squares."""
    if len(samples) < 2:
        return 0.0
    xs, ys = [sample.minute for sample in samples], [float(getattr(sample, name)) for sample in samples]
    return statistics.linear_regression(xs, ys).slope
