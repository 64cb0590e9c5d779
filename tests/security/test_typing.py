"""A message is never executed as a command line, and never typed where it would be: real terminals, real programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.stage import BACKENDS, DEADLINE_S, Stage, until

pytestmark = pytest.mark.terminals
LINE_AGENT = """
import sys
print("ready", flush=True)
while True:
    sys.stdout.write(sys.argv[1])
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        break
    open(sys.argv[2], "a").write(line)
"""


class Wrapped:
    def __init__(self, stage: Stage, backend: str, words: list[str]) -> None:
        self.stage = stage
        self.log = stage.daemon.state_dir / "team" / "Bob" / "wrapper.log"
        line = ["-n", "Bob", "--backend", backend, "--no-intro", *stage.where, "--", *words]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agent_relay", "wrap", *line], cwd=stage.project, env=stage.environ, stdin=subprocess.DEVNULL
        )

    def says(self, words: str) -> bool:
        return self.log.exists() and words in self.log.read_text("utf-8")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(DEADLINE_S)


@pytest.fixture
def wrap(stage: Stage) -> Iterator[Callable[..., Wrapped]]:
    wrapped: list[Wrapped] = []

    def start(backend: str, *words: str) -> Wrapped:
        wrapped.append(Wrapped(stage, backend, list(words)))
        return wrapped[-1]

    yield start
    for each in wrapped:
        each.stop()


SHELLS: dict[str, list[str]] = {
    "sh -c": ["sh", "-c", "PS1='> ' exec sh -i"],
    "behind env and nice": ["sh", "-c", "exec env PS1='❯ ' nice bash --norc -i"],
    "a child of a script": ["sh", "-c", "PS1='> ' bash --norc -i; echo over"],
    "python": ["sh", "-c", "exec python3 -i -c 'import sys; sys.ps1=\"> \"'"],
    "code of a command line": [sys.executable, "-c", "import code, sys; sys.ps1 = '> '; code.interact('')"],
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("words", SHELLS.values(), ids=list(SHELLS))
def test_a_shell_behind_anything_gets_no_byte(
    stage: Stage, wrap: Callable[..., Wrapped], tmp_path: Path, backend: str, words: list[str]
) -> None:
    proof = tmp_path / "executed"
    bob = wrap(backend, *words)
    until(bob.log.exists)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", f"hello; touch {proof}; open({str(proof)!r}, 'w')")
        until(lambda: bob.says("is in the foreground"), "it is said who reads the terminal")
    assert stage.owed("Bob")
    bob.stop()
    assert not proof.exists()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("prompt", ["", "You: ", "> "])
def test_a_plain_program_that_waits_for_a_line_is_given_it(
    stage: Stage, wrap: Callable[..., Wrapped], tmp_path: Path, backend: str, prompt: str
) -> None:
    program, heard = tmp_path / "agent.py", tmp_path / "heard"
    program.write_text(LINE_AGENT)
    bob = wrap(backend, sys.executable, str(program), prompt, str(heard))
    until(bob.log.exists)
    with stage.daemon.connect_sync("Carol") as carol:
        for body in ("one", "is it two? (y/n)", "x" * 300):
            carol.send("Bob", body).delivered(timeout=DEADLINE_S)
    lines = heard.read_text("utf-8").splitlines()
    assert [line.partition("]: ")[2] for line in lines] == ["one", "is it two? (y/n)", "x" * 300]


def test_a_pager_is_not_typed_at(stage: Stage, wrap: Callable[..., Wrapped], tmp_path: Path) -> None:
    text = tmp_path / "long"
    text.write_text("\n".join(map(str, range(1000))))
    bob = wrap("pty", "sh", "-c", f"exec less -X {text}")
    until(bob.log.exists)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "q")
        until(lambda: bob.says("less is in the foreground"), "it is said why")
    assert bob.process.poll() is None


def test_sender_and_person_are_told_why_at_once(stage: Stage, wrap: Callable[..., Wrapped]) -> None:
    bob = wrap("pty", *SHELLS["sh -c"])
    until(bob.log.exists)
    told: list[Any] = []
    with stage.daemon.connect_sync("Carol") as carol:
        carol.client.on_event = told.append
        carol.send("Bob", "hello")
        until(lambda: told, "the sender is told")
        assert (told[0].type, told[0].fields["to"]) == ("message.waits", "Bob")
        assert told[0].fields["reason"] == "program"
        assert "sh is in the foreground" in told[0].fields["text"]
        until(lambda: "sh is in the foreground" in stage.command("agents", "--json").stdout, "the person is told")
        until(
            lambda: "sh is in the foreground" in stage.command("explain", told[0].fields["messageId"]).stdout, "the trail says it"
        )
    assert stage.owed("Bob") == ["hello"]
