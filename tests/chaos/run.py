"""Runs of one family: so many cycles, a daemon for some of them at a time, and what the rules say about each."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.database import Database
from tests.chaos.faults import Ended, Family
from tests.chaos.history import History
from tests.chaos.machine import Machine
from tests.chaos.rules import Breach, check
from tests.chaos.stage import Stage
from tests.faults import Faults


@dataclass
class Result:
    history: History
    breaches: list[Breach]
    cycles: int
    seconds: float
    output: str  # of the daemon

    def describe(self) -> str:
        seen = Counter(entry.kind for entry in self.history.entries)
        told = Counter(entry.what["told"] for entry in self.history.entries if entry.kind == "outcome")
        outcomes = ", ".join(f"{told[name]} {name}" for name in sorted(told))
        return (
            f"{self.cycles} cycles, {self.seconds:.0f} s: {seen['sent']} sent, {seen['stored']} stored, "
            f"{seen['refused']} refused, {seen['arrived']} arrived, {seen['cut']} connections cut, "
            f"outcomes: {outcomes or 'none'}; "
            f"{len(self.breaches)} breaches"
        )


@contextmanager
def _directory_for(family: Family) -> Iterator[Path]:
    """A short path, for its socket; on a disk of its own where the family needs one."""
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as name:
        if not family.small_disk_bytes:
            yield Path(name)
            return
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={family.small_disk_bytes}", "chaos", name], check=True)
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


async def play(family: Family, seed: object, cycles: int) -> Result:
    """So many cycles on one daemon, then rest, then judgement."""
    began, done = time.monotonic(), 0
    with ExitStack() as removing:
        directory = removing.enter_context(_directory_for(family))
        aside = removing.enter_context(tempfile.TemporaryDirectory(prefix="chaos-"))
        stage = Stage(seed, family.names, family.habits, family.flags, directory)
        if family.needs_disk:
            stage.disk = Faults(aside)
            stage.daemon.environ |= stage.disk.environ
        if family.needs_machine:
            stage.machine = Machine(Path(aside))
            stage.daemon.environ |= stage.machine.environ
        if family.needs_database:
            stage.database = Database()
            removing.callback(stage.database.remove)
            stage.daemon.environ |= stage.database.environ
        async with stage:
            if family.prepare is not None:
                await family.prepare(stage)
            stage.begin_load()
            try:
                for _ in range(cycles):
                    done += 1
                    await family.fault(stage)
                await stage.settle()
            except Ended:
                pass
            output = stage.daemon.output
    return Result(stage.history, check(stage.history), done, time.monotonic() - began, output)
