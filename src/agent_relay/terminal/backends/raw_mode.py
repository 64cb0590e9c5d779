"""The person's terminal while it is lent to a program: raw, and put back however we end.

Four nets, each for what the one before misses: `leave`, which owners call in a `finally`; `atexit`; handlers of the
signals that end a process; and for an end nobody can catch (SIGKILL, a crash of the interpreter) a small shell that waits
for our end of a pipe to close. It runs in a session of its own, where neither the terminal nor a signal to our group
reaches it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_UNTOUCHED = (signal.SIG_DFL, signal.default_int_handler)
_GUARD_DEADLINE_S = 5.0
# Standard error is the terminal, standard input our pipe. The modes are those a program may have left switched on.
_GUARD = r"""saved=$(stty -g <&2) || exit 1
echo ready
read -r word
[ "$word" = done ] && exit 0
stty "$saved" <&2
printf '\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1004l\033[?2004l\033[?1049l\033[?25h\033[0m\r\n' >&2
"""


class RawMode:
    """`undo` gives what else has to be written to put the terminal back, at the moment of leaving."""

    def __init__(self, descriptor: int, undo: Callable[[], bytes] = bytes) -> None:
        self._descriptor = descriptor
        self._undo = undo
        self._saved: list[Any] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._handled: dict[signal.Signals, Any] = {}

    @property
    def is_raw(self) -> bool:
        return self._saved is not None

    def enter(self) -> None:
        if self._saved is not None:
            return
        self._start_guard()
        self._saved = termios.tcgetattr(self._descriptor)
        atexit.register(self.leave)
        self._handle_signals()
        tty.setraw(self._descriptor, termios.TCSANOW)  # not FLUSH: what was typed ahead is meant for the program

    def again(self) -> None:
        """After we were stopped: the shell has set its own modes meanwhile."""
        if self._saved is None:
            self.enter()
        else:
            with contextlib.suppress(termios.error, OSError), _unstoppable():
                tty.setraw(self._descriptor, termios.TCSANOW)

    def leave(self) -> None:
        """Any number of times; never raises, since it runs where nobody could do anything about it."""
        if self._saved is None:
            return
        saved, self._saved = self._saved, None
        with _unstoppable():
            with contextlib.suppress(OSError):
                os.write(self._descriptor, self._undo())
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, saved)
        atexit.unregister(self.leave)
        self._leave_signals()
        self._dismiss_guard()

    # --- signals -------------------------------------------------------------------------------------------------------

    def _handle_signals(self) -> None:
        """Only those nobody else handles: who does will come to `leave` in its own way."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            if signal.getsignal(number) in _UNTOUCHED:
                self._handled[number] = signal.signal(number, self._die)

    def _leave_signals(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, before in self._handled.items():
                if signal.getsignal(number) == self._die:
                    signal.signal(number, before)
        self._handled.clear()

    def _die(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as signal handlers are called
        self.leave()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # so that whoever waits for us sees what we died of

    # --- the guard -----------------------------------------------------------------------------------------------------

    def _start_guard(self) -> None:
        try:
            guard = subprocess.Popen(  # noqa: S603 - a fixed script
                ["/bin/sh", "-c", _GUARD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._descriptor,
                start_new_session=True,
            )
        except OSError:
            return  # no shell: three nets are left
        assert guard.stdout is not None
        with guard.stdout:
            is_ready = guard.stdout.readline() == b"ready\n"
        self._guard = guard
        if not is_ready:
            self._dismiss_guard()

    def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is None:
            return
        with contextlib.suppress(OSError):
            assert guard.stdin is not None
            guard.stdin.write(b"done\n")
            guard.stdin.close()
        try:
            guard.wait(_GUARD_DEADLINE_S)
        except subprocess.TimeoutExpired:
            guard.kill()
            guard.wait()


@contextlib.contextmanager
def _unstoppable() -> Iterator[None]:
    """A process in the background is stopped when it touches the terminal's settings; not while this lasts."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
