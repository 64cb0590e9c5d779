"""A program on a PTY of ours: in the person's own terminal, passed through byte by byte, or in none at all.

With a person everything they type reaches the program and everything it shows reaches them; the emulator only listens.
Without one the size is fixed, and we answer what a terminal has to answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence

from agent_relay.terminal.backends.emulation import Emulation
from agent_relay.terminal.backends.keyboard import TypingDetector, encode_key, encode_paste
from agent_relay.terminal.backends.modes import ModeTracker
from agent_relay.terminal.backends.person_terminal import PersonTerminal
from agent_relay.terminal.backends.processes import end_session, signal_session
from agent_relay.terminal.backends.program import check_program
from agent_relay.terminal.backends.pty_child import PtyChild
from agent_relay.terminal.backends.terminal import (
    DEFAULT_COLUMNS,
    DEFAULT_ROWS,
    Drawing,
    ExitStatus,
    Foreground,
    Key,
    PersonSeen,
    TerminalEnded,
    TerminalError,
    TerminalListener,
)
from agent_relay.terminal.backends.write_queue import WriteQueue
from agent_relay.terminal.screen.contents import Screen

HEADLESS_TERM = "xterm-256color"
_SETTLE_S = 0.05  # an Escape that nothing follows for this long was the key
_STOPPED_CHECK_S = 0.2  # after Ctrl-Z, for the program to stop itself
_LAST_WORDS_S = 2.0  # for the person's terminal to show the end of it
_HANG_UP_GRACE_S = 2.0
_CTRL_Z = b"\x1a"


class PtyTerminal:
    def __init__(self, listener: TerminalListener, person: PersonTerminal | None = None) -> None:
        self._listener = listener
        self._person = person
        self._modes = ModeTracker()
        self._typing = TypingDetector()
        self._typed_at_s: float | None = None
        self._ended: asyncio.Future[ExitStatus] | None = None
        self._waiting: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._ended is None else self._child.pid

    # --- beginning ---------------------------------------------------------------------------------------------------

    async def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[str, str],
        columns: int = DEFAULT_COLUMNS,
        rows: int = DEFAULT_ROWS,
    ) -> None:
        check_program(argv, cwd, environment)
        if self._person is not None:
            columns, rows = self._person.size
        else:
            environment = {**environment, "TERM": HEADLESS_TERM}
        self._loop = asyncio.get_running_loop()
        reply = None if self._person is not None else self._reply
        self._emulation = Emulation(columns, rows, reply=reply, lost=self._listener.output_lost)
        self._child = PtyChild.spawn(argv, cwd=cwd, environment=environment, columns=columns, rows=rows, on_output=self._wrote)
        self._queue = WriteQueue(self._child.master)
        self._ended = self._loop.create_future()
        self._waiting = asyncio.create_task(self._await_end())
        if self._person is not None:
            self._person.open(self)

    def _wrote(self, data: bytes) -> None:
        self._modes.feed(data)
        if self._person is not None:
            self._person.show(data)
            if self._person.is_full:
                self._child.pause_reading()
        self._emulation.put(data)
        self._listener.output(data)

    def _reply(self, data: bytes) -> None:
        self._queue.put(data)

    # --- typing --------------------------------------------------------------------------------------------------------

    async def write(self, data: bytes) -> None:
        self._check_running()
        self._queue.put(data)
        await self._queue.flush()

    async def press(self, key: Key) -> None:
        await self.write(encode_key(key, application_cursor=self._modes.application_cursor))

    async def paste(self, text: str) -> None:
        if text:
            await self.write(encode_paste(text, bracketed=self._modes.bracketed_paste))

    @property
    def takes_paste(self) -> bool | None:
        return self._modes.bracketed_paste

    async def interrupt(self) -> None:
        await self.press(Key.CTRL_C)

    # --- looking -------------------------------------------------------------------------------------------------------

    async def screen(self) -> Screen:
        if self._ended is None:
            raise TerminalEnded("The program was not started.")
        return await self._emulation.read()

    async def draw(self, at: Callable[[], None]) -> Drawing:
        self._check_running()
        drawing = await self._emulation.draw(at)
        return Drawing(drawing.columns, drawing.rows, drawing.data + self._modes.redo_keys())

    async def resize(self, columns: int, rows: int) -> None:
        self._check_running()
        if self._person is None:
            self._resize(columns, rows)

    def _resize(self, columns: int, rows: int) -> None:
        self._emulation.resize(columns, rows)
        with contextlib.suppress(OSError):
            self._child.resize(columns, rows)

    async def person(self) -> PersonSeen:
        if self._person is None:
            return PersonSeen(is_attached=False)
        ago_ms = None if self._typed_at_s is None else round((self._loop.time() - self._typed_at_s) * 1000)
        return PersonSeen(is_attached=True, typed_ms_ago=ago_ms)

    async def foreground(self) -> Foreground | None:
        self._check_running()
        return self._child.foreground()

    async def attach(self) -> None:
        if self._person is None:
            raise TerminalError("This program runs without a terminal; attaching to it later needs `--backend tmux`.")
        await self.wait()

    # --- what the person's terminal tells --------------------------------------------------------------------------------

    def person_sent(self, data: bytes) -> None:
        self._queue.put(data)
        if self._typing.feed(data):
            self._person_typed()
        elif self._typing.is_unsure:
            self._loop.call_later(_SETTLE_S, self._settle)
        if _CTRL_Z in data:
            self._loop.call_later(_STOPPED_CHECK_S, self._follow_into_sleep)

    def person_resized(self, columns: int, rows: int) -> None:
        self._resize(columns, rows)

    def person_left(self) -> None:
        """As if the terminal were the program's own: it is hung up."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.foreground_group(), signal.SIGHUP)

    def person_has_room(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._child.resume_reading()

    def modes_to_undo(self) -> bytes:
        return self._modes.undo()

    def modes_to_redo(self) -> bytes:
        return self._modes.redo()

    def person_resumed(self) -> None:
        for group in {self._child.pid, self._child.foreground_group()}:
            for number in (signal.SIGCONT, signal.SIGWINCH):  # the second makes it draw everything anew
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, number)

    def _settle(self) -> None:
        if self._typing.settle():
            self._person_typed()

    def _person_typed(self) -> None:
        self._typed_at_s = self._loop.time()
        self._listener.person_typed()

    def _follow_into_sleep(self) -> None:
        """A program that stops itself on Ctrl-Z counts on its shell; between the two are we."""
        if self._person is None or not hasattr(os, "waitid") or self._ended is None or self._ended.done():
            return
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None:
                self._person.suspend()

    # --- the end -----------------------------------------------------------------------------------------------------------

    async def wait(self) -> ExitStatus:
        if self._ended is None:
            raise TerminalEnded("The program was not started.")
        return await asyncio.shield(self._ended)

    async def stop(self, grace_s: float) -> ExitStatus:
        if self._ended is None:
            raise TerminalEnded("The program was not started.")
        await end_session(self._child.pid, self._ended, grace_s)
        status = await self.wait()
        await self.close()
        return status

    def kill(self) -> None:
        if self._person is not None:
            with contextlib.suppress(Exception):  # its modes matter more than how it is left
                self._person.close()
        if self._ended is not None:
            signal_session(self._child.pid, signal.SIGKILL)

    async def close(self) -> None:
        if self._ended is None or self._waiting is None:
            return
        if self._person is not None:
            self._person.close()
        self._queue.close()
        self._child.close()
        await asyncio.wait([self._ended], timeout=_HANG_UP_GRACE_S)
        if not self._ended.done():
            await end_session(self._child.pid, self._ended, 0)
        await self._waiting

    async def _await_end(self) -> None:
        assert self._ended is not None
        status = await self._child.wait()
        if self._person is not None:
            await self._person.flush(_LAST_WORDS_S)
            self._person.close()
        if not self._ended.done():
            self._ended.set_result(status)

    def _check_running(self) -> None:
        if self._ended is None or self._ended.done():
            raise TerminalEnded("The program has ended." if self._ended is not None else "The program was not started.")
