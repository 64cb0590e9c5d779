"""A control mode client: the line over which tmux tells what a pane writes, and takes our commands.

Answers come in the order of the commands. When we read too slowly tmux drops output and says so, instead of piling it
up or throwing us out: the owner is told and reads the screen. tmux before 3.2 has no such flow control.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Protocol

from agent_relay.terminal.backends import tmux_control as control
from agent_relay.terminal.backends.tmux_program import TmuxFailed, TmuxGone, client_environment, raise_tmux_error
from agent_relay.terminal.backends.tmux_server import TmuxServer

PAUSE_AFTER_S = 5  # how far behind we may be before tmux starts to drop; well below the 5 minutes after which it cuts us off
_READ_BYTES = 256 * 1024
_ANSWER_DEADLINE_S = 20.0
_BEHIND_BYTES = 512  # unread by us; from there on tmux stops reading the pane
_NUDGE_AFTER_S = 0.1
FLOW_CONTROL_SINCE = (3, 2)

Lines = tuple[bytes, ...]


class ClientOwner(Protocol):
    def pane_wrote(self, data: bytes) -> None: ...

    def pane_output_lost(self) -> None: ...

    def subscription_changed(self, name: bytes, value: bytes) -> None: ...

    def client_gone(self) -> None: ...


class _Request:
    """Commands of one line, and the answers so far; after an error tmux does not run the rest of the line."""

    def __init__(self, count: int, at_answer: Callable[[], None] | None = None) -> None:
        self.missing = count
        self.at_answer = at_answer
        self.answers: list[Lines] = []
        self.future: asyncio.Future[list[Lines]] = asyncio.get_running_loop().create_future()

    def take(self, answer: control.Answer) -> bool:
        """Whether that was the last answer."""
        if answer.is_error:
            self.fail(_read_error(answer))
            return True
        self.answers.append(answer.lines)
        self.missing -= 1
        if not self.missing and not self.future.done():
            if self.at_answer is not None:
                self.at_answer()
            self.future.set_result(self.answers)
        return not self.missing

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


def _read_error(answer: control.Answer) -> Exception:
    said = b"\n".join(answer.lines).decode("utf-8", "replace")
    try:
        raise_tmux_error(1, said)
    except (TmuxFailed, TmuxGone) as error:
        return error
    raise AssertionError(said)


class ControlClient:
    def __init__(self, server: TmuxServer, owner: ClientOwner) -> None:
        self._server = server
        self.pane = ""  # once it is open
        self._owner = owner
        self._parser = control.ControlParser()
        self._requests: deque[_Request] = deque()
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_gone = False
        self._unasked_bytes = 0
        self._nudging: asyncio.TimerHandle | None = None
        self._attached: asyncio.Future[None] | None = None

    @property
    def has_flow_control(self) -> bool:
        return self._server.tmux.version >= FLOW_CONTROL_SINCE

    async def open(self, pane: str, environment: dict[str, str]) -> None:
        self.pane = pane
        flags = ["-f", f"ignore-size,pause-after={PAUSE_AFTER_S}"] if self.has_flow_control else []
        # -E: attaching must not change the environment of what the session starts later.
        arguments = ["-C", "attach-session", "-E", *flags, "-t", self.pane]
        self._process = await asyncio.create_subprocess_exec(
            *self._server.base,
            *arguments,
            env=client_environment(environment),
            cwd="/",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C at our own terminal is not meant for it
        )
        self._attached = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read(self._process))
        # A command that is sent earlier may be run before we are attached, and then finds no client.
        async with asyncio.timeout(_ANSWER_DEADLINE_S):
            await self._attached

    async def ask(
        self, *commands: tuple[str, ...], at_answer: Callable[[], None] | None = None, answers: int | None = None
    ) -> list[Lines]:
        """The answers to these commands, run with nothing between them.

        `at_answer` is called when the answers are there and no output that came after them has been passed on yet.
        `answers`: how many there are, where a command runs another one, which answers too."""
        if self._is_gone or self._process is None or self._process.stdin is None:
            raise TmuxGone("The connection to tmux is closed.")
        request = _Request(answers or len(commands), at_answer)
        self._requests.append(request)
        self._unasked_bytes = 0
        try:
            self._process.stdin.write(control.command_line(*commands))
            async with asyncio.timeout(_ANSWER_DEADLINE_S):
                await self._process.stdin.drain()
                return await request.future
        except TimeoutError:
            raise TmuxFailed(f"tmux did not answer within {_ANSWER_DEADLINE_S:.0f} seconds.") from None
        except (ConnectionError, RuntimeError) as error:
            raise TmuxGone(f"The connection to tmux is closed: {error}") from None

    async def close(self) -> None:
        self._is_gone = True
        if self._process is None or self._reading is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()  # an end of input is how a control client is told to go
        try:
            async with asyncio.timeout(_ANSWER_DEADLINE_S):
                await self._reading
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            while data := await process.stdout.read(_READ_BYTES):
                self._watch_for_stall(len(data))
                for event in self._parser.feed(data):
                    self._handle(event)
        except control.ControlBroken:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        was_open, self._is_gone = not self._is_gone, True
        if self._nudging is not None:
            self._nudging.cancel()
        if self._attached is not None and not self._attached.done():
            self._attached.set_exception(TmuxGone("tmux, or the session in it, has ended."))
        for request in self._requests:
            request.future.add_done_callback(_look_away)  # whoever asked may have given up
            request.fail(TmuxGone("tmux, or the session in it, has ended."))
        self._requests.clear()
        if was_open:
            self._owner.client_gone()

    def _handle(self, event: control.Event) -> None:
        match event:
            case control.Output(pane, data) if pane == self.pane.encode():
                self._owner.pane_wrote(data)
            case control.Answer(is_ours=True) if self._requests:
                if self._requests[0].take(event):
                    self._requests.popleft()
            case control.Paused(pane) if pane == self.pane.encode():
                self._owner.pane_output_lost()
                self._continue()
            case control.Notice(b"session-changed") if self._attached is not None and not self._attached.done():
                self._attached.set_result(None)
            case control.Subscribed(name, value):
                self._owner.subscription_changed(name, value)
            case _:
                pass

    # --- commands nobody waits for -----------------------------------------------------------------------------------

    def _continue(self) -> None:
        """All that was sent has been read, so more may come."""
        self._tell("refresh-client", "-A", f"{self.pane}:continue")

    def _watch_for_stall(self, size_bytes: int) -> None:
        """tmux stops reading a pane while we are behind, and has been seen not to begin again when we have caught up,
        until anything at all happens. So something does, once output has paused, unless somebody asked meanwhile."""
        self._unasked_bytes += size_bytes
        if self._unasked_bytes >= _BEHIND_BYTES:
            loop = asyncio.get_running_loop()
            if self._nudging is not None:
                self._nudging.cancel()
            self._nudging = loop.call_later(_NUDGE_AFTER_S, self._nudge)

    def _nudge(self) -> None:
        self._nudging = None
        if self._unasked_bytes >= _BEHIND_BYTES:
            self._tell("display-message", "-p", "")

    def _tell(self, *command: str) -> None:
        if self._process is not None and self._process.stdin is not None and not self._is_gone:
            request = _Request(1)
            request.future.add_done_callback(_look_away)
            self._requests.append(request)  # the answer must be counted
            self._unasked_bytes = 0
            self._process.stdin.write(control.command_line(command))


def _look_away(future: asyncio.Future[list[Lines]]) -> None:
    if not future.cancelled():
        future.exception()
