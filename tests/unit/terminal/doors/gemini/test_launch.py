"""How Gemini CLI is started: the person's own flags and files stay as they are, and what is in the way is said."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from agent_relay.terminal.doors.gemini.launch import EXTENSION, NAME, VARIABLE, GeminiLauncher
from agent_relay.terminal.doors.gemini.record import KNOWN, GeminiKnown
from agent_relay.terminal.doors.known import KnownSession
from agent_relay.terminal.doors.launch import AgentPlace, PreparedStart, Program
from tests.unit.terminal.doors.heard import Heard


@pytest.fixture
def place(tmp_path: Path) -> AgentPlace:
    (tmp_path / "team").mkdir(mode=0o700)
    (tmp_path / "home" / ".gemini" / "extensions" / NAME).mkdir(parents=True)
    return AgentPlace("Bob", str(tmp_path / "team"), "0123456789ab")


def prepare(place: AgentPlace, *words: str, introduction: str = "You are Bob.", **environment: str) -> PreparedStart:
    home = str(Path(place.folder).parent / "home")
    program = Program(("gemini", *words), "/somewhere", {"HOME": home, **environment})
    return GeminiLauncher().prepare(program, place, introduction)


def test_nothing_but_a_variable_is_added(place: AgentPlace) -> None:
    prepared = prepare(place, "--resume", "latest", "--yolo", "-m", "flash", "do it")
    assert prepared.program.argv == ("gemini", "--resume", "latest", "--yolo", "-m", "flash", "do it")
    assert set(prepared.program.environment) == {"HOME", VARIABLE}
    assert not prepared.is_introduced  # the door says whether it does that: it may not open
    assert prepared.facts["introduction"] == "You are Bob."
    assert len(GeminiLauncher().doors(prepared.program, place, prepared.facts, Heard())) == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("mcp", "list"), "gemini mcp"),
        (("-p", "hello"), "With -p"),
        (("--prompt=hello",), "With --prompt"),
        (("--acp",), "With --acp"),
        (("--list-sessions",), "With --list-sessions"),
        (("--sandbox",), "sandbox"),
        (("-e", "other"), "agent-relay is not among them"),
        (("--extensions=none",), "agent-relay is not among them"),
    ],
)
def test_what_is_in_the_way(place: AgentPlace, words: tuple[str, ...], reason: str) -> None:
    prepared = prepare(place, *words)
    assert prepared.program.argv == ("gemini", *words)
    assert VARIABLE not in prepared.program.environment
    assert reason in prepared.notes[0].whole
    assert GeminiLauncher().doors(prepared.program, place, prepared.facts, Heard()) == []


@pytest.mark.parametrize("words", [("-e", "other", NAME), ("-e", f"other,{NAME}"), ("--", "-p"), ("-i", "hello")])
def test_what_is_not(place: AgentPlace, words: tuple[str, ...]) -> None:
    assert prepare(place, *words).notes == ()


def test_a_sandbox_of_the_environment(place: AgentPlace) -> None:
    assert "sandbox" in prepare(place, GEMINI_SANDBOX="docker").notes[0].whole
    assert prepare(place, GEMINI_SANDBOX="false").notes == ()


def test_without_the_extension_it_is_said_how_to_link_it(place: AgentPlace, tmp_path: Path) -> None:
    (note,) = prepare(place, HOME=str(tmp_path / "another")).notes
    assert f"gemini extensions link {EXTENSION}" in note.mend
    (note,) = prepare(place, GEMINI_CLI_HOME=str(tmp_path / "another")).notes  # moved, and `.gemini` is below
    assert "gemini extensions link" in note.mend
    assert prepare(place, HOME="/nowhere", GEMINI_CLI_HOME=str(tmp_path / "home")).notes == ()


def test_what_is_known_of_the_program_before_is_forgotten(place: AgentPlace) -> None:
    KNOWN.save(place.folder, GeminiKnown([KnownSession("1", "/a")]))
    prepare(place)
    assert KNOWN.load(place.folder) == GeminiKnown()


def test_the_version_is_that_of_the_package(place: AgentPlace, tmp_path: Path) -> None:
    program = tmp_path / "lib" / "gemini-cli" / "bundle" / "gemini.js"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gemini").symlink_to(program)
    package = {"name": "@google/gemini-cli", "version": "0.99.0"}
    (tmp_path / "lib" / "gemini-cli" / "package.json").write_text(json.dumps(package))
    facts = prepare(place, PATH=str(tmp_path / "bin")).facts
    assert facts["version"] == "0.99.0"
    assert prepare(place, PATH="/nowhere").facts["version"] == ""


def commands() -> list[str]:
    entries = json.loads((EXTENSION / "hooks" / "hooks.json").read_text())["hooks"]
    return [hook["command"] for some in entries.values() for entry in some for hook in entry["hooks"]]


@pytest.mark.parametrize("case", ["not ours", "script gone", "wrapper gone", "python gone"])
def test_hooks_that_lead_nowhere_block_nothing(place: AgentPlace, case: str) -> None:
    """The CLI takes an exit status of 127 for a refusal of the prompt, and words on standard error for a message."""
    prepared = prepare(place)
    script = prepared.program.environment[VARIABLE]
    environment = {"PATH": os.environ["PATH"], VARIABLE: script}
    if case == "not ours":
        del environment[VARIABLE]
    elif case == "script gone":
        os.unlink(script)
    elif case == "python gone":
        text = Path(script).read_text()
        Path(script).write_text(text.replace("[ -S", "[ ! -S").replace("python", "no-such-python"))
    for command in commands():
        done = subprocess.run(
            ["bash", "-c", command], env=environment, input=b"{}", capture_output=True, timeout=60, check=False
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_extension_is_named_as_it_is_looked_for() -> None:
    assert json.loads((EXTENSION / "gemini-extension.json").read_text())["name"] == NAME
    assert all(f'"${VARIABLE}"' in command for command in commands())
