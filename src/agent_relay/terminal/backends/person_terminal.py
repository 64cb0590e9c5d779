"""The terminal the person sits at, lent to a program: what they type goes in, what it shows comes out.

The descriptors belong to the shell as well, so they are never made non-blocking: for writing the terminal is opened
once more. Without a terminal on both sides there is nothing to lend, and `find` returns None.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import sys
import termios
from typing import Protocol

from agent_relay.terminal.backends.raw_mode import RawMode
from agent_relay.terminal.backends.terminal import DEFAULT_COLUMNS, DEFAULT_ROWS
from agent_relay.terminal.backends.write_queue import WriteQueue

_READ_BYTES = 65_536
MAX_UNSHOWN_BYTES = 1024 * 1024  # beyond it the program has to wait, as it would at any terminal that is held with Ctrl-S


class TerminalBorrower(Protocol):
    """The program's side."""

    def person_sent(self, data: bytes) -> None: ...

    def person_resized(self, columns: int, rows: int) -> None: ...

    def person_left(self) -> None:
        """The terminal is gone: window closed, connection lost."""
        ...

    def person_has_room(self) -> None:
        """Called when what was written has been shown, and more may come."""
        ...

    def modes_to_undo(self) -> bytes: ...

    def modes_to_redo(self) -> bytes: ...

    def person_resumed(self) -> None:
        """We were stopped and go on; the screen has other things on it now."""
        ...


class PersonTerminal:
    def __init__(self, input_descriptor: int, output_descriptor: int) -> None:
        self._input = input_descriptor
        self._output = output_descriptor
        self._borrower: TerminalBorrower | None = None
        self._queue: WriteQueue | None = None
        self._opened: int | None = None
        self._signals: list[signal.Signals] = []
        self._raw = RawMode(input_descriptor, self._undo)

    @staticmethod
    def find() -> PersonTerminal | None:
        try:
            descriptors = sys.stdin.fileno(), sys.stdout.fileno()
        except (AttributeError, OSError, ValueError):
            return None  # closed, or replaced by something that is no file
        return PersonTerminal(*descriptors) if all(os.isatty(descriptor) for descriptor in descriptors) else None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows; a terminal that does not know (a serial line) gets the default."""
        try:
            rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(self._output, termios.TIOCGWINSZ, b"\0" * 8))
        except OSError:
            return DEFAULT_COLUMNS, DEFAULT_ROWS
        return columns or DEFAULT_COLUMNS, rows or DEFAULT_ROWS

    def open(self, borrower: TerminalBorrower) -> None:
        self._borrower = borrower
        self._opened = _open_again(self._output)
        self._queue = WriteQueue(self._output if self._opened is None else self._opened, borrower.person_has_room)
        self._raw.enter()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._input, self._readable)
        for number, handler in (
            (signal.SIGWINCH, self._resized),
            (signal.SIGTSTP, self.suspend),
            (signal.SIGCONT, self._continued),
        ):
            with contextlib.suppress(ValueError, RuntimeError):  # signals reach the main thread alone
                loop.add_signal_handler(number, handler)
                self._signals.append(number)

    def show(self, data: bytes) -> None:
        if self._queue is not None:
            self._queue.put(data)

    @property
    def is_full(self) -> bool:
        return self._queue is not None and self._queue.unsent_bytes > MAX_UNSHOWN_BYTES

    async def flush(self, deadline_s: float) -> None:
        """Waits until all is shown; not for ever, since a held terminal shows nothing."""
        if self._queue is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(deadline_s):
                    await self._queue.flush()

    def close(self) -> None:
        if self._borrower is None:
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._input)
        for number in self._signals:
            loop.remove_signal_handler(number)
        self._signals.clear()
        if self._queue is not None:
            self._queue.close()
        self._raw.leave()
        self._borrower = self._queue = None
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None

    def suspend(self) -> None:
        """As a shell's job is stopped: the terminal goes back to the shell, and we wait for `fg`."""
        self._raw.leave()
        # The default action, not SIGSTOP: without a shell that could wake us up the system ignores it.
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)
        self._continued()

    def _continued(self) -> None:
        if self._borrower is None:
            return
        was_left = not self._raw.is_raw
        self._raw.again()
        if was_left:
            self.show(self._borrower.modes_to_redo())
        self._resized()
        self._borrower.person_resumed()

    def _resized(self) -> None:
        if self._borrower is not None:
            self._borrower.person_resized(*self.size)

    def _readable(self) -> None:
        assert self._borrower is not None
        try:
            data = os.read(self._input, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # EIO: the other side hung up
            data = b""
        if data:
            self._borrower.person_sent(data)
        else:
            asyncio.get_running_loop().remove_reader(self._input)
            self._borrower.person_left()

    def _undo(self) -> bytes:
        return b"" if self._borrower is None else self._borrower.modes_to_undo()


def _open_again(descriptor: int) -> int | None:
    """A description of our own, where it does no harm not to block; None where the terminal has no name we may open."""
    with contextlib.suppress(OSError):
        return os.open(os.ttyname(descriptor), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    return None
