"""A program on a PTY of its own: started without forking ourselves, and read until it has ended.

Python's `pty.fork` and `preexec_fn` run Python code in a copy of a process that may have threads, which can lock up. So
the child is started by `subprocess`, in a new session, as a fixed shell script that opens the PTY, which makes it the
session's controlling terminal, and becomes the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence

from agent_relay.terminal.backends.foreground import inspect_foreground
from agent_relay.terminal.backends.processes import wait_for_end
from agent_relay.terminal.backends.terminal import ExitStatus, Foreground

_READ_BYTES = 65_536
_READS_A_TURN = 4  # then others have theirs, a flood notwithstanding
_RUN = 'exec "$@" <>"$0" >&0 2>&0'
_IUTF8 = 0x4000  # Linux and macOS; so that erasing a character in a plain line erases all its bytes


class PtyChild:
    def __init__(self, master: int, slave: int, process: subprocess.Popen[bytes], on_output: Callable[[bytes], None]) -> None:
        self.master = master
        self._slave = slave  # kept open: with nobody on the other side the system says EIO, also before the child opens it
        self._process = process
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._is_reading = False
        self._is_closed = False
        self.pid = process.pid
        self.resume_reading()

    @classmethod
    def spawn(
        cls,
        argv: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[str, str],
        columns: int,
        rows: int,
        on_output: Callable[[bytes], None],
    ) -> PtyChild:
        master, slave = os.openpty()
        try:
            _prepare(master, slave, columns, rows)
            # Not through the loop: uvloop lets descriptors leak into the child.
            process = subprocess.Popen(  # noqa: S603 - what the person asked for, no shell reads it
                ("/bin/sh", "-c", _RUN, os.ttyname(slave), *argv),
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            os.close(master)
            os.close(slave)
            raise
        return cls(master, slave, process, on_output)

    def resize(self, columns: int, rows: int) -> None:
        """The system tells the program with SIGWINCH, if the size is another one."""
        set_size(self.master, columns, rows)

    def foreground_group(self) -> int:
        try:
            return os.tcgetpgrp(self.master)
        except OSError:
            return self.pid

    def foreground(self) -> Foreground | None:
        return None if self._is_closed else inspect_foreground(self._slave, self.pid)

    def pause_reading(self) -> None:
        if self._is_reading:
            self._loop.remove_reader(self.master)
            self._is_reading = False

    def resume_reading(self) -> None:
        if not self._is_reading and not self._is_closed:
            self._loop.add_reader(self.master, self._readable)
            self._is_reading = True

    async def wait(self) -> ExitStatus:
        """Returns when the program has ended and what it wrote was passed on."""
        await wait_for_end(self.pid)
        code = self._process.wait()
        self.pause_reading()
        while not self._is_closed and self._read_once():  # noqa: ASYNC110 - it reads; nothing else would tell when it is over
            await asyncio.sleep(0)
        return ExitStatus(code) if code >= 0 else ExitStatus(128 - code, -code)

    def close(self) -> None:
        """Hangs up, if the program still runs."""
        if not self._is_closed:
            self.pause_reading()
            self._is_closed = True
            os.close(self._slave)
            os.close(self.master)

    def _readable(self) -> None:
        for _ in range(_READS_A_TURN):
            if not self._is_reading or not self._read_once():
                break

    def _read_once(self) -> bool:
        """Whether there was something. The end shows as EIO on Linux and as an empty read elsewhere."""
        try:
            data = os.read(self.master, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self.pause_reading()
            return False
        self._on_output(data)
        return True


def set_size(descriptor: int, columns: int, rows: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _prepare(master: int, slave: int, columns: int, rows: int) -> None:
    os.set_blocking(master, False)
    set_size(master, columns, rows)
    with contextlib.suppress(termios.error):
        settings = termios.tcgetattr(slave)
        settings[0] |= _IUTF8
        termios.tcsetattr(slave, termios.TCSANOW, settings)
