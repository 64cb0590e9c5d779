"""Readers of a terminal at this moment: the programs of its foreground group, and whether one of them waits for input.

On Linux /proc tells all of it. Elsewhere `ps` tells the programs, and nothing is known of what they wait for.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import platform
import struct
import subprocess
import sys
import termios
from collections.abc import Collection, Iterator

from msgspec import Struct

from agent_relay.terminal.backends.terminal import Foreground, RunningProgram

# Numbers of the calls, by machine.
_CALLS = {
    "x86_64": {
        0: "read", 19: "read", 7: "poll", 271: "poll", 23: "select", 270: "select", 232: "epoll", 281: "epoll", 441: "epoll",
    },
    "aarch64": {63: "read", 65: "read", 73: "poll", 72: "select", 22: "epoll", 441: "epoll"},
}  # fmt: skip
_PLACES = {b"n_tty_read", b"wait_woken", b"tty_read"}  # in the kernel, where a reader of a terminal sleeps
_MAX_POLLED = 256
_POLLED = struct.Struct("ihh")
_LOCAL = 3  # the index of the local modes in what `tcgetattr` returns
_DEV_TTY = os.makedev(5, 0)
_PS_DEADLINE_S = 5.0


class _Process(Struct):
    pid: int
    parent: int
    group: int
    foreground: int  # the group that has the terminal of this process
    argv: tuple[str, ...] = ()


def inspect_foreground(tty: int, leader: int) -> Foreground | None:
    """`tty`: an open descriptor of the terminal; `leader`: the process that leads its session. None where nothing is told."""
    try:
        modes = termios.tcgetattr(tty)[_LOCAL]
    except termios.error:
        return None
    found = _on_linux(tty, leader) if sys.platform.startswith("linux") else _by_ps(tty, leader)
    if found is None:
        return None
    programs, is_reading = found
    collects, echoes = bool(modes & termios.ICANON), bool(modes & termios.ECHO)
    return Foreground(programs, collects and echoes, is_reading, collects and not echoes, _unread(tty))


def _unread(tty: int) -> int | None:
    count = array.array("i", [0])
    try:
        fcntl.ioctl(tty, termios.FIONREAD, count)
    except OSError:
        return None
    return count[0]


def _named(processes: list[_Process]) -> tuple[RunningProgram, ...]:
    parents = {process.parent for process in processes}
    return tuple(RunningProgram(process.argv, process.pid in parents) for process in processes)


# --- Linux -------------------------------------------------------------------------------------------------------------


def _on_linux(tty: int, leader: int) -> tuple[tuple[RunningProgram, ...], bool] | None:
    first = _stat(leader)
    if first is None or first.foreground <= 0:
        return None
    group = first.foreground
    family = list(_descendants(first))
    if not any(process.group == group for process in family):  # its parent has ended, and it is somebody else's child now
        family = [found for entry in os.listdir("/proc") if entry.isdigit() and (found := _stat(int(entry))) is not None]
    members = {process.pid for process in family if process.group == group}
    readers: list[_Process] = []
    is_reading = False
    device = os.fstat(tty).st_rdev
    for process in family:
        # A child with a session of its own, as a sandbox makes it, reads the same terminal.
        if process.pid not in members and process.parent not in members:
            continue
        members.add(process.pid)
        descriptors = _descriptors(process.pid, device)
        if descriptors == ():
            continue
        process.argv = _argv(process.pid)
        readers.append(process)
        is_reading = is_reading or waits_for(process.pid, descriptors or ())
    return _named(readers), is_reading


def _stat(pid: int) -> _Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name before the last parenthesis may contain anything, spaces and parentheses too.
            state, parent, group, _, _, foreground, *_ = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in {b"Z", b"X"} else _Process(pid, int(parent), int(group), int(foreground))


def _descendants(first: _Process) -> Iterator[_Process]:
    """It and all it started, parents before children."""
    waiting = [first]
    while waiting:
        process = waiting.pop(0)
        yield process
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{process.pid}/task"):
                with open(f"/proc/{process.pid}/task/{task}/children", "rb") as file:
                    waiting += [found for pid in file.read().split() if (found := _stat(int(pid))) is not None]


def _descriptors(pid: int, device: int) -> tuple[int, ...] | None:
    """By which it can read the terminal: its standard input, or one opened since. None: it is another user's, and not known."""
    found: list[int] = []
    try:
        entries = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return None
    except OSError:
        return ()
    for entry in entries:
        with contextlib.suppress(OSError):
            number = os.stat(f"/proc/{pid}/fd/{entry}").st_rdev
            if number in {device, _DEV_TTY} and entry not in {"1", "2"}:
                found.append(int(entry))
    return tuple(found)


