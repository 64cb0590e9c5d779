"""A stage for agents in terminals: a real daemon, the real command, real terminals, and scripted agents that record every
byte they are given."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.backends.tmux_server import TmuxServer
from agent_relay.testing.agent import AgentProcess, write_program
from agent_relay.testing.daemon import DaemonProcess

DEADLINE_S = 60.0  # a loaded machine takes many times what an idle one does
BACKENDS = ("tmux", "pty")
_STOP_S = 20.0
_SHELL = '"$@"; echo "rc=$?."; exec sleep 1000'
# Makes the terminal on its standard input its own, as a shell in a window has it: hanging up and a new size are told to it.
_AT_WINDOW = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def until(condition: Callable[[], Any], what: str = "", deadline_s: float = DEADLINE_S) -> Any:
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"it did not happen: {what or condition}")


class Window:
    """A person's terminal: what is shown is read at once and kept, so that nobody waits for it."""

    def __init__(self, columns: int = 120, rows: int = 40) -> None:
        self.master, self.slave = os.openpty()
        self.resize(columns, rows)
        self.settings = termios.tcgetattr(self.slave)
        self.shown = b""
        self._closed, self._closing = os.pipe()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while self._closed not in select.select([self.master, self._closed], [], [])[0]:
                self.shown += os.read(self.master, 65_536)

    @property
    def is_as_before(self) -> bool:
        return termios.tcgetattr(self.slave) == self.settings

    def resize(self, columns: int, rows: int) -> None:
        termios.tcsetwinsize(self.slave, (rows, columns))

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def close(self) -> None:
        """Whoever has it as their terminal is hung up."""
        os.close(self._closing)
        self._reading.join()
        for descriptor in (self._closed, self.slave, self.master):
            os.close(descriptor)


