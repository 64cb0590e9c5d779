"""The agents of the demonstration, each run by `agent-relay wrap` in a terminal of its own, and the person who types to them.

In tmux the person's keys go through tmux, as from an attached client. Without tmux each wrapper has a terminal that we
hold the other end of, so that its backend has somebody to lend the screen to.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec.json import encode

from agent_relay.cli.demo.agent_script import Script
from agent_relay.cli.demo.game import script_of
from agent_relay.cli.failures import Failure
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.interpreter import run_module
from agent_relay.terminal.agent.launch import tmux_server
from agent_relay.terminal.backends.choice import Backend, Choice
from agent_relay.terminal.backends.tmux_server import session_name

_SIZE = (24, 80)  # rows and columns of a terminal that nobody looks at
_END_S = 10.0
_KEYS = 3  # at once; a tmux command for each key would be slower than a person
_KEYS_S = 0.05


class Place(Protocol):
    """The stage they play on."""

    root: Path
    environ: dict[str, str]
    socket: str
    state_dir: str
    project_id: str


class Cast:
    def __init__(self, stage: Place, choice: Choice, pace: float) -> None:
        self._stage = stage
        self._pace = pace
        self.backend = choice.backend.value
        self.server = tmux_server(choice, stage.state_dir, stage.project_id) if choice.backend is Backend.TMUX else None
        self._wrappers: dict[str, subprocess.Popen[bytes]] = {}
        self._keyboards: dict[str, int] = {}

    def record(self, name: str) -> Path:
        return self._stage.root / f"{name}.jsonl"

    def start(self, *names: str) -> None:
        for name in names:
            self.play(name, script_of(name, self._pace))

    def play(self, name: str, script: Script) -> None:
        path = self._stage.root / f"{name}.json"
        path.write_bytes(encode(script))
        program = run_module("agent_relay.cli.demo.scripted_agent", "--script", str(path), "--record", str(self.record(name)))
        words = run_module(
            "agent_relay", "wrap", f"--name={name}", f"--backend={self.backend}", "--no-intro", "--cli=demo",
            f"--socket={self._stage.socket}", f"--state-dir={self._stage.state_dir}", "--", *program,
        )  # fmt: skip
        self._wrappers[name] = self._run(name, words)

    def _run(self, name: str, words: list[str]) -> subprocess.Popen[bytes]:
        """In a session of its own: Ctrl-C is for the demonstration to handle."""
        stage = self._stage
        with self._said(name).open("ab") as said:
            if self.server is not None:
                return subprocess.Popen(  # noqa: S603 - ourselves
                    words, cwd=stage.root, env=stage.environ, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                    start_new_session=True,
                )  # fmt: skip
            ours, theirs = os.openpty()
            termios.tcsetwinsize(theirs, _SIZE)
            os.set_blocking(ours, False)
            self._keyboards[name] = ours
            asyncio.get_running_loop().add_reader(ours, _drain(ours))
            try:
                return subprocess.Popen(  # noqa: S603 - ourselves
                    words, cwd=stage.root, env=stage.environ, stdin=theirs, stdout=theirs, stderr=said, start_new_session=True
                )
            finally:
                os.close(theirs)

    def _said(self, name: str) -> Path:
        return self._stage.root / f"{name}.txt"

    def check(self) -> None:
        """Raises when one of them has ended."""
        for name, wrapper in self._wrappers.items():
            status = wrapper.poll()
            if status is not None:
                words = self._said(name).read_text(errors="replace").strip().splitlines()
                why = f": {clean_line(words[-1])}" if words else ""
                raise Failure(f"The wrapper of {name} exited during the demo, with {status}{why}")

    async def type_keys(self, name: str, text: str) -> None:
        """Types as the person of the demonstration."""
        for start in range(0, len(text), _KEYS):
            keys = text[start : start + _KEYS].encode()
            if self.server is not None:
                await self.server.run(("send-keys", "-t", f"={session_name(name)}:", "-H", *(f"{key:x}" for key in keys)))
            else:
                os.write(self._keyboards[name], keys)
            await asyncio.sleep(_KEYS_S * self._pace)

    def close(self) -> None:
        for wrapper in self._wrappers.values():
            if wrapper.poll() is None:
                wrapper.terminate()
        for wrapper in self._wrappers.values():
            try:
                wrapper.wait(_END_S)
            except subprocess.TimeoutExpired:
                wrapper.kill()
                wrapper.wait()
        if self.server is not None:  # gone with its last agent, unless a wrapper was killed
            subprocess.run([*self.server.base, "kill-server"], capture_output=True, check=False, env=self._stage.environ)  # noqa: S603
        for keyboard in self._keyboards.values():
            os.close(keyboard)


def _drain(descriptor: int) -> Callable[[], None]:
    """Somebody has to read what a terminal shows, or the program waits."""

    def read() -> None:
        try:
            alive = os.read(descriptor, 65_536)
        except BlockingIOError:
            return
        except OSError:  # EIO: the wrapper has ended
            alive = b""
        if not alive:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(descriptor)

    return read
