"""What the kernel knows about a process: processor time and resident memory, read from /proc."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12  # fields of /proc/PID/stat, counted after the command's closing parenthesis
_REST_S, _REST_CPU_S = 0.5, 0.02  # so little in so long a time is what a server needs to stay alive
_REST_TIMEOUT_S = 10.0
_WANTED_FILES = 16_384  # a thousand connections on both ends, with room to spare


def read_cpu_s(pid: int) -> float:
    """User and system time of all the threads of a process, those that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS_PER_S


def wait_for_rest(pid: int) -> float:
    """Waits until the process does next to nothing (or ten seconds are over); its processor time by then."""
    ends_at = time.monotonic() + _REST_TIMEOUT_S
    used_s = read_cpu_s(pid)
    while time.monotonic() < ends_at:
        time.sleep(_REST_S)
        before_s, used_s = used_s, read_cpu_s(pid)
        if used_s - before_s <= _REST_CPU_S:
            break
    return used_s


def read_rss_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no resident memory: it has ended")


def raise_file_limit() -> None:
    """Lets this process, and the servers it starts, hold a thousand connections where the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def describe_machine(directory: str) -> str:
    """One line about where the numbers were made: they mean little without it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor")
    system = f"{os.uname().sysname} {os.uname().release}"
    busy = f"load average {os.getloadavg()[0]:.1f} before the run"
    return f"{os.cpu_count()} cores ({model}), {system}, data on {file_system_of(directory)}, {busy}"


def file_system_of(directory: str) -> str:
    """The type of the file system: fsync on tmpfs costs nothing, and a run there says nothing about durability."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, found, *_ = line.split()
        if (directory + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(best):
            best, kind = mount, found
    return kind
