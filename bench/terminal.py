"""From one agent's screen to another's prompt: two wrapped programs that do nothing else, one message at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.dialect import FailedRunError
from bench.servers import run_relay

PROGRAM = Path(__file__).with_name("terminal_agent.py")
LOOKS_LIKE = "aider"  # it keeps no session file, so what is measured is the screen
_IDLE_S = 2.0  # between two messages: longer than the wrapper leaves an agent alone after it was given something
_DEADLINE_S = 30.0
_LOOK_EVERY_S = 0.005
Moments = dict[tuple[str, int], int]


def measure_terminal(command: Sequence[str], backend: str, messages: int) -> dict[str, float]:
    with run_relay(command) as (server, path):
        where = ["--socket", path, "--state-dir", str(server.directory / "state")]
        records = [server.directory / name for name in ("writer.txt", "reader.txt")]
        with (
            _wrapped([*command, "-n", "writer", *_words(backend, where), *_program(records[0], "reader")], server.directory),
            _wrapped([*command, "-n", "reader", *_words(backend, where), *_program(records[1], "writer")], server.directory),
        ):
            writer = _wait_for(records[0], "ready")
            _wait_for(records[1], "ready")
            for number in range(1, messages + 1):
                time.sleep(_IDLE_S)
                os.kill(writer, signal.SIGUSR1)
                _wait_for(records[1], "taken", number)
            moments = [_read(record) for record in records]
    return _metrics(*moments, messages)


def _words(backend: str, where: list[str]) -> list[str]:
    return ["--backend", backend, "--no-intro", "--cli", LOOKS_LIKE, *where, "--"]


def _program(record: Path, recipient: str) -> list[str]:
    return [sys.executable, str(PROGRAM), str(record), recipient]


@contextmanager
def _wrapped(command: list[str], directory: Path) -> Iterator[None]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AGENT_RELAY_", "TMUX"))}
    environment |= {"HOME": str(directory), "AGENT_RELAY_HOME": str(directory / "home"), "TERM": "xterm-256color"}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=directory, env=environment, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        process.terminate()  # the wrapper ends its program
        try:
            process.wait(_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _read(record: Path) -> Moments:
    lines = record.read_text().split("\n")[:-1] if record.exists() else []
    words = [line.split() for line in lines]
    return {(what, int(number)): int(ns) for what, number, ns in words}


def _wait_for(record: Path, what: str, number: int | None = None) -> int:
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        found = [key[1] for key in _read(record) if key[0] == what and number in (None, key[1])]
        if found:
            return found[0]
        time.sleep(_LOOK_EVERY_S)
    raise FailedRunError(f"{record.stem}: {what} {number or ''} did not happen within {_DEADLINE_S:.0f} s")


def _metrics(written: Moments, got: Moments, messages: int) -> dict[str, float]:
    """Raises for a run in which a message was lost, doubled or out of order."""
    taken = [number for what, number in got if what == "taken"]
    if taken != list(range(1, messages + 1)):
        raise FailedRunError(f"the reader took {taken}, not 1 to {messages}, each once and in order")
    metrics: dict[str, float] = {}
    for what in ("pasted", "taken"):
        took_ms = sorted((got[what, number] - written["written", number]) / 1e6 for number in taken)
        for percent in (50, 95):
            metrics[f"{what}_p{percent}_ms"] = took_ms[min(len(took_ms) * percent // 100, len(took_ms) - 1)]
    return metrics
