"""A program in a session of our own tmux server. It lives on when we go; a person may attach, detach, and come back.

What it writes is pushed to us by control mode; nothing is polled. tmux's own emulation is the screen. Of the human
tmux tells whether somebody is attached and the second of their last key or mouse event, not the keys themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from agent_relay.terminal.backends.foreground import inspect_foreground
from agent_relay.terminal.backends.keyboard import clean_paste
from agent_relay.terminal.backends.modes import ModeTracker
from agent_relay.terminal.backends.processes import end_session, signal_session, wait_for_end
from agent_relay.terminal.backends.program import check_program
from agent_relay.terminal.backends.terminal import (
    DEFAULT_COLUMNS,
    DEFAULT_ROWS,
    UNKNOWN_SIGNAL,
    Drawing,
    ExitStatus,
    Foreground,
    Key,
    PersonSeen,
    TerminalEnded,
    TerminalError,
    TerminalListener,
)
from agent_relay.terminal.backends.tmux_client import ControlClient
from agent_relay.terminal.backends.tmux_drawing import ask_view, draw
from agent_relay.terminal.backends.tmux_launch import ENDED_OPTION, GATE_OPTION, EndMarkFinder, end_lock, start_lock
from agent_relay.terminal.backends.tmux_program import TmuxFailed, TmuxGone, client_environment
from agent_relay.terminal.backends.tmux_screen import PaneReader
from agent_relay.terminal.backends.tmux_server import TmuxServer
from agent_relay.terminal.screen.contents import Screen

# tmux hangs up on its programs when it goes, and then nobody can tell how they ended.
ENDED_WITH_TMUX = ExitStatus(128 + signal.SIGHUP, signal.SIGHUP)
ENDED_BY_A_SIGNAL = ExitStatus(UNKNOWN_SIGNAL)  # tmux before 3.3 does not say by which
_STATUS_DEADLINE_S = 5.0
_STATUS_STEPS_S = (0.005, 0.02, 0.05, 0.1, 0.25)
_KEYS_A_COMMAND = 500  # send-keys takes a word for each byte; a line stays below what a pipe holds
_FALLBACK_TERMS = ("xterm-256color", "screen")  # for a terminal whose description this machine does not have
_PERSON = b"person"
_SIGNAL_NUMBERS = frozenset(int(number) for number in signal.valid_signals())
_numbers = itertools.count(1)


class TmuxTerminal:
    def __init__(self, server: TmuxServer, agent: str, listener: TerminalListener) -> None:
        self._server = server
        self._agent = agent
        self._listener = listener
        self._client = ControlClient(server, self)
        self._reader = PaneReader(self._client)
        self._modes = ModeTracker()
        self._saw_all = True
        self._person_value: bytes | None = None
        self._ended: asyncio.Future[ExitStatus] | None = None
        self._mark = EndMarkFinder()
        self._watching: asyncio.Task[None] | None = None
        self._letting_go: asyncio.Task[None] | None = None
        self._session = ""
        self._gate = ""
        self._tty = ""
        self._pid = 0
        self._server_pid = 0

    @property
    def pid(self) -> int | None:
        return self._pid or None

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
        pane = await self._server.start_session(self._agent, argv, cwd=cwd, environment=environment, columns=columns, rows=rows)
        try:
            await self._open(pane)
            await self._client.ask(("select-pane", "-t", pane, "-T", ""))  # the title is the host's name at first
            await self._unlock(start_lock(self._gate))
        except BaseException:
            with contextlib.suppress(TmuxGone):
                await self._server.run(("kill-pane", "-t", pane))
            await self.close()
            raise

    async def reattach(self) -> None:
        """Takes up a program that was started before; raises TerminalEnded when there is none."""
        pane = await self._server.find_pane(self._agent)
        if pane is None:
            raise TerminalEnded(f"{self._agent} does not run in tmux.")
        self._saw_all = False
        await self._open(pane)
        await self._reader.adopt()
        await self._unlock(start_lock(self._gate))  # should whoever started it have died before
        await self._let_go_if_over()

    async def _open(self, pane: str) -> None:
        self._ended = asyncio.get_running_loop().create_future()
        await self._client.open(pane, dict(os.environ))
        facts = await self._display(f"#{{session_id}} #{{pane_pid}} #{{pid}} #{{pane_tty}} #{{{GATE_OPTION}}}")
        self._session, pid, server_pid, self._tty, self._gate = facts.split(" ")
        self._pid, self._server_pid = int(pid), int(server_pid)
        if self._client.has_flow_control:
            # tmux looks at the value once a second, and tells when it has changed.
            await self._client.ask(("refresh-client", "-B", f"{_PERSON.decode()}::#{{session_activity}}"))
        self._watching = asyncio.create_task(self._watch_end())

    # --- what the client tells -----------------------------------------------------------------------------------------

    def pane_wrote(self, data: bytes) -> None:
        data, is_over = self._mark.feed(data)
        if data:
            self._modes.feed(data)
            self._reader.fed(data)
            self._listener.output(data)
        if is_over:
            self._letting_go = asyncio.create_task(self._let_go())

    def pane_output_lost(self) -> None:
        """The mark of the end may have been among it."""
        self._saw_all = False
        self._listener.output_lost()
        self._letting_go = asyncio.create_task(self._let_go_if_over())

    def subscription_changed(self, name: bytes, value: bytes) -> None:
        if name == _PERSON:
            before, self._person_value = self._person_value, value
            if before is not None and before != value:
                self._listener.person_typed()

    def client_gone(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(ENDED_WITH_TMUX)

    # --- typing --------------------------------------------------------------------------------------------------------

    async def write(self, data: bytes) -> None:
        await self._leave_copy_mode()
        for start in range(0, len(data), _KEYS_A_COMMAND):
            keys = [f"{byte:x}" for byte in data[start : start + _KEYS_A_COMMAND]]
            await self._client.ask(("send-keys", "-t", self._client.pane, "-H", *keys))

    async def press(self, key: Key) -> None:
        await self._leave_copy_mode()
        await self._client.ask(("send-keys", "-t", self._client.pane, key.value))

    async def paste(self, text: str) -> None:
        text = clean_paste(text)
        if not text:
            return
        await self._leave_copy_mode()
        name = f"agent-relay-{os.getpid()}-{next(_numbers)}"
        paste = f"paste-buffer -p -d -b {name} -t {self._client.pane}"
        # Over the line we have: another client takes a while to start, in which a dialog may open where we looked. Whether
        # the program still runs is asked in the same breath: tmux falls over when it pastes into a dead pane.
        await self._client.ask(
            ("set-buffer", "-b", name, "--", text),
            ("if-shell", "-F", "-t", self._client.pane, "#{pane_dead}", f"delete-buffer -b {name}", paste),
            answers=3,
        )

    @property
    def takes_paste(self) -> bool | None:
        return self._modes.bracketed_paste if self._saw_all or self._modes.bracketed_paste else None

    async def show_status(self, text: str) -> None:
        await self._client.ask(*self._server.status_commands(self._session, text))

    async def interrupt(self) -> None:
        await self.press(Key.CTRL_C)

    async def _leave_copy_mode(self) -> None:
        """A person who scrolled back has put the pane into a mode that eats keys, and hides from tmux itself that the
        program wants its pastes bracketed."""
        self._check_running()
        if await self._display("#{pane_in_mode}") != "0":
            with contextlib.suppress(TmuxFailed):  # they left it themselves
                await self._client.ask(("send-keys", "-t", self._client.pane, "-X", "cancel"))

    # --- looking -------------------------------------------------------------------------------------------------------

    async def screen(self) -> Screen:
        return await self._reader.read()

    async def draw(self, at: Callable[[], None]) -> Drawing:
        self._check_running()
        sight = await ask_view(self._client, self._client.pane, at)
        return Drawing(sight.columns, sight.rows, draw(sight).encode() + self._modes.redo_keys())

    async def resize(self, columns: int, rows: int) -> None:
        self._check_running()
        await self._client.ask(
            ("resize-window", "-t", self._client.pane, "-x", str(columns), "-y", str(rows)),
            # That made the size a manual one; without this a person who attaches would be stuck with it.
            ("set-option", "-w", "-u", "-t", self._client.pane, "window-size"),
        )

    async def person(self) -> PersonSeen:
        listed, facts = await self._client.ask(
            ("list-clients", "-t", self._session, "-F", "#{client_control_mode} #{client_created} #{client_activity}"),
            ("display-message", "-p", "-t", self._client.pane, "#{pane_in_mode}"),
        )
        people = [line.split() for line in listed if line.startswith(b"0 ")]
        # Attaching counts as activity too. Only whole seconds are known, so the latest possible moment is assumed.
        typed = [int(activity) + 1 for _, created, activity in people if activity != created]
        ago_ms = max(0, round((time.time() - max(typed)) * 1000)) if typed else None
        return PersonSeen(bool(people), ago_ms, is_scrolled_back=facts != (b"0",))

    async def foreground(self) -> Foreground | None:
        self._check_running()
        try:
            tty = os.open(self._tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            return inspect_foreground(tty, self._pid)
        finally:
            os.close(tty)

    async def _display(self, wanted: str) -> str:
        (lines,) = await self._client.ask(("display-message", "-p", "-t", self._client.pane, wanted))
        return b"".join(lines).decode("utf-8", "replace")

    # --- the person's own terminal -----------------------------------------------------------------------------------------

    async def attach(self) -> None:
        self._check_running()
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise TerminalError("Attaching needs a terminal; run this in one.")
        environment = client_environment(os.environ)
        said = ""
        for term in (environment.get("TERM") or _FALLBACK_TERMS[0], *_FALLBACK_TERMS):
            code, said = await self._attach_once({**environment, "TERM": term})
            if code == 0 or "terminal" not in said:
                return
        raise TmuxFailed(f"tmux: {said}")

    async def _attach_once(self, environment: dict[str, str]) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *self._server.base,
            *("attach-session", "-E", "-t", self._session),
            env=environment,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        detaching = asyncio.create_task(self._detach_at_the_end(process.pid))
        try:
            said = await process.stderr.read()
            return await process.wait(), said.decode("utf-8", "replace").strip()
        finally:
            detaching.cancel()

    async def _detach_at_the_end(self, client_pid: int) -> None:
        """The dead pane stays for us to read; the person need not look at it."""
        await self.wait()
        with contextlib.suppress(TmuxGone, TmuxFailed):
            (listed,) = await self._client.ask(("list-clients", "-t", self._session, "-F", "#{client_pid} #{client_name}"))
            for line in listed:
                pid, _, name = line.decode("utf-8", "replace").partition(" ")
                if pid == str(client_pid):
                    await self._client.ask(("detach-client", "-t", name))

    # --- the end -----------------------------------------------------------------------------------------------------------

    async def wait(self) -> ExitStatus:
        if self._ended is None:
            raise TerminalEnded("The program was not started.")
        return await asyncio.shield(self._ended)

    async def stop(self, grace_s: float) -> ExitStatus:
        if self._ended is None:
            raise TerminalEnded("The program was not started.")
        if self._ended.done():
            self._ended.result()  # raises, where it was closed and not ended
        await end_session(self._pid, self._ended, grace_s)
        status = await self.wait()
        with contextlib.suppress(TmuxGone):
            # Reset first: one that had to be killed may have left the mode on that tmux dies of (`END_MARK`).
            await self._server.run(("send-keys", "-R", "-t", self._client.pane), ("kill-session", "-t", self._session))
        await self.close()
        return status

    def kill(self) -> None:
        if self._ended is not None:
            signal_session(self._pid, signal.SIGKILL)

    async def close(self) -> None:
        tasks = [task for task in (self._watching, self._letting_go) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._ended is not None:
            await self._client.close()
            if not self._ended.done():
                self._ended.set_exception(
                    TerminalEnded("This end of the terminal was closed; the program keeps running in tmux.")
                )
                self._ended.exception()  # nobody has to ask

    async def _watch_end(self) -> None:
        assert self._ended is not None
        await wait_for_end(self._pid)
        try:
            status = await self._read_status()
        except (TmuxGone, TmuxFailed):
            status = ENDED_WITH_TMUX
        if not self._ended.done():
            self._ended.set_result(status)

    async def _let_go_if_over(self) -> None:
        with contextlib.suppress(TmuxGone, TmuxFailed):
            if await self._display(f"#{{{ENDED_OPTION}}}"):
                await self._let_go()

    async def _let_go(self) -> None:
        """Everything the program wrote has been passed on."""
        await self._unlock(end_lock(self._gate))

    async def _unlock(self, lock: str) -> None:
        with contextlib.suppress(TmuxGone, TmuxFailed):  # another listener was faster
            await self._client.ask(("wait-for", "-U", lock))

    async def _read_status(self) -> ExitStatus:
        """tmux has been seen to miss the signal that a child has ended, and then never to look. It is sent again."""
        deadline = time.monotonic() + _STATUS_DEADLINE_S
        for step_s in itertools.chain(_STATUS_STEPS_S, itertools.repeat(_STATUS_STEPS_S[-1])):
            dead, code, number = (await self._display("#{pane_dead},#{pane_dead_status},#{pane_dead_signal}")).split(",")
            if dead == "1" and number.isdigit():
                return ExitStatus(128 + int(number), int(number))
            if dead == "1" and code.isdigit():
                return _read_code(int(code))
            if time.monotonic() > deadline:
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._server_pid, signal.SIGCHLD)
            await asyncio.sleep(step_s)
        return ENDED_BY_A_SIGNAL

    def _check_running(self) -> None:
        if self._ended is None or self._ended.done():
            raise TerminalEnded("The program has ended." if self._ended is not None else "The program was not started.")


def _read_code(code: int) -> ExitStatus:
    """The shell that ran the program has added 128 to a signal's number."""
    return ExitStatus(code, code - 128 if code - 128 in _SIGNAL_NUMBERS else None)
