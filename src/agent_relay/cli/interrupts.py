"""Ctrl-C: what it does before a command has begun anything, and after.

Python raises an exception out of whatever line it has reached. While modules are imported that is a traceback, a complaint of a
half-made object, or nothing at all where a library takes the exception for one of its own. So a command that has begun
nothing ends as a program of the system does, at once and without a word; shells call that 130 as well. Where a
command has something to bring to an end in order, it says so, and is told: in a loop by being cancelled, elsewhere by a
KeyboardInterrupt.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


def ending_at_once() -> contextlib.AbstractContextManager[None]:
    """For the whole of a command."""
    return _exchanged(signal.default_int_handler, signal.SIG_DFL)


def ending_in_order() -> contextlib.AbstractContextManager[None]:
    """For the part of it that a KeyboardInterrupt may break off."""
    return _exchanged(signal.SIG_DFL, signal.default_int_handler)


@contextlib.contextmanager
def _exchanged(usual: Any, other: Any) -> Iterator[None]:
    """Leaves it alone where somebody else has decided about it (`nohup`, a program we are a part of)."""
    is_ours = _is_decided_by(usual)
    if is_ours:
        signal.signal(signal.SIGINT, other)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, usual)


def _is_decided_by(*usual: Any) -> bool:
    return threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) in usual


def run_until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    """In a loop of its own. Ctrl-C cancels the work wherever it is; then KeyboardInterrupt is raised. A second one does what it
    would have done before there was a loop."""
    import asyncio

    if not _is_decided_by(signal.SIG_DFL, signal.default_int_handler):
        return asyncio.run(work)
    before = signal.getsignal(signal.SIGINT)
    interrupt = _Interrupt(before)
    signal.signal(signal.SIGINT, interrupt.come)
    with contextlib.closing(work), asyncio.Runner() as runner:
        try:
            return runner.run(interrupt.heed(work))
        except asyncio.CancelledError:
            if interrupt.has_come:
                raise KeyboardInterrupt from None
            raise
        finally:
            runner.get_loop().remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)


class _Interrupt:
    """A handler of Python is called between two of its steps. A signal that comes after the last step before the loop goes to
    sleep, or to another thread, would be heard when something else wakes the loop, and for an idle one that may be never.
    A loop that has a handler of its own is woken by every signal, also by those of which others are told."""

    def __init__(self, before: Any) -> None:
        self.has_come = False
        self._before = before
        self._cancel: Callable[[], object] | None = None

    def come(self, *_: object) -> None:
        self.has_come = True
        signal.signal(signal.SIGINT, self._before)
        if self._cancel is not None:
            self._cancel()

    async def heed(self, work: Coroutine[Any, Any, T]) -> T:
        from asyncio import CancelledError, current_task, get_running_loop

        task, loop = current_task(), get_running_loop()
        assert task is not None
        loop.add_signal_handler(signal.SIGINT, self._woken)
        # By way of the loop: this may be in the middle of something that a cancelled task would upset.
        self._cancel = partial(loop.call_soon_threadsafe, task.cancel)
        signal.signal(signal.SIGINT, self.come)
        if self.has_come:
            raise CancelledError
        return await work

    def _woken(self) -> None:
        """Also where it came while the loop's own handler, which does nothing, was in place of ours."""
        is_still_ours = signal.getsignal(signal.SIGINT) == self.come
        if is_still_ours:
            self.come()
