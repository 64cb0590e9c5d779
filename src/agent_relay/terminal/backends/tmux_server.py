"""Our own tmux server: one a project, on a socket of its own, with options that suit an agent.

The server is started with a bare environment, since whatever it has every program in it inherits. A program's own
variables come with the client that starts it, by `update-environment`; unlike `-e NAME=VALUE` they never stand in a
command line, where every user of the machine could read a token.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import itertools
import os
import posixpath
import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence

from agent_relay.protocol.places import MAX_SOCKET_PATH_BYTES, short_socket_directory
from agent_relay.terminal.backends.terminal import SessionExists, TerminalError
from agent_relay.terminal.backends.tmux_launch import GATE_OPTION, close_gate, launch_command
from agent_relay.terminal.backends.tmux_program import Tmux, TmuxFailed, TmuxGone, base_command, run_tmux
from agent_relay.terminal.files.private_files import NotPrivate, make_private_folder

SOCKET_FILE = "tmux.sock"
_STATUS_OPTION = "@agent-relay-status"  # what is in it tmux shows as it is, and expands nothing
HISTORY_LINES = 20_000  # per agent; about 10 MB of full lines at the most. The oldest tenth goes when it is full
MAX_VARIABLE_BYTES = 16_000  # tmux silently leaves out a variable that does not fit into one of its messages
_ESCAPE_TIME_MS = 10  # 0 would tear an arrow key that ssh cut in two into Escape and rubbish; Escape interrupts an agent
_START_ATTEMPTS = 10
_START_STEP_S = 0.02  # between two attempts, growing
_INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERMINFO", "TERMINFO_DIRS", "TMPDIR", "USER")
_UNSAFE = re.compile(rb"[^A-Za-z0-9_-]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TERMINFO = ("/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/local/share/terminfo", "/opt/homebrew/share/terminfo")


def tmux_socket_path(state_dir: str, project_id: str, uid: int) -> str:
    """In the state directory, or, where that path is too long for a socket, in a short place of the user's own."""
    path = posixpath.join(state_dir, SOCKET_FILE)
    if len(path.encode("utf-8", "surrogateescape")) <= MAX_SOCKET_PATH_BYTES:
        return path
    return posixpath.join(short_socket_directory(uid), project_id, SOCKET_FILE)


def session_name(agent: str) -> str:
    """tmux forbids `.` and `:` in names and reads more into others; those become `~` and two hexadecimal digits."""
    return _UNSAFE.sub(lambda match: b"~%02x" % match[0][0], agent.encode("utf-8", "surrogateescape")).decode("ascii")


def default_terminal(environment: Mapping[str, str]) -> str:
    """`tmux-256color` where the system knows it (macOS long did not), for programs that look there what they may do."""
    home = environment.get("HOME", "")
    places = [environment.get("TERMINFO", ""), *environment.get("TERMINFO_DIRS", "").split(":"), f"{home}/.terminfo", *_TERMINFO]
    names = ("t/tmux-256color", "74/tmux-256color")
    known = any(os.path.exists(f"{place}/{name}") for place in places if place for name in names)
    return "tmux-256color" if known else "screen-256color"


