"""An agent that attacks: a wrapped program in a real terminal, with a shell of its own that does what a test says."""

from __future__ import annotations

import contextlib
import json
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.stage import Agent, Stage, until

# Runs every script that appears, as an agent's tool would: as a child of the program, with the program's environment.
_HANDS = """
import os, pathlib, subprocess, sys, time
folder = pathlib.Path(sys.argv[1])
while os.getppid() != 1:
    for script in sorted(folder.glob("*.do")):
        work = script.with_suffix(".work")
        script.rename(work)
        done = subprocess.run(["/bin/sh", str(work)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        out = script.with_suffix(".part")
        out.write_text(f"{done.returncode}\\n{done.stdout}{done.stderr}")
        out.rename(script.with_suffix(".out"))
    time.sleep(0.02)
"""


@dataclass
class Said:
    status: int
    text: str


class Inside:
    """`stage.start` with hands."""

    def __init__(
        self, stage: Stage, name: str, backend: str, *options: str, folder: Path | None = None, **script: object
    ) -> None:  # fmt: skip
        """`folder`: where what it needs lies, by default the stage's own."""
        self.stage = stage
        above = folder or stage.folder
        self.folder = above / f"hands-{name}"
        self.folder.mkdir()
        hands = self.folder / "hands.py"
        hands.write_text(_HANDS)
        (play,) = stage.play(name, **script, folder=above)
        looks = ["--cli", str(script["look"])] if "look" in script else []
        run = above / f"{name}-inside.sh"
        run.write_text(f"#!/bin/sh\n{sys.executable} -I {hands} {self.folder} </dev/null >/dev/null 2>&1 &\nexec {play}\n")
        run.chmod(0o755)
        self.agent: Agent = stage.start(name, backend, *looks, *options, program=[str(run)], folder=above)
        self._count = 0

    def shell(self, script: str) -> Said:
        """Runs it inside, and waits for the end of it."""
        self._count += 1
        todo = self.folder / f"{self._count:03}.do"
        part = todo.with_suffix(".new")
        part.write_text(textwrap.dedent(script))
        part.rename(todo)
        out = todo.with_suffix(".out")
        until(out.exists, f"the shell inside {self.agent.name} did it")
        status, _, text = out.read_text().partition("\n")
        return Said(int(status), text)

    def python(self, code: str, *arguments: str, prefix: str = "") -> Said:
        """`prefix`: what comes before the interpreter, such as `env -i` or `setsid`."""
        program = self.folder / f"attack{self._count}.py"
        program.write_text(textwrap.dedent(code))
        words = " ".join(f"'{word}'" for word in arguments)
        return self.shell(f"{prefix} {sys.executable} -I {program} {words}")

    def relay(self, *words: str, prefix: str = "") -> Said:
        """The command, as the agent's shell runs it."""
        return self.shell(f"{prefix} {sys.executable} -P -m agent_relay {' '.join(words)} {' '.join(self.stage.where)}")


def wait_for_file(path: Path) -> Any:
    """What an orphan left, as JSON."""

    def read() -> Any:
        with contextlib.suppress(OSError, ValueError):
            return json.loads(path.read_text())
        return None

    return until(read, f"{path.name} is written")
