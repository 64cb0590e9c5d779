"""Whether a process waits for input on one of its descriptors, from what Linux tells of the calls its threads are in."""

from __future__ import annotations

import contextlib
import os
import platform
import struct
from collections.abc import Collection

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
