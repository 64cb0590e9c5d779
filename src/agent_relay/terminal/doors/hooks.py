"""Hooks of a CLI: a socket for each agent, private to the user, the commands and scripts that lead to it, and the session that
they tell of.

A hook is answered with the text it should print, or with nothing, which leaves the decision to the CLI. A handler that
fails or takes too long says nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import shlex
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from agent_relay.interpreter import run_script
from agent_relay.private_files import replace_private
from agent_relay.protocol.places import MAX_SOCKET_PATH_BYTES, short_socket_directory
from agent_relay.terminal.doors.door import Decision
from agent_relay.terminal.doors.requests import HookRequests
from agent_relay.terminal.files.private_files import make_private_folder

CLIENT = Path(__file__).with_name("hook_client.py")
MAX_INPUT_BYTES = 16_777_216
_HEAD_S = 5.0
LOOK_S = 1.0
BUSY_LOOK_S = 0.1  # while something is on its way
_log = logging.getLogger("agent_relay.terminal")

Handler = Callable[[str, dict[str, Any]], Awaitable[str | None]]


def hook_socket_path(folder: str, project_id: str, agent: str) -> str:
    """In the agent's folder, or in a short place of the user's own where that path is too long for a socket."""
    path = os.path.join(folder, "hooks.sock")
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    return os.path.join(short_socket_directory(os.getuid()), project_id, f"{agent}.hooks.sock")


def hook_words(path: str, event: str, seconds: float) -> list[str]:
    """The words to run for a hook. It gives up a moment before the CLI does, so that the CLI sees no failure."""
    return run_script(str(CLIENT), path, event, f"{seconds:g}")


def hook_command(path: str, event: str, seconds: float) -> str:
    """The same as a line for a shell, which ends well also when nothing of us is there any more."""
    words = shlex.join(hook_words(path, event, seconds))
    return f"if [ -S {shlex.quote(path)} ]; then {words} || true; fi"


def notice_command(path: str, event: str, seconds: float) -> str:
    """The same for a hook that only tells something: the CLI does not wait for it. A shell gives what runs beside it no standard
    input, unless that is kept under another number."""
    words = shlex.join(hook_words(path, event, seconds))
    return f"if [ -S {shlex.quote(path)} ]; then exec 3<&0; {words} <&3 3<&- >/dev/null 2>&1 & fi"


def marker_path(folder: str, cli: str) -> str:
    """The file that is there while something waits for the agent."""
    return os.path.join(folder, f"{cli}-waiting")


def while_marked(marker: str, command: str) -> str:
    """The same command, run only while that file is there, so that a hook costs next to nothing else."""
    return f"if [ -e {shlex.quote(marker)} ]; then {command}; fi"


def event_script(commands: Mapping[str, str]) -> bytes:
    """A script that is run with an event as its only word: it runs the event's command, and ends well whatever happens."""
    cases = [f"{event}) {command} ;;" for event, command in commands.items()]
    return "\n".join(['case "$1" in', *cases, "esac", "exit 0", ""]).encode()


class HookServer:
    """`handle` is given the event's name and what the CLI said of it."""

    def __init__(self, path: str, handle: Handler) -> None:
        self.path = path
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._token = b""
        self._open: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        make_private_folder(os.path.dirname(self.path))
        self._token = secrets.token_urlsafe(32).encode()
        replace_private(f"{self.path}.token", self._token)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # of a wrapper that died: the agent's name is ours
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, self.path)
        finally:
            os.umask(before)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._open):
            writer.close()  # without the last byte, so that half an answer is none
        for path in (self.path, f"{self.path}.token"):
            with contextlib.suppress(OSError):
                os.unlink(path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            event, given = await self._read(reader)
            answer = await self._answer(event, given)
            writer.write((answer or "").encode() + b"\n")
            await writer.drain()
        except (OSError, ValueError, RecursionError, TimeoutError, asyncio.IncompleteReadError) as error:
            _log.info("a hook was not understood: %s", type(error).__name__)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> tuple[str, dict[str, Any]]:
        async with asyncio.timeout(_HEAD_S):
            token = (await reader.readline()).rstrip(b"\n")
            if not hmac.compare_digest(token, self._token):
                raise ValueError("token")
            event = (await reader.readline()).decode().strip()
            size = int(await reader.readline())
            if not 0 <= size <= MAX_INPUT_BYTES:
                raise ValueError("size")
            given = msgspec.json.decode(await reader.readexactly(size) or b"{}")
        if not isinstance(given, dict):
            raise ValueError("input")
        return event, given

    async def _answer(self, event: str, given: dict[str, Any]) -> str | None:
        try:
            return await self._handle(event, given)
        except Exception:  # noqa: BLE001 - the CLI decides by itself then
            _log.exception("the hook %s was not answered", event)
            return None


R = TypeVar("R", bound=HookRequests[Any])


class HookedSession(ABC, Generic[R]):
    """A running session, as its hooks and its session file tell of it. It is looked at when a hook came, and every second.

    `title`: that of the CLI. `socket`: where its hooks are heard, empty for one that has none.
    """

    def __init__(self, title: str, socket: str, requests: R) -> None:
        self._title = title
        self._hooks = HookServer(socket, self._take_hook) if socket else None
        self._looking = asyncio.Lock()
        self._due = asyncio.Event()  # there is something to look for
        self._tasks: list[asyncio.Task[None]] = []
        self.requests = requests
        self.is_over = False

    async def listen(self) -> None:
        """Raises OSError where the hooks cannot be listened to."""
        if self._hooks is not None:
            await self._hooks.open()

    def watch(self) -> None:
        self._tasks.append(asyncio.create_task(self._run()))

    async def close(self) -> None:
        self.is_over = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.requests.close()
        if self._hooks is not None:
            await self._hooks.close()

    @property
    def is_open(self) -> bool:
        return bool(self._tasks) and not self.is_over

    async def answer(self, request_id: str, decision: Decision) -> None:
        if self.is_open:
            await self.look()  # a person may have answered a moment ago
        self.requests.answer(request_id, decision)

    def hurry(self) -> None:
        """Something is to be looked for from now on."""
        self._due.set()

    async def look(self) -> None:
        """Reads what is new, and tells it."""
        async with self._looking:
            await self._look()

    async def _run(self) -> None:
        while not self.is_over:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BUSY_LOOK_S if self._is_busy else LOOK_S):
                    await self._due.wait()
            self._due.clear()
            try:
                await self.look()
                self._tend()
            except Exception:  # noqa: BLE001 - a fault must not end as silence
                _log.exception("the session of %s cannot be watched", self._title)
                self._fail(f"The session of {self._title} can no longer be watched.")

    @property
    def _is_busy(self) -> bool:
        """Something is on its way, and looked for more often."""
        return self.requests.is_open

    @abstractmethod
    async def _take_hook(self, event: str, given: dict[str, Any]) -> str | None:
        """The answer to a hook, as it prints it."""

    @abstractmethod
    async def _look(self) -> None: ...

    def _tend(self) -> None:
        """After every look that was not asked for."""

    def _fail(self, reason: str) -> None:
        """A look went wrong. The next one may not."""
