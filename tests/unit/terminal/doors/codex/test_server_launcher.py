"""The launcher of Codex, with real processes: a server beside a program, for as long as that lives."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_relay.terminal.doors.codex.launch import LAUNCHER

DEADLINE_S = 60.0
SERVER = """
import os, socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
open(sys.argv[2], "a").write(f"{os.getpid()}\\n")
while True:
    listener.accept()[0].close()
"""
PROGRAM = "import os, sys, time; print(os.getpid(), sys.argv[1:], flush=True); sys.stdin.read(); sys.exit(7)"


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"It did not happen: {what}."
        time.sleep(0.01)


class Stage:
    def __init__(self, folder: Path) -> None:
        self.path, self.log, self.pids = (str(folder / name) for name in ("codex.sock", "server.log", "pids"))
        self.launcher: subprocess.Popen[str] | None = None

    def start(self, server: list[str]) -> subprocess.Popen[str]:
        shown = [sys.executable, "-c", PROGRAM, "shown", "--"]
        plain = [sys.executable, "-c", PROGRAM, "plain", "--"]
        words = [self.path, self.log, str(len(server)), str(len(shown)), *server, *shown, *plain]
        self.launcher = subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCHER), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self.launcher

    @property
    def server(self) -> list[str]:
        return [sys.executable, "-c", SERVER, self.path, self.pids]

    def started(self) -> list[int]:
        return [int(line) for line in Path(self.pids).read_text().split()] if os.path.exists(self.pids) else []

    def said(self) -> str:
        assert self.launcher is not None
        assert self.launcher.stdout is not None
        return self.launcher.stdout.readline()

    def answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(self.path) == 0

    def end(self) -> None:
        if self.launcher is not None and self.launcher.returncode is None:
            self.launcher.kill()
            self.launcher.communicate()
        for pid in self.started():
            until(lambda pid=pid: not is_alive(pid), "the server ends")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second where it ends between the opening and the reading
        return False


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    one = Stage(tmp_path)
    yield one
    one.end()


def test_it_becomes_the_program_once_the_server_answers(stage: Stage) -> None:
    launcher = stage.start(stage.server)
    assert stage.said() == f"{launcher.pid} ['shown', '--']\n"
    assert stage.answers()
    [server] = stage.started()
    assert os.getpgid(server) != os.getpgid(launcher.pid), "keys and the end of the terminal are the program's affair"
    assert oct(os.stat(stage.log).st_mode)[-3:] == "600"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_ends_with_the_program_however_that_ends(stage: Stage, number: signal.Signals) -> None:
    launcher = stage.start(stage.server)
    stage.said()
    launcher.send_signal(number)
    launcher.communicate()
    until(lambda: not is_alive(stage.started()[0]), "the server ends")
    until(lambda: not os.path.lexists(stage.path), "its socket is gone")


def test_a_server_that_ended_is_started_anew(stage: Stage) -> None:
    stage.start(stage.server)
    stage.said()
    os.kill(stage.started()[0], signal.SIGKILL)
    until(lambda: len(stage.started()) == 2 and stage.answers(), "the next server answers")


@pytest.mark.parametrize("words", [["/nowhere/codex"], [sys.executable, "-c", "raise SystemExit(2)"]])
def test_without_a_server_the_program_is_started_plainly(stage: Stage, words: list[str]) -> None:
    launcher = stage.start(words)
    assert stage.said() == f"{launcher.pid} ['plain', '--']\n"
    assert not os.path.lexists(stage.path)


def test_the_status_of_the_program_is_its_own(stage: Stage) -> None:
    launcher = stage.start(stage.server)
    stage.said()
    launcher.communicate("", timeout=DEADLINE_S)
    assert launcher.returncode == 7
