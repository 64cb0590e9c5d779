"""Processes as the system shows them: parents, terminals, environments. What cannot be seen is None or empty."""

from __future__ import annotations

import os
import subprocess
from typing import NamedTuple

_HAS_PROC = os.path.isdir("/proc/self")
_PARENT, _TERMINAL, _STARTED = 1, 4, 19  # of what follows the name in /proc/PID/stat


class Process(NamedTuple):
    pid: int
    parent: int
    terminal: str  # the one that controls it; empty: none
    started: str  # tells it from a later process with the same number


def look_at(pid: int) -> Process | None:
    """None: there is no such process, or it has ended."""
    return _read_stat(pid) if _HAS_PROC else _ask_ps(pid)


def _read_stat(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in {b"Z", b"X"}:
            return None
        terminal = fields[_TERMINAL].decode()
        return Process(pid, int(fields[_PARENT]), "" if terminal == "0" else terminal, fields[_STARTED].decode())
    except (OSError, IndexError, ValueError):
        return None


def _ask_ps(pid: int) -> Process | None:
    """Asks `ps`, where there is no /proc."""
    words = ["ps", "-o", "ppid=,tty=,lstart=", "-p", str(pid)]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=2).stdout.split(maxsplit=2)  # noqa: S603
        terminal = said[1] if said[1].strip("?-") else ""
        return Process(pid, int(said[0]), terminal, " ".join(said[2].split()))
    except (OSError, IndexError, ValueError, subprocess.SubprocessError):
        return None


def is_tmux(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().startswith("tmux")
    except OSError:
        return False


def environment_of(pid: int) -> dict[str, str]:
    """As it was started with; empty where that is not to be seen."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = file.read().decode("utf-8", "surrogateescape").split("\0")
    except OSError:
        return {}
    return dict(pair.partition("=")[::2] for pair in pairs if "=" in pair)