def _argv(pid: int) -> tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return tuple(word.decode("utf-8", "replace") for word in file.read().rstrip(b"\0").split(b"\0"))
    except OSError:
        return ()


# --- elsewhere ---------------------------------------------------------------------------------------------------------


def _by_ps(tty: int, leader: int) -> tuple[tuple[RunningProgram, ...], bool] | None:
    try:
        name = os.ttyname(tty).removeprefix("/dev/")
        done = subprocess.run(  # noqa: S603 - fixed words and the terminal's name
            ["/bin/ps", "-t", name, "-o", "pid=,ppid=,pgid=,tpgid=,args="],
            capture_output=True, text=True, timeout=_PS_DEADLINE_S, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    processes = [read_ps(line) for line in done.stdout.splitlines()]
    group = next((process.foreground for process in processes if process is not None and process.pid == leader), 0)
    return _named([process for process in processes if process is not None and process.group == group]), False


def read_ps(line: str) -> _Process | None:
    words = line.split()
    if len(words) < 5 or not all(word.lstrip("-").isdigit() for word in words[:4]):
        return None
    pid, parent, group, foreground = map(int, words[:4])
    return _Process(pid, parent, group, foreground, tuple(words[4:]))


def waits_for(pid: int, descriptors: Collection[int]) -> bool:
    """Whether a thread of it sleeps in a call that ends when one of these can be read."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    return any(_thread_waits(pid, thread, descriptors) for thread in threads)


def _thread_waits(pid: int, thread: str, descriptors: Collection[int]) -> bool:
    calls = _CALLS.get(platform.machine())
    if calls is not None:
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{pid}/task/{thread}/syscall", "rb") as file:
                words = file.read().split()
            if words[:1] == [b"running"] or len(words) < 4:
                return False
            first, second = int(words[1], 16), int(words[2], 16)
            return _call_waits(pid, calls.get(int(words[0]), ""), first, second, descriptors)
    # Who may not trace it may still learn where in the kernel it sleeps; that it is this terminal is then likely, not known.
    try:
        with open(f"/proc/{pid}/task/{thread}/wchan", "rb") as file:
            return file.read().strip() in _PLACES and 0 in descriptors
    except OSError:
        return False


def _call_waits(pid: int, call: str, first: int, second: int, descriptors: Collection[int]) -> bool:
    match call:
        case "read":
            return first in descriptors
        case "poll":
            polled = _memory(pid, first, min(second, _MAX_POLLED) * _POLLED.size)
            return any(number in descriptors and events & 1 for number, events, _ in _POLLED.iter_unpack(polled))
        case "select" if second:
            size = (first + 7) // 8
            bits = int.from_bytes(_memory(pid, second, size), "little")
            return any(number < first and bits >> number & 1 for number in descriptors)
        case "epoll":
            with open(f"/proc/{pid}/fdinfo/{first}", "rb") as file:
                watched = [int(line.split()[1]) for line in file if line.startswith(b"tfd:")]
            return any(number in descriptors for number in watched)
        case _:
            return False


def _memory(pid: int, address: int, size: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        file.seek(address)
        data = file.read(size)
    return data[: len(data) // _POLLED.size * _POLLED.size] if size % _POLLED.size == 0 else data
