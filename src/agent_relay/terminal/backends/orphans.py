"""Orphans of a program stay below it: a process whose parent has ended is given to an ancestor of ours, not to init.

So it can be told, of a program that detached itself twice and cleared its environment, from which agent it came. Linux has
this (a "subreaper"); elsewhere such a process is lost from sight.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import glob
import os
import sys

from agent_relay.interpreter import run_code

_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 15.0
# Does the same, and becomes another program with the environment it was itself given: Python may have added to its own.
_LAUNCHER = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl({_PR_SET_CHILD_SUBREAPER}, 1, 0, 0, 0)
with open("/proc/self/environ", "rb") as file:
    given = file.read().split(b"\\0")
os.execve(sys.argv[1], sys.argv[1:], dict(pair.partition(b"=")[::2] for pair in given if b"=" in pair))
"""


def keeping_orphans() -> tuple[str, ...]:
    """Words before a program that waits for whatever becomes its child, as a shell does."""
    return tuple(run_code(_LAUNCHER)) if sys.platform == "linux" else ()


async def keep_orphans() -> None:
    """In this process, until cancelled: also waits for those that end, which nobody else would."""
    if sys.platform != "linux" or ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        return
    dead: set[int] = set()
    while True:
        await asyncio.sleep(_LOOK_S)
        # Our own children are waited for at once; one that was dead the last time is nobody's.
        now = dead_children()
        _bury(dead & now)
        dead = now


def _bury(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)


def dead_children() -> set[int]:
    pids: set[int] = set()
    for path in glob.glob(f"/proc/{os.getpid()}/task/*/children"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            pids.update(int(word) for word in file.read().split())
    return {pid for pid in pids if _is_dead(pid)}


def _is_dead(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:
        return False
