"""`agent-relay run` with agents that are really started: the examples, every way a run can end, and going on afterwards."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.stage import DEADLINE_S, Stage, until
from tests.integration.test_spawning import is_alive

pytestmark = pytest.mark.terminals

EXAMPLES = Path(__file__).parents[2] / "examples"
LONG_S = 120.0
ID = r"[\s\S]*result (task-[\w-]+) <<<"


def answer(when: str, *lines: str) -> dict[str, Any]:
    """Gives the result in the agent's own words, by the id that it was told."""
    groups = when.count("(") - when.count("(?:")
    return {"when": when + ID, "busy_ms": 20, "say": [rf"->relay:result \{groups + 1} <<<", *lines, ">>>"]}


TURNS = [
    answer(r"May this be released", '{"choice": "yes", "reason": "fine"}'),
    answer(r"You are the judge", '{"winner": "Small",', '"verdict": "It is simpler."}'),
    answer(r"In this debate you are (\w+)", r"\1 is better."),
    answer(r"Write a report", "All is well."),
    answer(r"Review what was changed", "It is good."),
    answer(r"Carry this plan out", "I wrote it."),
    answer(r"Plan this change", "Write it."),
    answer(r"Review (\S+) for security", '{"risk": "low", "problems": []}'),
    answer(r"Make the tests pass", "They pass."),
    answer(r"Bring the documentation", "It is."),
    answer(r"Summarise", "Done."),
    {"when": r"Work on: slow", "busy_ms": 20, "say": ["I think about it."]},
    answer(r"Work on: (\w+)", r"\1 is done"),
]
# Slow ones are slow only until the file `fast` is there.
MOODY = '#!/bin/sh\nif [ -e "{0}/fast" ]; then exec "{0}/Fast.sh"; else exec "{0}/Worker.sh"; fi\n'
FOUR = """
agents: {{cli: "{cli}", timeout: 110}}
steps:
  - {{id: work, map: {{task: Do., items: [one, slow1, two, slow2]}}}}
"""


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.worker, self.moody = str(folder / "Worker.sh"), str(folder / "Moody.sh")
        allowed = f"--spawn-allow={self.worker},{self.moody}"
        self.stage = Stage(folder, allowed, "--spawns-per-minute=1000", "--run-grace=1s")
        self.stage.play("Worker", turns=TURNS)
        self.stage.play("Fast", turns=[turn for turn in TURNS if "slow" not in str(turn["when"])])
        Path(self.moody).write_text(MOODY.format(folder))
        Path(self.moody).chmod(0o755)

    def write(self, name: str, text: str) -> str:
        path = self.stage.project / f"{name}.yaml"
        path.write_text(text)
        return str(path)

    def begin(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "agent_relay", "run", *words, *self.stage.where]
        return subprocess.Popen(
            command, cwd=self.stage.project, env=self.stage.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def finish(self, *words: str) -> subprocess.CompletedProcess[str]:
        running = self.begin(*words)
        try:
            out, errors = running.communicate(timeout=LONG_S)
        except subprocess.TimeoutExpired:
            running.kill()
            raise
        return subprocess.CompletedProcess(words, running.returncode, out, errors)

    def sessions(self) -> list[dict[str, Any]]:
        async def ask() -> list[dict[str, Any]]:
            async with self.stage.daemon.connect(observer=True) as relay:
                return (await relay.agents()).sessions

        return asyncio.run(ask())

    def left(self) -> list[str]:
        """All that a run must not leave: sessions, processes, terminals, names, dead letters."""
        sessions = self.sessions()
        found = [f"session {each['agent']}" for each in sessions if each["status"] != "ended"]
        found += [f"process {each['pid']}" for each in sessions if is_alive(each["pid"])]
        found += [f"program {line}" for line in _programs(self.folder)]
        listed = subprocess.run([*self.stage.tmux, "ls"], capture_output=True, text=True, check=False)
        found += [f"terminal {line}" for line in listed.stdout.splitlines()]

        async def ask() -> list[str]:
            async with self.stage.daemon.connect(observer=True) as relay:
                names = [f"name {agent.name}" for agent in (await relay.agents()).agents]
                return names + [f"letter {letter['to']}" for letter in (await relay.dead_letters()).messages]

        return found + asyncio.run(ask())

    def leaves_nothing(self) -> None:
        until(lambda: not self.left(), "nothing is left", LONG_S)

    def close(self) -> None:
        with self.stage.daemon.connect_sync("Lead") as lead:
            for session in lead.agents().sessions:
                if session["status"] != "ended":  # left by a test that has failed
                    lead.release(session["agent"])
        self.stage.close()


def _programs(folder: Path) -> list[str]:
    """Scripted agents of this scene, in any state."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"agent_relay.cli.demo.scripted_agent" in words and any(str(folder).encode() in word for word in words):
                found.append(entry.name)
    return found


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    folder = Path(tempfile.mkdtemp(prefix="relay-r-"))
    made = Scene(folder)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    ("name", "given", "output", "agents"),
    [
        ("review", [], "All is well.", 7),
        ("feature", ["--var", "feature=Log in."], "It is good.", 8),
        ("watch", [], "Done.", 4),
    ],
)
def test_the_examples_run_with_scripted_agents(scene: Scene, name: str, given: list[str], output: str, agents: int) -> None:
    before = len(scene.sessions())
    done = scene.finish(str(EXAMPLES / f"{name}.yaml"), "--var", f"cli={scene.worker}", *given, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["outcome"], found["failures"], done.stderr) == ("completed", [], "")
    assert output in found["output"]
    assert len(scene.sessions()) - before == agents
    if name == "review":
        assert found["steps"]["reviews"]["values"] == [{"risk": "low", "problems": []}] * 3
        assert found["steps"]["release"]["counts"] == {"yes": 3, "no": 0}
    if name == "feature":
        assert (found["steps"]["approach"]["winner"], len(found["steps"]["approach"]["statements"])) == ("Small", 4)
    scene.leaves_nothing()


@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM", "SIGKILL", "SIGKILL, and the daemon with it"])
def test_however_a_run_ends_nothing_is_left_and_it_goes_on_later(scene: Scene, ending: str) -> None:
    (scene.folder / "fast").unlink(missing_ok=True)
    file = scene.write(ending.partition(",")[0] + str("daemon" in ending), FOUR.format(cli=scene.moody))
    before = len(scene.sessions())
    running = scene.begin(file)
    assert running.stderr is not None
    heard: list[str] = []
    while sum(" answered" in line for line in heard) < 2:  # those that are not slow
        line = running.stderr.readline()
        assert line, heard
        heard.append(line)
    until(lambda: sum(each["status"] == "running" for each in scene.sessions()) == 2, "the slow ones work")
    if "daemon" in ending:
        scene.stage.daemon.kill()
    running.send_signal(signal.Signals[ending.partition(",")[0]])
    out, errors = running.communicate(timeout=LONG_S)
    assert (running.returncode, out) == ({"SIGINT": 130, "SIGTERM": 143}.get(ending, -9), "")
    if ending in {"SIGINT", "SIGTERM"}:
        assert "run the same command again to go on" in errors
    if "daemon" in ending:
        scene.stage.daemon.start()
    scene.leaves_nothing()
    (scene.folder / "fast").touch()
    again = scene.finish(file, "--json")
    assert again.returncode == 0, again.stderr
    results = json.loads(again.stdout)["steps"]["work"]["results"]
    assert [each["result"] for each in results] == [f"{item} is done" for item in ("one", "slow1", "two", "slow2")]
    assert len(scene.sessions()) - before == 6, heard  # the two that had answered were not started again
    scene.leaves_nothing()
    assert list((scene.stage.daemon.state_dir / "runs").iterdir()) == []


def test_a_failure_is_said_with_what_to_do_and_a_second_run_is_refused_meanwhile(scene: Scene) -> None:
    file = scene.write(
        "bad",
        f'agents: {{cli: "{scene.worker}"}}\nsteps:\n  - {{id: a, pipeline: {{stages: [{{name: A, cli: sh, task: x}}]}}}}\n',
    )
    done = scene.finish(file)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Step a failed. " in done.stderr
    assert "may not be started here" in done.stderr
    assert "Run the same command again to go on from there." in done.stderr
    slow = scene.write("slow", f'agents: {{cli: "{scene.worker}"}}\nsteps:\n  - {{id: a, map: {{task: Do., items: [slow]}}}}\n')
    running = scene.begin(slow)
    assert running.stderr is not None
    assert "a begun" in running.stderr.readline()
    second = scene.finish(slow)
    assert (second.returncode, "runs already" in second.stderr) == (1, True)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=DEADLINE_S)
    scene.leaves_nothing()