class Agent(AgentProcess):
    """A wrapped scripted agent, and what its wrapper keeps of it."""

    def __init__(self, name: str, process: subprocess.Popen[str], record: Path, state_dir: Path, window: Window | None) -> None:
        super().__init__(name, process, record)
        self.window = window
        self.team = state_dir / "team" / name
        self.outbox = state_dir / "outbox" / name

    def pids(self) -> list[int]:
        """The programs that write this record: those of this very agent."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    if b"agent_relay.cli.demo.scripted_agent" in words and str(self.record).encode() in words:
                        found.append(int(entry.name))
        return found

    @property
    def typed(self) -> bytes:
        return b"".join(base64.b64decode(event["bytes"]) for event in self.events("input"))

    def bytes_in(self, mode: str) -> bytes:
        return b"".join(base64.b64decode(event["bytes"]) for event in self.events("input") if event["mode"] == mode)

    @property
    def token(self) -> str:
        """Of this run, as the program finds it in its environment."""
        return str(json.loads((self.team / "run.json").read_text())["token"])

    @property
    def shell(self) -> dict[str, str]:
        """What the environment of a shell in it has."""
        return {"AGENT_RELAY_NAME": self.name, "AGENT_RELAY_OUTBOX": str(self.outbox), "AGENT_RELAY_TOKEN": self.token}

    @property
    def log(self) -> str:
        path = self.team / "wrapper.log"
        return path.read_text("utf-8") if path.exists() else ""

    @property
    def inbox(self) -> str:
        path = self.team / "inbox.md"
        return path.read_text("utf-8") if path.exists() else ""

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)


class Stage:
    """`flags` are the daemon's. `directory`: where it keeps its files, by default somewhere outside of the person's home."""

    def __init__(self, folder: Path, *flags: str, directory: Path | None = None) -> None:
        self.folder = folder
        self.daemon = DaemonProcess(f"--spawn-roots={folder}", *flags, directory=directory).start()
        self.agents: list[Agent] = []
        self.project = folder / "project"
        (self.project / ".git").mkdir(parents=True)
        ours = ("AGENT_RELAY_", "TMUX", "COLUMNS", "LINES")
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environ.update(HOME=str(folder), AGENT_RELAY_HOME=str(folder / "home"), TERM="xterm-256color")

    @property
    def where(self) -> list[str]:
        return ["--socket", self.daemon.socket, "--state-dir", str(self.daemon.state_dir)]

    @property
    def tmux(self) -> list[str]:
        """The command that speaks to the project's own tmux."""
        return TmuxServer(find_tmux(), str(self.daemon.state_dir / "tmux.sock")).base

    def start(
        self,
        name: str,
        backend: str,
        *options: str,
        intro: bool = False,
        person: bool | Window = False,
        has_shell: bool = False,
        program: Sequence[str] = (),
        folder: Path | None = None,
        **script: Any,
    ) -> Agent:
        """Returns when the program is up, or was before. A script with the `look` of a CLI is wrapped as that CLI. Its record is
        in the `folder`."""
        record = (folder or self.folder) / f"{name}.jsonl"
        words = ["-n", name, "--backend", backend, *([] if intro else ["--no-intro"]), *self.where, *options]
        words += ["--cli", script["look"]] if "look" in script else []
        window = person if isinstance(person, Window) else Window() if person else None
        process = self.run([*words, *(program or self.play(name, **script))], window, has_shell=has_shell)
        found = Agent(name, process, record, self.daemon.state_dir, window)
        self.agents.append(found)
        until(lambda: found.events("started") or process.poll() is not None, f"{name} starts")
        assert process.poll() is None, process.communicate()
        return found

    def run(self, words: Sequence[str], window: Window | None = None, *, has_shell: bool = False) -> subprocess.Popen[str]:
        """The command with these words, in this window or in none. With a shell, that is there before and afterwards."""
        streams = (subprocess.DEVNULL, subprocess.PIPE) if window is None else (window.slave, window.slave)
        at_window = [] if window is None else [sys.executable, "-c", _AT_WINDOW]
        shell = ["/bin/sh", "-c", _SHELL, "sh"] if has_shell else []
        return subprocess.Popen(
            [*at_window, *shell, sys.executable, "-m", "agent_relay", *words], cwd=self.project, env=self.environ, text=True,
            stdin=streams[0], stdout=streams[1], stderr=subprocess.PIPE,
        )  # fmt: skip

    def play(self, name: str, folder: Path | None = None, **script: Any) -> list[str]:
        """A file to be run, since the flags that a CLI is given are none of the scripted agent's."""
        return [str(write_program(folder or self.folder, name, **script))]

    def command(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "agent_relay", *words, *self.where], cwd=self.project, env=self.environ | environ,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip

    def type_keys(self, agent: Agent, text: str) -> None:
        """As a person would: in their window, or in tmux where they have none."""
        if agent.window is not None:
            agent.window.type(text.encode())
            return
        keys = [f"{byte:x}" for byte in text.encode()]
        subprocess.run([*self.tmux, "send-keys", "-t", f"={agent.name}:", "-H", *keys], check=True, capture_output=True)

    def settled(self, name: str, count: int) -> None:
        """The daemon owes this agent nothing, of so many messages."""

        async def ask() -> tuple[int, int]:
            async with self.daemon.connect(observer=True) as relay:
                page = await relay.history(to=name, limit=500)
                mine = (await relay.agents()).find(name)
                assert mine is not None
                return len(page.messages), mine.queue_depth + mine.inflight

        until(lambda: asyncio.run(ask()) == (count, 0), f"{name} has acknowledged {count}")

    def owed(self, name: str) -> list[str]:
        """Bodies that the daemon still owes this agent."""

        async def ask() -> list[str]:
            async with self.daemon.connect(observer=True) as relay:
                page = await relay.history(to=name, pending=True)
                return [message["payload"]["body"] for message in page.messages]

        return asyncio.run(ask())

    def close(self) -> None:
        for agent in self.agents:
            if agent.process.poll() is None:
                agent.process.send_signal(signal.SIGTERM)
        for agent in self.agents:
            with contextlib.suppress(subprocess.TimeoutExpired):
                agent.process.communicate(timeout=_STOP_S)
            agent.process.kill()
            agent.process.communicate()
            if agent.window is not None:
                agent.window.close()
            print(f"--- {agent.name}\n{agent.log[-4000:]}")  # shown where the test has failed
        if (self.daemon.state_dir / "tmux.sock").exists():
            subprocess.run([*self.tmux, "kill-server"], capture_output=True, check=False)
        self.daemon.remove()
