"""A folder from elsewhere is full of Python with well-known names, and somebody works in it: none of it is ever run."""

from __future__ import annotations

import ast
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_relay.cli.command_list import COMMANDS
from agent_relay.interpreter import run_module, run_script
from agent_relay.terminal.doors.codex import server_launcher as codex_launch
from agent_relay.terminal.doors.hooks import hook_command
from tests.integration.stage import until
from tests.security.poison import PoisonedFolder

SOURCE = Path(__file__).parents[2] / "src" / "agent_relay"
PROGRAM = str(Path(sys.executable).with_name("agent-relay"))
DEADLINE_S = 60.0
ID = "msg_01KA2V8Z5T7Q4M9C3XKJ0000A1"

# What each command is given: enough to get to its work. Most of them fail at it, and that is all the same.
WORDS: dict[str, list[str]] = {
    "wrap": ["--detach", "--no-intro", "--name", "Wrapped", "sleep", "1000"],
    "attach": ["Nobody"],
    "logs": ["Nobody"],
    "pause": ["Nobody"],
    "resume": ["Nobody"],
    "interrupt": ["Nobody"],
    "stop": ["Nobody"],
    "input": ["Nobody", "x"],
    "spawn": ["Spawned", "sleeper"],
    "release": ["Nobody"],
    "permissions": [],
    "questions": [],
    "up": [],
    "down": [],
    "status": [],
    "open": ["--no-browser"],
    "agents": [],
    "who": [],
    "send": ["Nobody", "x", "--from", "Alice"],
    "inbox": ["--as", "Alice"],
    "read": [ID],
    "history": [],
    "explain": [ID],
    "dead-letters": [],
    "events": [],
    "costs": [],
    "record": ["Nobody", "--seconds", "0.1"],
    "replay": ["nothing.cast"],
    "doctor": [],
    "demo": ["--fast"],
    "arc": [],
    "bridge": [],
    "storage": [],
    "hosts": [],
    "team": ["status"],
    "cluster": [],
    "openapi": [],
    "version": [],
    "completion": ["bash"],
    "forget": ["Nobody", "--yes"],
    "export": ["Nobody"],
    "join": ["#dev", "--as", "Nobody"],
    "leave": ["#dev", "--as", "Nobody"],
    "channels": [],
    "topic": ["#dev", "Work on the release"],
    "profile": ["list"],
    "projects": [],
    "ps": [],
    "restart": [],
    "rm": ["Nobody"],
    "prune": ["--dry-run"],
    "propose": ["Shall we?", "--to", "Nobody"],
    "vote": ["3f9c2a11", "approve"],
    "withdraw": ["3f9c2a11"],
    "proposals": [],
    "result": ["task-1", "x"],
    "run": ["nothing.yaml", "--dry-run"],
    "mcp": [],
    "acp": ["Nobody"],
    "init": ["claude", "--dry-run"],
}


class Place:
    """A poisoned project, and a home of the relay's own."""

    def __init__(self, folder: Path) -> None:
        self.poison = PoisonedFolder(folder / "project")
        programs = folder / "bin"
        programs.mkdir()
        sleeper = programs / "sleeper"
        sleeper.write_text("#!/bin/sh\nexec sleep 1000\n")
        sleeper.chmod(0o755)
        ours = ("AGENT_RELAY_", "TMUX", "PYTHON")
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environ |= {
            "HOME": str(folder), "TERM": "xterm-256color", "PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(folder),
            "AGENT_RELAY_HOME": str(folder / "home"), "AGENT_RELAY_DASHBOARD_PORT": "0", "AGENT_RELAY_SPAWN_ALLOW": "sleeper",
        }  # fmt: skip

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.poison.path, env=self.environ | environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=DEADLINE_S, check=False,
        )  # fmt: skip

    def relay(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(PROGRAM, command, *words)

    def stop_agents(self) -> None:
        """While the daemon is there to pass it on: they are not the daemon's to end, and outlive it."""
        for name in ("Wrapped", "Spawned"):
            self.relay("stop", name)
        until(lambda: not self.agents, f"the agents end: {self.agents}")

    @property
    def agents(self) -> list[int]:
        """The wrappers that run, by the home that stands in their arguments."""
        listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
        home = self.environ["AGENT_RELAY_HOME"]
        return [int(line.split()[0]) for line in listed.splitlines() if home in line and " wrap " in line]

    def close(self) -> None:
        self.stop_agents()
        self.relay("down")


@pytest.fixture
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="ar-", dir="/tmp", ignore_cleanup_errors=True) as folder:  # sockets need short paths
        found = Place(Path(folder))
        try:
            yield found
        finally:
            found.close()


def test_the_poison_works(place: Place) -> None:
    """Python as it is by itself runs what lies there: else the rest of this file shows nothing."""
    place.run(sys.executable, "-m", "agent_relay", "version")
    assert any(line.startswith("agent_relay in") for line in place.poison.was_run)


def test_every_command_has_words_here() -> None:
    assert set(WORDS) == set(COMMANDS)


