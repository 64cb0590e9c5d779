"""Ctrl-C: what it does before a command has begun anything, and after.

Python raises an exception out of whatever line it has reached. While modules are imported that is a traceback, a complaint of a
half-made object, or nothing at all where a library takes the exception for one of its own. So a command that has begun
nothing ends as a program of the system does, at once and without a word; shells call that 130 as well. Where a
command has something to bring to an end in order, it says so, and is told by a KeyboardInterrupt.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


def ending_at_once() -> contextlib.AbstractContextManager[None]:
    """For the whole of a command."""
    return _exchanged(signal.default_int_handler, signal.SIG_DFL)


def ending_in_order() -> contextlib.AbstractContextManager[None]:
    """For the part of it that a KeyboardInterrupt may break off."""
    return _exchanged(signal.SIG_DFL, signal.default_int_handler)


@contextlib.contextmanager
def _exchanged(usual: Any, other: Any) -> Iterator[None]:
    """Where somebody else has decided about it (`nohup`, a program we are a part of), that stands."""
    is_ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is usual
    if is_ours:
        signal.signal(signal.SIGINT, other)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, usual)
