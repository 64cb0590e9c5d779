"""The disk that fails on demand does what it is told, and says what it did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.faults import Faults

STEPS = """
import os, sys
for step in sys.argv[2].split():
    file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
    try:
        if step == "write":
            os.pwrite(file, b"12345678", 0)
        elif step == "sync":
            os.fdatasync(file)
        elif step == "cut":
            os.ftruncate(file, 0)
        print("ok", flush=True)
    except OSError as error:
        print(error.errno, os.fstat(file).st_size, flush=True)
    os.close(file)
"""


def run(faults: Faults, path: Path, steps: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", STEPS, path, steps], env=os.environ | faults.environ, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.splitlines()


def test_calls_fail_as_often_as_they_are_told_to(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    faults.set("fdatasync EIO some.db 2 1", "pwrite ENOSPC other.db *")
    assert run(faults, tmp_path / "some.db", "sync sync write sync sync") == (0, ["ok", "5 0", "ok", "5 8", "ok"])
    assert run(faults, tmp_path / "other.db", "write sync write") == (0, ["28 0", "ok", "28 0"])
    assert [line.split()[:2] for line in faults.log] == [["fdatasync", "5"]] * 2 + [["pwrite", "28"]] * 2
    faults.clear()
    assert run(faults, tmp_path / "other.db", "write") == (0, ["ok"])


def test_half_a_write_and_deaths_before_and_after_a_call(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    faults.set("pwrite HALF some.db 1")
    assert run(faults, tmp_path / "some.db", "write") == (0, ["5 4"])
    faults.set("ftruncate KILL some.db *")
    assert run(faults, tmp_path / "some.db", "write cut") == (-9, ["ok"])
    assert (tmp_path / "some.db").stat().st_size == 8
    faults.set("ftruncate DIE some.db *")
    assert run(faults, tmp_path / "some.db", "write cut") == (-9, ["ok"])
    assert (tmp_path / "some.db").stat().st_size == 0