@pytest.mark.terminals
@pytest.mark.timeout(600)  # forty programs, one after another
def test_no_command_runs_what_lies_there(place: Place) -> None:
    """One after another, with the daemon, the wrappers and the agents that they start."""
    assert place.relay("up").returncode == 0
    for command, words in WORDS.items():
        if command not in {"down", "demo"}:
            done = place.relay(command, *words)
            assert "Unexpected error" not in done.stderr
            assert place.poison.was_run == [], command
            if command in {"wrap", "spawn"}:
                assert done.returncode == 0, (command, done.stderr)
    place.stop_agents()
    assert place.relay("down").returncode == 0
    assert place.poison.was_run == []


@pytest.mark.terminals
@pytest.mark.parametrize("backend", ["tmux", "pty"])
def test_no_wrapper_runs_what_lies_there(place: Place, backend: str) -> None:
    """Neither the one that is started beside us, nor the daemon that this starts, nor the one that the daemon starts."""
    words = ["--backend", backend]
    assert place.relay("wrap", "--detach", "--name", "Wrapped", *words, "sleeper").returncode == 0
    assert place.relay("spawn", "Spawned", "sleeper", *words).returncode == 0
    until(lambda: "Spawned" in place.relay("who").stdout, "both run")
    assert place.poison.was_run == []


@pytest.mark.terminals
def test_the_demonstration_does_not_either(place: Place) -> None:
    done = place.relay("demo", "--fast")
    assert done.returncode == 0, done.stdout + done.stderr
    assert place.poison.was_run == []


def test_a_daemon_in_the_foreground_does_not_either(place: Place) -> None:
    with subprocess.Popen(
        [PROGRAM, "up", "--foreground"], cwd=place.poison.path, env=place.environ, stderr=subprocess.DEVNULL
    ) as daemon:
        until(lambda: place.relay("status").returncode == 0, "it answers")
        daemon.send_signal(signal.SIGTERM)
    assert place.poison.was_run == []


# Everything that we have others start: what they were told to run, in that folder, and with variables that point at it.
STARTED: dict[str, Callable[[], list[str]]] = {
    "the daemon": lambda: run_module("agent_relay.daemon", "--help"),
    "a wrapper": lambda: run_module("agent_relay", "wrap", "--help"),
    "an agent of the demonstration": lambda: run_module("agent_relay.cli.demo.scripted_agent", "--help"),
    "a hook of a CLI": lambda: ["/bin/sh", "-c", hook_command("SOCKET", "Stop", 1.0)],
    "the launcher of Codex": lambda: run_script(
        codex_launch.__file__, "SOCKET", "server.log", "1", "1", "/bin/false", "/bin/true", "/bin/true"
    ),
}


@pytest.mark.parametrize("path", ["", ":", ".", "{here}", "{here}:"])
@pytest.mark.parametrize("started", STARTED)
def test_not_even_where_the_surroundings_point_at_the_folder(place: Place, started: str, path: str) -> None:
    here = str(place.poison.path)
    words = [word.replace("SOCKET", f"{here}/s.sock") for word in STARTED[started]()]
    place.run("/bin/sh", "-c", f"exec 3<>{shlex.quote(here)}/s; {shlex.join(words)}", PYTHONPATH=path.format(here=here))
    assert place.poison.was_run == []


@pytest.mark.parametrize("words", [["-m", "agent_relay"], ["-m", "agent_relay.daemon"], [PROGRAM]])
def test_a_python_that_somebody_started_loads_nothing_more_from_there_once_it_is_ours(place: Place, words: list[str]) -> None:
    """Where no package of our name lies in front of us. What Python loads before that is Python's affair."""
    for name in ("agent_relay/__init__.py", "agent_relay/__main__.py", "sitecustomize.py", "usercustomize.py"):
        (place.poison.path / name).unlink()
    for folder in ("agent_relay/daemon/__init__.py", "agent_relay/daemon/__main__.py"):
        (place.poison.path / folder).unlink()
    done = place.run(sys.executable, *words, "--help", PYTHONPATH=":relative")
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()
    assert place.poison.was_run == []


# --- the rule: Python is started in one place ---------------------------------------------------------------------------


def find_starts(source: str) -> list[int]:
    """The lines that name the interpreter."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Attribute) and node.attr in {"executable", "_base_executable"})
        or (isinstance(node, ast.ImportFrom) and node.module == "sys" and any(name.name == "executable" for name in node.names))
        or (isinstance(node, ast.List) and node.elts and _is_python(node.elts[0]))
    ]


def _is_python(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and str(node.value).rpartition("/")[2].startswith("python")


def test_nobody_else_starts_python() -> None:
    found = {str(path.relative_to(SOURCE)): find_starts(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}
    assert found.pop("interpreter.py")
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import sys, subprocess\nsubprocess.run([sys.executable, '-m', 'agent_relay'])",
        "from sys import executable",
        "import subprocess\nsubprocess.run(['python3', '-m', 'agent_relay'])",
    ],
)
def test_the_rule_catches_what_it_is_for(source: str) -> None:
    assert find_starts(source)
