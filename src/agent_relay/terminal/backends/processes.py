"""Processes in a terminal: all of a session found and signalled together, ended in order, and waited for.

A shell puts each job into a process group of its own, so the group of the program is not everything; the session is.
What has left the session (a daemon) is out of reach, as it is for a terminal that is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any

_LAST_DEADLINE_S = 5.0
_STEP_S = 0.01


def session_members(leader: int) -> list[int]:
    """The living processes of a session, zombies aside. Where there is no /proc, the leader alone, if it lives."""
    if not sys.platform.startswith("linux"):
        return [leader] if _exists(leader) else []
    members = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{entry}/stat", "rb") as file:
                    # The name before the last parenthesis may contain anything, spaces and parentheses too.
                    state, _, _, session, *_ = file.read().rpartition(b")")[2].split()
                if int(session) == leader and state not in {b"Z", b"X"}:
                    members.append(int(entry))
    return members


def signal_session(leader: int, number: signal.Signals) -> bool:
    """Whether there was anybody to signal. The leader's group is signalled as one, then whoever has left it."""
    members = session_members(leader)
    if members or _exists(leader):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
    for pid in members:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) != leader:
                os.kill(pid, number)
    return bool(members)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def wait_for_end(pid: int) -> None:
    """Returns when the process has ended, at once when there is none. It need not be our child: Linux has pidfds, BSD and macOS
    have kqueue, and both speak up for a process that has ended and was not reaped yet."""
    watched = _watch(pid)
    if watched is None:
        return
    descriptor, close = watched
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        close()


if sys.platform == "linux":

    def _watch(pid: int) -> tuple[int, Callable[[], None]] | None:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        return descriptor, lambda: os.close(descriptor)

else:

    def _watch(pid: int) -> tuple[int, Callable[[], None]] | None:
        queue = select.kqueue()
        event = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD | select.KQ_EV_ONESHOT, select.KQ_NOTE_EXIT)
        try:
            queue.control([event], 0)
        except ProcessLookupError:
            queue.close()
            return None
        return queue.fileno(), queue.close


async def end_session(leader: int, ended: asyncio.Future[Any], grace_s: float) -> None:
    """SIGTERM; after half the time SIGHUP, since shells ignore the first; at the end SIGKILL for whoever is left.

    Not both at once: a program that tidies up on SIGTERM seldom knows SIGHUP, and would die of it half-way.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if ended.done():
            break
        signal_session(leader, number)
        signal_session(leader, signal.SIGCONT)  # a stopped process gets its signals when it goes on
        await asyncio.wait([ended], timeout=grace_s / 2)
    deadline = asyncio.get_running_loop().time() + _LAST_DEADLINE_S
    while session_members(leader) and asyncio.get_running_loop().time() < deadline:
        signal_session(leader, signal.SIGKILL)
        await asyncio.sleep(_STEP_S)  # the kernel takes a moment, and nobody tells us of grandchildren
