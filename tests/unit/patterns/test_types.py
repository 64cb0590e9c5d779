"""The types that users of the library are given: of every argument, and of every part of a result."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from agent_relay import patterns

PROGRAM = """
from pathlib import Path
from agent_relay import RelayClient, patterns

async def main(relay: RelayClient) -> None:
    found = await patterns.map_reduce(relay, task="Read", items=[Path("a")], worker_cli="claude", cwd="/tmp")
    names: list[str] = [each.item.name + each.result for each in found.results]
    staged = await patterns.pipeline(relay, stages=[patterns.Task("A", "claude", "x")], input="y")
    text: str = staged.output + staged.stages[0].input
    fanned = await patterns.fan_out(relay, tasks=[{"name": "A", "cli": "claude", "task": "x"}], wait_for="any")
    pending: tuple[str, ...] = fanned.pending
    watched = await patterns.supervise(relay, tasks=[patterns.Task("A", "claude", "x")], escalate_to="Bob", backend="pty")
    decisions: list[str] = [each.decision for each in watched.escalations]
    judged = await patterns.debate(relay, question="?", sides=[], judge=patterns.Task("A", "claude", "x"))
    winner: str | None = judged.winner
    voted = await patterns.vote(relay, question="?", voters=[], rule=2)
    tokens: int = voted.counts["yes"] + voted.usage.total_tokens
"""
WRONG = """
    await patterns.fan_out(relay, tasks=[], wait_for="most")
    await patterns.map_reduce(relay, task="Read", items=[1], worker_cli="claude", colour="red")
    number: int = staged.output
"""


def test_a_program_of_users_is_checked_by_its_types(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(PROGRAM)
    wrong.write_text(PROGRAM + WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(right), str(wrong)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    complaints = [line.partition(": ")[0] for line in done.stdout.splitlines() if ": error: " in line]
    first = len(PROGRAM.splitlines()) + 2
    assert complaints == [f"{wrong.name}:{first + place}" for place in range(3)], done.stdout


@pytest.mark.parametrize("name", [name for name in patterns.__all__ if is_dataclass(getattr(patterns, name))])
def test_what_is_given_back_cannot_be_changed(name: str) -> None:
    kind = getattr(patterns, name)
    assert kind.__dataclass_params__.frozen
    assert fields(kind)


@pytest.mark.parametrize(
    "pattern", [patterns.map_reduce, patterns.pipeline, patterns.fan_out, patterns.supervise, patterns.debate, patterns.vote]
)
def test_every_pattern_can_be_watched(pattern: object) -> None:
    assert callable(pattern)
    assert inspect.iscoroutinefunction(pattern)
    assert "on_progress" in inspect.signature(pattern).parameters
