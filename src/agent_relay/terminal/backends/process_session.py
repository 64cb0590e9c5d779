"""All that a program started in its terminal: the processes of its session, found and signalled together.

A shell puts each job into a process group of its own, so the group of the program is not everything; the session is.
What has left the session (a daemon) is out of reach, as it is for a terminal that is closed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


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
