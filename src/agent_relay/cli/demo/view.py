"""The terminals of the agents side by side, and what happens below them, for a person at a terminal.

A tmux server of its own shows them: each pane is a client that only looks at an agent's session. The person's own client
only looks as well, and Ctrl-C or `q` ends it. The person's terminal is put back by `RawMode`, whatever dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
from typing import TextIO

from agent_relay.cli.demo.game import NAMES
from agent_relay.cli.demo.stage import Stage
from agent_relay.cli.failures import Failure
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.terminal.backends.raw_mode import RawMode
from agent_relay.terminal.backends.tmux_program import Tmux
from agent_relay.terminal.backends.tmux_server import TmuxServer, default_terminal, session_name

SMALLEST = (60, 20)  # columns and rows; below that nothing of it can be read
_FALLBACK_TERMS = ("xterm-256color", "screen")  # for a terminal whose description this machine does not have
_UNDO = b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\x1b[?1049l\x1b[?25h\x1b[0m"
_SESSION, _STORY = "demo", "What happens"
_ATTACH_S = 10.0
_POLL_S = 0.02
_READ_ONLY_WITH_SIZE = (3, 2)  # since then a client that only looks has no say in the size, unless that is asked for
_END_S = 5.0


class Left(Exception):  # noqa: N818 - named by the condition
    """The person closed the view."""


def has_room() -> bool:
    """Whether there is a person at a terminal that is large enough."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    columns, rows = shutil.get_terminal_size()
    return columns >= SMALLEST[0] and rows >= SMALLEST[1]


class View:
    def __init__(self, stage: Stage, tmux: Tmux, agents: TmuxServer) -> None:
        self._stage = stage
        self._tmux = tmux
        self._agents = agents
        self._server = TmuxServer(tmux, str(stage.root / "view.sock"))
        self._terminal = RawMode(sys.stdin.fileno(), lambda: _UNDO)
        self._client: subprocess.Popen[bytes] | None = None
        self._complaints = stage.root / "view.txt"
        self.story: TextIO | None = None

    async def open(self) -> TextIO:
        """Returns where the story is to be written."""
        columns, rows = shutil.get_terminal_size()
        below = max(6, rows // 4)
        third = columns // 3
        alice, bob, carol = (self._look_at(name) for name in NAMES)
        pane = f"{_SESSION}:0"
        await self._server.run(
            ("start-server",), *self._options(),
            ("new-session", "-d", "-s", _SESSION, "-x", str(columns), "-y", str(rows), "--", *alice),
            ("split-window", "-v", "-l", str(below), "-t", f"{pane}.0", "--", "cat"),
            ("split-window", "-h", "-l", str(third * 2), "-t", f"{pane}.0", "--", *bob),
            ("split-window", "-h", "-l", str(third), "-t", f"{pane}.1", "--", *carol),
            *(("select-pane", "-t", f"{pane}.{index}", "-T", f" {title} ") for index, title in enumerate((*NAMES, _STORY))),
        )  # fmt: skip
        path = (await self._server.run(("display-message", "-p", "-t", f"{pane}.3", "#{pane_tty}"))).strip()
        self.story = open(path, "w", encoding="utf-8", errors="backslashreplace")  # noqa: ASYNC230, SIM115 - a terminal
        await self._attach()
        return self.story

    def _look_at(self, name: str) -> list[str]:
        read_only = ["-f", "read-only"] if self._tmux.version >= _READ_ONLY_WITH_SIZE else ["-r"]
        # Without TMUX it does not mind that it runs in another tmux.
        return ["env", "-u", "TMUX", *self._agents.base, "attach-session", *read_only, "-E", "-t", f"={session_name(name)}"]

    def _options(self) -> list[tuple[str, ...]]:
        globally = ("set-option", "-g")
        return [
            ("set-option", "-s", "exit-empty", "off"),
            ("set-option", "-s", "escape-time", "10"),
            ("set-option", "-s", "default-terminal", default_terminal(self._stage.environ)),
            (*globally, "assume-paste-time", "0"),  # else a Ctrl-C right after another key counts as pasted, and does nothing
            (*globally, "prefix", "None"), (*globally, "status", "off"), (*globally, "mouse", "off"),
            (*globally, "remain-on-exit", "on"), (*globally, "allow-rename", "off"),
            (*globally, "pane-border-status", "top"), (*globally, "pane-border-format", "#{pane_title}"),
            (*globally, "pane-active-border-style", "default"),
            ("unbind-key", "-a", "-T", "root"), ("unbind-key", "-a", "-T", "prefix"),
            ("bind-key", "-n", "C-c", "detach-client"), ("bind-key", "-n", "q", "detach-client"),
        ]  # fmt: skip

    async def _attach(self) -> None:
        """Standard output is not the terminal, or tmux would leave a line there at the end; it draws through the input."""
        self._terminal.enter()
        terms = (self._stage.environ.get("TERM") or _FALLBACK_TERMS[0], *_FALLBACK_TERMS)
        for term in terms:
            with self._complaints.open("wb") as complaints:
                self._client = subprocess.Popen(  # noqa: ASYNC220, S603 - our own tmux, which takes the terminal
                    [*self._server.base, "attach-session", "-r", "-E", "-t", f"={_SESSION}"],
                    env={**self._stage.environ, "TERM": term}, stdout=subprocess.DEVNULL, stderr=complaints,
                )  # fmt: skip
            deadline = asyncio.get_running_loop().time() + _ATTACH_S
            while self._client.poll() is None and asyncio.get_running_loop().time() < deadline:
                if await self._server.run(("list-clients", "-t", f"={_SESSION}")):
                    return
                await asyncio.sleep(_POLL_S)
        raise Failure(f"tmux cannot show the terminals: {self._complaint()}")

    async def widths(self) -> dict[str, int]:
        """The columns of each agent."""
        listed = await self._server.run(("list-panes", "-t", f"={_SESSION}:", "-F", "#{pane_width}"))
        return dict(zip(NAMES, map(int, listed.split()), strict=False))

    def check(self) -> None:
        """Raises when the view is no longer there."""
        if self._client is None or self._client.poll() is None:
            return
        if self._client.returncode == 0:
            raise Left
        raise Failure(f"The tmux that shows the terminals exited: {self._complaint()}")

    def _complaint(self) -> str:
        said = self._complaints.read_text(errors="replace").strip()
        return clean_line(said) or f"status {self._client.returncode if self._client is not None else 'unknown'}"

    def close(self) -> None:
        """Any number of times; the terminal is the person's again."""
        if self.story is not None:
            with contextlib.suppress(OSError):  # its terminal may be gone, with a line still to be written
                self.story.close()
            self.story = None
        subprocess.run([*self._server.base, "kill-server"], capture_output=True, check=False, env=self._stage.environ)  # noqa: S603
        if self._client is not None:
            try:
                self._client.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._client.kill()
                self._client.wait()
            self._client = None
        self._terminal.leave()
