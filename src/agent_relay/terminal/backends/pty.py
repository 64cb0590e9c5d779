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
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that was started, and what belongs to it until it ends."""

    child: PtyChild
    queue: WriteQueue
    emulation: Emulation
    ended: asyncio.Future[ExitStatus]


class PtyTerminal:
    def __init__(self, listener: TerminalListener, person: PersonTerminal | None = None) -> None:
        self._listener = listener
        self._person = person
        self._modes = ModeTracker()
        self._typing = TypingDetector()
        self._typed_at_s: float | None = None
        self._program: _Program | None = None
        self._waiting: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._program is None else self._program.child.pid

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
        reply = None if self._person is not None else self._reply
        emulation = Emulation(columns, rows, reply=reply, lost=self._listener.output_lost)
        child = PtyChild.spawn(argv, cwd=cwd, environment=environment, columns=columns, rows=rows, on_output=self._wrote)
        ended = asyncio.get_running_loop().create_future()
        program = self._program = _Program(child, WriteQueue(child.master), emulation, ended)
        self._waiting = asyncio.create_task(self._await_end(program))
        if self._person is not None:
            self._person.open(self)

    def _wrote(self, data: bytes) -> None:
        self._modes.feed(data)
        if self._person is not None:
            self._person.show(data)
            if self._person.is_full:
                self._started.child.pause_reading()
        self._started.emulation.put(data)
        self._listener.output(data)

    def _reply(self, data: bytes) -> None:
        self._started.queue.put(data)

    # --- typing --------------------------------------------------------------------------------------------------------

    async def write(self, data: bytes) -> None:
        queue = self._running.queue
        queue.put(data)
        await queue.flush()

    async def press(self, key: Key) -> None:
        await self.write(encode_key(key, application_cursor=self._modes.application_cursor))

    async def paste(self, text: str) -> None:
        if text:
            await self.write(encode_paste(text, bracketed=self._modes.bracketed_paste))

    @property
    def takes_paste(self) -> bool | None:
        return self._modes.bracketed_paste

    async def show_status(self, text: str) -> None:
        """The whole terminal is the program's, its title too."""

    async def interrupt(self) -> None:
        await self.press(Key.CTRL_C)

    # --- looking -------------------------------------------------------------------------------------------------------

    async def screen(self) -> Screen:
        return await self._started.emulation.read()

    async def draw(self, at: Callable[[], None]) -> Drawing:
        drawing = await self._running.emulation.draw(at)
        return Drawing(drawing.columns, drawing.rows, drawing.data + self._modes.redo_keys())

    async def resize(self, columns: int, rows: int) -> None:
        program = self._running
        if self._person is None:
            _resize(program, columns, rows)

    async def person(self) -> PersonSeen:
        if self._person is None:
            return PersonSeen(is_attached=False)
        ago_ms = None if self._typed_at_s is None else round((asyncio.get_running_loop().time() - self._typed_at_s) * 1000)
        return PersonSeen(is_attached=True, typed_ms_ago=ago_ms)

    async def foreground(self) -> Foreground | None:
        return self._running.child.foreground()

    async def attach(self) -> None:
        if self._person is None:
            raise TerminalError("This program runs without a terminal; attaching to it later needs `--backend tmux`.")
        await self.wait()

    # --- what the person's terminal tells --------------------------------------------------------------------------------

    def person_sent(self, data: bytes) -> None:
        self._started.queue.put(data)
        loop = asyncio.get_running_loop()
        if self._typing.feed(data):
            self._person_typed()
        elif self._typing.is_unsure:
            loop.call_later(_SETTLE_S, self._settle)
        if _CTRL_Z in data:
            loop.call_later(_STOPPED_CHECK_S, self._follow_into_sleep)

    def person_resized(self, columns: int, rows: int) -> None:
        _resize(self._started, columns, rows)

    def person_left(self) -> None:
        """As if the terminal were the program's own: it is hung up."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._started.child.foreground_group(), signal.SIGHUP)

    def person_has_room(self) -> None:
        if self._program is not None and not self._program.ended.done():
            self._program.child.resume_reading()

    def modes_to_undo(self) -> bytes:
        return self._modes.undo()

    def modes_to_redo(self) -> bytes:
        return self._modes.redo()

    def person_resumed(self) -> None:
        child = self._started.child
        for group in {child.pid, child.foreground_group()}:
            for number in (signal.SIGCONT, signal.SIGWINCH):  # the second makes it draw everything anew
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, number)

    def _settle(self) -> None:
        if self._typing.settle():
            self._person_typed()

    def _person_typed(self) -> None:
        self._typed_at_s = asyncio.get_running_loop().time()
        self._listener.person_typed()

    def _follow_into_sleep(self) -> None:
        """A program that stops itself on Ctrl-Z counts on its shell; between the two are we."""
        program = self._program
        if self._person is None or not hasattr(os, "waitid") or program is None or program.ended.done():
            return
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, program.child.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None:
                self._person.suspend()

    # --- the end -----------------------------------------------------------------------------------------------------------

    async def wait(self) -> ExitStatus:
        return await asyncio.shield(self._started.ended)

    async def stop(self, grace_s: float) -> ExitStatus:
        await end_session(self._started.child.pid, self._started.ended, grace_s)
        status = await self.wait()
        await self.close()
        return status

    def kill(self) -> None:
        if self._person is not None:
            with contextlib.suppress(Exception):  # its modes matter more than how it is left
                self._person.close()
        if self._program is not None:
            signal_session(self._program.child.pid, signal.SIGKILL)

    async def close(self) -> None:
        program = self._program
        if program is None or self._waiting is None:
            return
        if self._person is not None:
            self._person.close()
        program.queue.close()
        program.child.close()
        await asyncio.wait([program.ended], timeout=_HANG_UP_GRACE_S)
        if not program.ended.done():
            await end_session(program.child.pid, program.ended, 0)
        await self._waiting

    async def _await_end(self, program: _Program) -> None:
        status = await program.child.wait()
        if self._person is not None:
            await self._person.flush(_LAST_WORDS_S)
            self._person.close()
        if not program.ended.done():
            program.ended.set_result(status)

    @property
    def _started(self) -> _Program:
        if self._program is None:
            raise TerminalEnded("The program was not started.")
        return self._program

    @property
    def _running(self) -> _Program:
        if self._started.ended.done():
            raise TerminalEnded("The program has ended.")
        return self._started


def _resize(program: _Program, columns: int, rows: int) -> None:
    program.emulation.resize(columns, rows)
    with contextlib.suppress(OSError):
        program.child.resize(columns, rows)
