"""Processes that are not our children: which one a number stands for, waiting for its end, and what those above us were given."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time

from agent_relay.transports.process_table import environment_of, look_at

_POLL_S = 0.5
_MOST_ANCESTORS = 256  # deeper than any real tree
_START_FIELD = 19  # of what follows the name in /proc/PID/stat: when it was started


def start_mark(pid: int) -> str:
    """Tells a process from a later one with the same number; empty where there is no such process. One that has ended keeps its
    number, and so its mark, until its parent has waited for it."""
    return _look_at(pid)[0]


def _look_at(pid: int) -> tuple[str, bool]:
    """Its mark, and whether it still runs."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            after_name = file.read().rpartition(b")")[2].split()
        return after_name[_START_FIELD].decode(), after_name[0] not in {b"Z", b"X"}
    except (OSError, IndexError):
        mark = "" if os.path.isdir("/proc/self") else _ask_ps(pid)
        return mark, mark != ""


def _ask_ps(pid: int) -> str:
    """The same without /proc."""
    try:
        said = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    except OSError:
        return ""
    return " ".join(said.stdout.split())


def is_same(pid: int, mark: str) -> bool:
    """Whether this very process still runs."""
    return pid > 0 and mark != "" and _look_at(pid) == (mark, True)


def wait_for_end(pid: int, mark: str) -> None:
    """Blocks until this very process is gone."""
    if hasattr(os, "pidfd_open"):
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            handle = -1
        if handle >= 0:
            try:
                if is_same(pid, mark):
                    poll = select.poll()
                    poll.register(handle, select.POLLIN)
                    poll.poll()
                return
            finally:
                os.close(handle)
    while is_same(pid, mark):
        time.sleep(_POLL_S)


def send_signal(pid: int, mark: str, number: signal.Signals, *, to_group: bool = False) -> None:
    """To this very process, or to all of its session; to nobody where it is gone."""
    if is_same(pid, mark):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            (os.killpg if to_group else os.kill)(pid, number)


def find_environment_above(variable: str) -> dict[str, str]:
    """The environment of the nearest process above this one that was started with the variable; empty where none was, or where
    it is not to be seen: only Linux shows it. A program that names itself may have written over its own."""
    process = look_at(os.getppid())
    for _ in range(_MOST_ANCESTORS):
        if process is None or process.pid <= 1:
            break
        found = environment_of(process.pid)
        if found.get(variable):
            return found
        process = look_at(process.parent)
    return {}
