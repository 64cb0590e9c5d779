"""A word that is no command of ours is never run, and a program that is not there starts nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).with_name("agent-relay"))
DEADLINE_S = 60.0


class Desk:
    def __init__(self, folder: Path) -> None:
        self.home, self.project, self.witness = folder / "home", folder / "project", folder / "run"
        (self.project / ".git").mkdir(parents=True)
        programs = folder / "bin"
        programs.mkdir()
        for name in ("deploy", "statsu"):
            (programs / name).write_text(f"#!/bin/sh\ntouch {self.witness}\n")
            (programs / name).chmod(0o755)
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
        self.environ |= {
            "AGENT_RELAY_HOME": str(self.home),
            "AGENT_RELAY_HTTP": "false",
            "PATH": f"{programs}:{os.environ['PATH']}",
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *words], cwd=self.project, env=self.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=DEADLINE_S, check=False,
        )  # fmt: skip


@pytest.fixture
def desk() -> Iterator[Desk]:
    with tempfile.TemporaryDirectory(prefix="ar-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        found = Desk(Path(folder))
        yield found
        found.run("down")


@pytest.mark.parametrize("before", [[], ["--json"], ["-d"], ["--no-intro"], ["--"]], ids=" ".join)
@pytest.mark.parametrize("word", ["unlink", "rm"])
def test_agent_relay_rm_removes_no_file(desk: Desk, before: list[str], word: str) -> None:
    file = desk.project / "Alice"
    file.write_text("precious")
    done = desk.run(*before, word, "Alice")
    if word == "rm" and before in [[], ["--json"]]:  # a command of ours: it takes agents off the lists
        assert (done.returncode, "The daemon is not running" in done.stderr) == (3, True)
    else:
        assert done.returncode == 2
        assert f"Unknown command: {word}." in done.stderr
    assert file.read_text() == "precious"
    assert not desk.home.exists()


@pytest.mark.parametrize("word", ["deploy", "statsu"])
def test_a_word_that_is_somebody_s_program_is_not_run(desk: Desk, word: str) -> None:
    done = desk.run(word, "--help")
    assert done.returncode == 2
    assert not desk.witness.exists()
    assert not desk.home.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "Alice", "no-such-program"], ["wrap", "no-such-program"], ["wrap", "--detach", "no-such-program"],
        ["wrap", "./no-such-program"], ["wrap", "."], ["-n", "Alice", "--backend", "pty", "no-such-program"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_program_that_is_not_there_starts_no_daemon(desk: Desk, words: list[str]) -> None:
    done = desk.run(*words)
    assert done.returncode == 1
    assert "is not on PATH" in done.stderr or "is not an executable file" in done.stderr
    assert not desk.home.exists()


def test_a_program_that_is_not_there_takes_no_name(desk: Desk) -> None:
    desk.environ["AGENT_RELAY_SPAWN_ALLOW"] = "no-such-program"
    assert desk.run("up").returncode == 0
    assert desk.run("-n", "Alice", "no-such-program").returncode == 1
    done = desk.run("spawn", "Bob", "no-such-program")
    assert (done.returncode, "is not installed" in done.stderr) == (1, True)
    listed = desk.run("agents").stdout
    assert "Alice" not in listed
    assert "Bob" not in listed
