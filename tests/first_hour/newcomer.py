"""Somebody who has just installed the wheel: a fresh HOME, a shell in a terminal, and nothing of this repository on any path."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.stage import until

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0
PROMPT = "newcomer$ "
_SHELL = ("env", f"PS1={PROMPT}", "bash", "--noprofile", "--norc", "-i")  # a shell takes PS1 out of what it hands on


def build_wheel(folder: Path) -> Path:
    """Of what git has or would take, and of nothing else that lies around here."""
    source = folder / "source"
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout  # fmt: skip
    for name in map(os.fsdecode, filter(None, listed.split(b"\0"))):
        if name.startswith(("src/", "README", "LICENSE", "pyproject")) and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    environment = os.environ | {name: str(ROOT / "constraints.txt") for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")}
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--disable-pip-version-check", "-w", str(folder)]
    subprocess.run([*command, str(source)], env=environment, check=True, stdin=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(folder: Path) -> Path:
    """The folder of the commands of an environment that holds the wheel and what it asks for. Made once a test run."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        environment = folder / "installed"
        if not (environment / "done").exists():
            wheel = build_wheel(folder)
            subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
            pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
            subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel)], check=True)
            (environment / "done").touch()
        return environment / "bin"


class Terminal:
    """A tmux of its own with a shell in it; looked at and typed into, as a person does."""

    def __init__(self, socket: Path, cwd: Path, environment: dict[str, str]) -> None:
        self._base = ["tmux", "-f", "/dev/null", "-S", str(socket)]
        # Tall, so that a whole answer stays on the screen.
        self.tmux("new-session", "-d", "-x", "150", "-y", "60", *_SHELL, cwd=cwd, env=environment)
        self.shows(PROMPT.rstrip())

    def tmux(self, *words: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
        done = subprocess.run([*self._base, *words], capture_output=True, text=True, check=True, cwd=cwd, env=env)
        return done.stdout

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-J").rstrip()

    def shows(self, *parts: str) -> None:
        until(lambda: all(part in self.screen for part in parts), f"{parts}; the screen shows:\n{self.screen}", DEADLINE_S)

    def type(self, line: str) -> None:
        self.tmux("send-keys", "-l", line)
        self.tmux("send-keys", "Enter")

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def run(self, line: str, status: int | None = 0, *, question: str = "", answer: str = "") -> str:
        """Types it and waits for the next prompt; what was printed between. `status` None: whatever it is. Where it asks the
        question, that is answered."""
        self.tmux("send-keys", "C-l")
        until(lambda: self.screen == PROMPT.rstrip(), f"an empty screen; there is:\n{self.screen}", DEADLINE_S)
        self.tmux("clear-history")
        self.type(f'{line}; echo "=$?="')
        if question:
            self.shows(question)
            self.type(answer)
        until(lambda: re.search(r"^=\d+=\n", self.screen + "\n", re.MULTILINE), f"the end of {line}:\n{self.screen}", DEADLINE_S)
        printed = self.screen.partition('echo "=$?="\n')[2].rpartition("\n")[0]
        body, _, ended = printed.rpartition("=")[0].rpartition("=")
        assert status is None or int(ended) == status, f"{line} ended with {ended}:\n{printed}"
        return body.rstrip("\n")

    def close(self) -> None:
        subprocess.run([*self._base, "kill-server"], capture_output=True, check=False)


class Newcomer:
    def __init__(self, folder: Path, commands: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.programs = folder / "programs"  # what this person has installed besides
        self.project = self.home / "my-project"
        for made in (self.home, self.programs, self.project):
            made.mkdir()
        self.environment = {
            "HOME": str(self.home), "PATH": f"{self.programs}:{commands}:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
            "TERM": "xterm-256color", "HISTFILE": "", "TMPDIR": str(folder),
            "BROWSER": "true",  # nobody looks at what `open` opens
        }  # fmt: skip
        self._terminals: list[Terminal] = []
        self._commands = commands

    def terminal(self, cwd: Path | None = None) -> Terminal:
        made = Terminal(self.folder / f"t{len(self._terminals)}", cwd or self.project, self.environment)
        self._terminals.append(made)
        return made

    def has_program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    def has_clis(self, scripts: Mapping[str, Any]) -> None:
        """Stand-ins for these CLIs, each with its script, and a project with one commit."""
        for name, script in scripts.items():
            (self.folder / f"{name}.json").write_text(json.dumps(script))
            agent = f"{self._commands}/python -P -m agent_relay.cli.demo.scripted_agent"
            files = f"--script {self.folder}/{name}.json --record {self.folder}/{name}.jsonl"
            version = f'if [ "$1" = --version ]; then echo "{name} 9.9.9"; exit; fi'
            self.has_program(name, f"#!/bin/sh\n{version}\nexec {agent} {files}\n")
        git = ["git", "-c", "user.name=N", "-c", "user.email=n@example.org"]
        subprocess.run([*git, "init", "-q"], cwd=self.project, check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=self.project, check=True)

    def leave(self) -> None:
        """Nothing of theirs goes on."""
        relay = str(self._commands / "agent-relay")
        for project in [path for path in self.home.rglob("relay.pid") if path.is_file()]:
            subprocess.run(
                [relay, "down", "--state-dir", str(project.parent)], env=self.environment, capture_output=True, check=False
            )
        for terminal in self._terminals:
            terminal.close()
        subprocess.run(["pkill", "-KILL", "-f", str(self.folder)], check=False)


@contextmanager
def newcomer(commands: Path) -> Iterator[Newcomer]:
    folder = Path(tempfile.mkdtemp(prefix="nc-"))  # short, because sockets are made in it
    person = Newcomer(folder, commands)
    try:
        yield person
    finally:
        person.leave()
        shutil.rmtree(folder, ignore_errors=True)
