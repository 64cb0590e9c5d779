"""The table of docs/terminals.md: what is typed to a program that nobody has described, and what is held, and why.

All programs of a row run at the same time, each under a wrapper of its own, in real terminals.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec import Struct

from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.holds import describe_hold
from agent_relay.terminal.recordings.screen_log import SCREEN_FILE
from tests.integration import programs
from tests.integration.stage import BACKENDS, DEADLINE_S, Stage, Window, until

pytestmark = pytest.mark.terminals
PAGE = Path(__file__).parents[2] / "docs" / "terminals.md"
DELIVERED = "delivered"


class Case(Struct, frozen=True):
    """`words`: the program, with `{heard}` for the file that it writes what it is given to. `outcome`: DELIVERED, or words of
    the reason why not. `row`: how the page calls it."""

    row: str
    words: tuple[str, ...]
    outcome: str
    options: tuple[str, ...] = ()


def scripted(kind: str, prompt: str) -> tuple[str, ...]:
    return (sys.executable, programs.__file__, kind, prompt, "{heard}")


def real_or(program: str, *words: str) -> tuple[str, ...]:
    """The program itself where the machine has it; else one that uses the terminal as it does."""
    found = shutil.which(program)
    return (found, *words) if found else scripted("screen", "")


CASES = {
    "Cat": Case("`cat`, or a REPL without a prompt", ("sh", "-c", "cat > {heard}"), DELIVERED),
    "Bare": Case("`cat`, or a REPL without a prompt", scripted("line", ""), DELIVERED),
    "Angle": Case("`>`, `>>>`", scripted("line", "> "), DELIVERED),
    "Angles": Case("`>`, `>>>`", scripted("line", ">>> "), DELIVERED),
    "Label": Case("`[chat]`, `you:`", scripted("line", "[chat] "), DELIVERED),
    "Colon": Case("`[chat]`, `you:`", scripted("line", "you: "), DELIVERED),
    "Open": Case("`What now?`", scripted("line", "What now? "), DELIVERED),
    "Dollar": Case("`$` of a program that is not a shell", scripted("line", "$ "), DELIVERED),
    "Colour": Case("a prompt in colour", scripted("line", "\x1b[1;32mgo\x1b[0m \x1b[2m»\x1b[0m "), DELIVERED),
    "Boxed": Case("a box, raw mode", scripted("keys", "> "), "prompt was not recognised"),
    "Described": Case("the same with `--prompt`", scripted("keys", "> "), DELIVERED, ("--prompt", r"^│ > ")),
    "Yesno": Case("`Continue? [y/N]`, `Delete it?`", scripted("line", "Continue? [y/N] "), "waiting"),
    "Closed": Case("`Continue? [y/N]`, `Delete it?`", scripted("line", "Delete it? "), "something other than a message"),
    "Secret": Case("`Password:`", scripted("secret", "Password: "), "as for a password"),
    "Hidden": Case("a line without echo", scripted("secret", "> "), "as for a password"),
    "Vim": Case("`vim`, `less`, `top`", real_or("vim", "-u", "NONE"), "letters for commands"),
    "Less": Case("`vim`, `less`, `top`", real_or("less", programs.__file__), "letters for commands"),
    "Top": Case("`vim`, `less`, `top`", real_or("top"), "letters for commands"),
    "Bash": Case("`bash`, `python` behind anything", ("sh", "-c", "exec bash --norc -i"), "and would run the message"),
    "Python": Case("`bash`, `python` behind anything", ("env", "sh", "-c", "python3 -i"), "and would run the message"),
    "Ssh": Case("`ssh`, `docker`, `sudo` and the like", ("bash", "-c", "exec -a ssh cat"), "hides the program behind it"),
}  # fmt: skip
IN_TMUX = ("Bare", "Label", "Dollar", "Described", "Closed", "Secret", "Vim")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


class Run:
    """One program under its wrapper."""

    def __init__(self, stage: Stage, backend: str, name: str, case: Case) -> None:
        self.name, self.case = name, case
        self.message_id = ""
        self.heard = stage.folder / f"{name}.heard"
        words = [word.replace("{heard}", str(self.heard)) for word in case.words]
        line = ["wrap", "-n", name, "--backend", backend, "--no-intro", *stage.where, *case.options, "--", *words]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agent_relay", *line], cwd=stage.project, env=stage.environ, stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._log = stage.daemon.state_dir / "team" / name / "wrapper.log"

    def end(self) -> str:
        """Ends it, and says how it went."""
        ended = self.process.poll()
        self.process.terminate()
        said = self.process.communicate(timeout=DEADLINE_S)[1]
        log = self._log.read_text("utf-8") if self._log.exists() else ""
        return f"{self.name}: ended by itself with {ended}\n{said}\n{log}"

    @property
    def text(self) -> str:
        return self.heard.read_text("utf-8") if self.heard.exists() else ""


async def judge(stage: Stage, runs: list[Run]) -> dict[str, str]:
    """Sends a message to each, and says what became of it."""
    found: dict[str, str] = {}
    deadline = time.monotonic() + DEADLINE_S
    async with stage.daemon.connect("Carol") as carol:
        while len((await carol.agents()).agents) < len(runs) + 1 and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        for run in runs:
            run.message_id = (await carol.send(run.name, f"hello {run.name}")).message_id
        while not all(run.case.outcome in found.get(run.name, "") for run in runs) and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
            agents = await carol.agents()
            for run in runs:
                agent = agents.find(run.name)
                assert agent is not None
                is_there = f"hello {run.name}\n" in run.text
                why = describe_hold(agent.hold, run.name).line if agent.hold is not None else ""
                found[run.name] = DELIVERED if is_there else agent.state if agent.state == "waiting" else why
    return found


@pytest.mark.parametrize(("backend", "names"), [("pty", tuple(CASES)), ("tmux", IN_TMUX)], ids=["pty", "tmux"])
def test_what_is_typed_to_a_program_that_nobody_described(stage: Stage, backend: str, names: tuple[str, ...]) -> None:
    runs = [Run(stage, backend, name, CASES[name]) for name in names]
    stories: list[str] = []
    try:
        found = asyncio.run(judge(stage, runs))
        wrong = {name: said for name, said in found.items() if CASES[name].outcome not in said}
        stories += [run.end() for run in runs if run.name in wrong]
        assert wrong == {}, "\n".join(stories)
        held = [run for run in runs if run.case.outcome != DELIVERED]
        assert all(not run.text for run in held)
        assert all(stage.owed(run.name) == [f"hello {run.name}"] for run in held[:2])
        bare = next(run for run in runs if run.name == "Bare")
        try:
            until(lambda: "injected" in stage.command("explain", bare.message_id).stdout, "the evidence is told")
        except AssertionError as error:
            raise AssertionError(f"{stage.command('explain', bare.message_id).stdout}\n{bare.text!r}\n{bare.end()}") from error
        assert "seen: waiting for input" in stage.command("explain", bare.message_id).stdout
    finally:
        for run in runs:
            run.process.terminate()
        for run in runs:
            run.process.communicate(timeout=DEADLINE_S)


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text("utf-8")
    table = re.search(r"\| program \| a message is \|.*?\n\n", text, re.DOTALL)
    assert table is not None
    for case in CASES.values():
        row = next((line for line in table[0].splitlines() if line.startswith(f"| {case.row} |")), "")
        assert row, case.row
        assert ("typed" in row.split("|")[2]) is (case.outcome == DELIVERED), row


def test_a_shell_is_refused_at_once(stage: Stage) -> None:
    for program in ("bash", "python3"):
        process = stage.run(["wrap", "-n", "Shell", *stage.where, "--", program])
        said = process.communicate(timeout=DEADLINE_S)[1]
        assert process.returncode != 0
        assert "would run messages as commands" in said


def test_a_piped_standard_input_is_typed_once_the_program_is_ready(stage: Stage, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    words = [
        "-n",
        "Piped",
        "--backend",
        "pty",
        "--no-intro",
        *stage.where,
        "--",
        sys.executable,
        programs.__file__,
        "line",
        "[chat] ",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", *words, str(heard)], cwd=stage.project, env=stage.environ, stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write("hi there\n->relay:Carol not sent\n")
        process.stdin.close()
        until(lambda: heard.exists() and heard.read_text() == "hi there ->relay:Carol not sent\n", "it is typed")
        assert process.poll() is None  # the end of the input is not the program's
    finally:
        process.terminate()
        process.wait(DEADLINE_S)
        assert process.stderr is not None
        assert "Piped runs" in process.stderr.read()
        process.stderr.close()
    with stage.daemon.connect_sync("Carol") as carol, pytest.raises(RelayError):
        carol.receive(timeout=0.5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_bullets_are_no_part_of_what_a_program_says_and_what_is_typed_is_not_said(stage: Stage, backend: str) -> None:
    """`cat` repeats what is typed: the echo is the person's, the repetition the program's."""
    window = Window()
    script = r"printf '● ->relay:Carol one\n\n> ->relay:Carol two\n\n'; exec cat"
    words = ["-n", "Bob", "--backend", backend, "--no-intro", *stage.where, "--", "sh", "-c", script]
    screen = stage.daemon.state_dir / "team" / "Bob" / SCREEN_FILE
    with stage.daemon.connect_sync("Carol") as carol:
        process = stage.run(words, window)
        try:
            assert [carol.receive(timeout=DEADLINE_S).body for _ in range(2)] == ["one", "two"]
            until(lambda: getattr(carol.agents().find("Bob"), "state", "") == "idle", "it waits for a line")
            window.type(b"->relay:Carol three")
            until(lambda: "Carol three" in screen.read_text("utf-8"), "it is typed")
            window.type(b"\r")
            assert carol.receive(timeout=DEADLINE_S).body == "three"
            window.type(b"->relay:Carol four")
            until(lambda: screen.read_text("utf-8").endswith("Carol four\n"), "it is typed")
            window.type(b"\r")
            assert carol.receive(timeout=DEADLINE_S).body == "four"
        finally:
            stage.command("stop", "Bob")
            process.wait(DEADLINE_S)
            process.communicate()
            window.close()
