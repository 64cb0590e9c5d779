"""Signals that end a wrapper, also one whose event loop does not turn.

A handler of asyncio waits for the loop. Here the handler runs wherever the main thread is, and a thread sees to the end: a loop
that does not answer in time is not waited for, and neither is an end in order that takes too long. The program is killed then.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ANSWER_S = 2.0  # for the loop to hear of it
END_S = 30.0  # for an end in order: the program's grace, what it said last, the goodbye to the daemon


class StopSignals:
    """`stop` is called in the loop; `kill` in a thread, where the loop is of no use any more."""

    def __init__(self, stop: Callable[[], None], kill: Callable[[], None]) -> None:
        self._stop = stop
        self._kill = kill
        self._loop = asyncio.get_running_loop()
        self._is_heard = threading.Event()
        self._is_awaited = False
        for number in SIGNALS:
            signal.signal(number, self._signalled)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self._loop.is_closed():
            os._exit(128 + number)
        self._loop.call_soon_threadsafe(self._hear)
        if not self._is_awaited:
            self._is_awaited = True
            threading.Thread(target=self._see_to_the_end, args=(number,), name="stop", daemon=True).start()

    def _hear(self) -> None:
        self._is_heard.set()
        self._stop()

    def _see_to_the_end(self, number: int) -> None:
        if self._is_heard.wait(ANSWER_S):
            threading.Event().wait(END_S)  # an end in order takes the process, and this thread, along
        try:
            self._kill()
        finally:
            os._exit(128 + number)
