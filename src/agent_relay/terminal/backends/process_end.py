"""Being told when a process ends that is not our child: by the kernel, without asking again and again.

Linux has pidfds, BSD and macOS have kqueue. Both speak up for a process that has ended and was not reaped yet.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import Callable


async def wait_for_end(pid: int) -> None:
    """Returns when the process has ended, at once when there is none."""
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