class TmuxServer:
    def __init__(self, tmux: Tmux, socket: str) -> None:
        self.tmux = tmux
        self.socket = socket
        self.base = base_command(tmux, socket)

    async def run(self, *commands: tuple[str, ...]) -> str:
        return await run_tmux(self.base, *commands)

    async def start_session(
        self, agent: str, argv: Sequence[str], *, cwd: str, environment: Mapping[str, str], columns: int, rows: int
    ) -> str:
        """Returns the id of the new pane. The server is started when there is none."""
        check_environment(environment)
        name = session_name(agent)
        # What the server inherited and this program is not to have is named too: tmux then takes it out.
        names = sorted(name for name in {*environment, *_INHERITED} if _VARIABLE.fullmatch(name))
        gate = secrets.token_hex(8)
        run = launch_command(self.tmux.path, self.socket, gate, argv)
        size = ("-x", str(columns), "-y", str(rows))
        commands = [
            *close_gate(gate),
            ("set-option", "-g", "update-environment", " ".join(names)),
            # tmux takes the client's folder as the program's; `-c` it would expand as a format, which can run commands.
            ("new-session", "-d", "-s", name, "-n", "agent", *size, "-P", "-F", "#{pane_id}", "--", *run),
            ("set-option", "-t", f"={name}:", GATE_OPTION, gate),
        ]
        try:
            make_private_folder(os.path.dirname(self.socket))
        except NotPrivate as error:
            raise TerminalError(str(error)) from None
        async with self._one_at_a_time():
            return await self._start(agent, commands, environment, cwd)

    @contextlib.asynccontextmanager
    async def _one_at_a_time(self) -> AsyncIterator[None]:
        """Two that start a server at once may each get one of their own, and one of the two nobody finds again."""
        descriptor = os.open(f"{self.socket}.starting", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            await asyncio.to_thread(fcntl.flock, descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    async def _start(
        self, agent: str, commands: Sequence[tuple[str, ...]], environment: Mapping[str, str], cwd: str
    ) -> str:  # fmt: skip
        for attempt in itertools.count(1):
            try:
                await self._ensure_running(environment)
                return (await run_tmux(self.base, *commands, environment=environment, cwd=cwd)).strip()
            except TmuxGone:
                # We spoke to one that was just leaving, because its last session had ended.
                if attempt == _START_ATTEMPTS:
                    raise
                await asyncio.sleep(_START_STEP_S * attempt)
            except TmuxFailed as error:
                if "duplicate session" in str(error):
                    raise SessionExists(f"{agent} already runs in tmux; attach to it, or stop it first.") from None
                raise
            finally:
                await self._let_it_go_when_empty()
        raise AssertionError

    async def find_pane(self, agent: str) -> str | None:
        """The pane of an agent that was started before, by whomever; None when there is none."""
        name = session_name(agent)
        try:
            listed = await self.run(("list-panes", "-a", "-F", "#{session_name} #{pane_id}"))
        except TmuxGone:
            return None
        panes = (line.split(" ", 1) for line in listed.splitlines())
        return next((pane for session, pane in panes if session == name), None)

    def status_commands(self, session: str, text: str) -> list[tuple[str, ...]]:
        """Turn the bar of a session on, and the title of the windows that show it; the program keeps a title of its own."""
        to_session = ("set-option", "-t", session)
        return [(*to_session, _STATUS_OPTION, text), (*to_session, "status", "on"), (*to_session, "set-titles", "on")]

    async def kill(self) -> None:
        """Ends the server and every program in it."""
        try:
            await self.run(("kill-server",))
        except TmuxGone:
            return

    async def _let_it_go_when_empty(self) -> None:
        with contextlib.suppress(TmuxGone):  # it was empty, and went
            await self.run(("set-option", "-s", "exit-empty", "on"))

    async def _ensure_running(self, environment: Mapping[str, str]) -> None:
        inherited = {name: environment[name] for name in _INHERITED if name in environment}
        # exit-empty is off only until the first session is there; afterwards the server goes with the last one.
        commands = [("start-server",), ("set-option", "-s", "exit-empty", "off"), *self._options(environment)]
        await run_tmux(self.base, *commands, environment=inherited, cwd="/")

    def _options(self, environment: Mapping[str, str]) -> list[tuple[str, ...]]:
        globally = ("set-option", "-g")
        options: list[tuple[str, ...]] = [
            ("set-option", "-s", "escape-time", str(_ESCAPE_TIME_MS)),
            ("set-option", "-s", "default-terminal", default_terminal(environment)),
            (*globally, "history-limit", str(HISTORY_LINES)),
            (*globally, "remain-on-exit", "on"),  # the exit status and the last screen stay until we have read them
            (*globally, "status", "off"),
            (*globally, "mouse", "on"),
            (*globally, "set-titles", "off"),
            (*globally, "allow-rename", "off"),
            (*globally, "automatic-rename", "off"),
            (*globally, "destroy-unattached", "off"),
            (*globally, "detach-on-destroy", "on"),  # else a person whose agent ended would find themselves at another one
        ]
        # -q: an option this version does not know is no error.
        later = [
            ("set-option", "-gq", "status-interval", "0"),  # it is drawn when it changes
            ("set-option", "-gq", "status-style", "reverse"),
            ("set-option", "-gq", "status-format[0]", f" #{{{_STATUS_OPTION}}}"),
            ("set-option", "-gq", "set-titles-string", f"#{{{_STATUS_OPTION}}}"),
            ("set-option", "-gq", "scroll-on-clear", "off"),  # as every other terminal; positions then agree with the PTY's
            ("set-option", "-gq", "remain-on-exit-format", ""),
            ("set-option", "-sq", "extended-keys", "on"),  # Shift-Enter in CLIs that ask for it
        ]
        return [*options, *later]


def check_environment(environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name):
            continue  # such as BASH_FUNC_x%%, which tmux cannot name; the program does without
        if len(name) + len(value.encode("utf-8", "surrogateescape")) > MAX_VARIABLE_BYTES:
            raise TerminalError(f"The environment variable {name} is too long for tmux (over {MAX_VARIABLE_BYTES} bytes).")
