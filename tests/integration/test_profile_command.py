"""`agent-relay profile`: from a live program to a profile that types to it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agent_relay.terminal.recordings.profile_proposal import WAITS
from tests.integration import programs
from tests.integration.stage import Stage, Window, until

pytestmark = pytest.mark.terminals


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_from_a_live_program_to_a_profile_that_is_used(stage: Stage, tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "agent-relay" / "profiles"
    program = tmp_path / "chatty"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {programs.__file__} keys 'go > ' {tmp_path / 'heard'}\n")
    program.chmod(0o755)
    words = ["profile", "new", "chatty", *stage.where, "--seconds", "4", "--say", "hello", "--", str(program)]
    asked = stage.run(words)
    said, problem = asked.communicate(timeout=60)
    assert (asked.returncode, folder.exists()) == (1, False)  # nobody was there to say yes
    assert "--yes saves" in problem
    assert "type a message: it is idle" in said
    made = stage.run([*words[:3], "--yes", *words[3:]])
    assert made.communicate(timeout=60)[1] == ""
    assert sorted(path.name for path in folder.iterdir()) == ["chatty.cast", "chatty.toml"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    again = stage.run([*words[:3], "--yes", *words[3:]])
    assert "--force" in again.communicate(timeout=60)[1]

    tried = stage.command("profile", "test", "--json")
    assert tried.returncode == 0, tried.stdout
    assert json.loads(tried.stdout)["profiles"][0]["expectations"] > 1
    listed = json.loads(stage.command("profile", "list", "--json").stdout)["profiles"][0]
    assert (listed["name"], listed["executables"]) == ("chatty", ["chatty"])

    (tmp_path / "heard").unlink()
    wrapped = stage.run(["-n", "Bob", "--backend", "pty", "--no-intro", *stage.where, "--", str(program)])
    try:
        until((stage.daemon.state_dir / "team" / "Bob" / "wrapper.log").exists)
        with stage.daemon.connect_sync("Carol") as carol:
            carol.send("Bob", "hi Bob").delivered(timeout=60)
        assert (tmp_path / "heard").read_text().endswith("hi Bob\n")
    finally:
        wrapped.terminate()
        wrapped.communicate(timeout=60)

    source = folder / "chatty.toml"
    source.write_text(source.read_text().replace("go >", "gone >"))
    failed = stage.command("profile", "test", "chatty")
    assert failed.returncode == 1
    assert "expected idle, found" in failed.stdout
    assert "gone >" in stage.command("profile", "show", "chatty").stdout
    source.write_text(source.read_text().replace("[busy]", "[bussy]"))
    broken = stage.command("profile", "test")
    assert broken.returncode == 1
    assert "unknown field; allowed: acp, asking, busy" in broken.stdout


def test_what_cannot_be_made_is_said(stage: Stage, tmp_path: Path) -> None:
    for words, said in (
        (["x"], "Say what to watch"),
        (["x", "--from", str(tmp_path / "none.cast")], "cannot be read"),
        (["generic", "--from", "y"], "cannot be the name"),
        (["x", "--agent", "Nobody"], "Nobody"),
    ):
        done = stage.command("profile", "new", *words)
        assert done.returncode != 0
        assert said in done.stderr
    assert "no profile nothing" in stage.command("profile", "show", "nothing").stderr


def recorded(folder: Path) -> str:
    """The recording while it is made."""
    return "".join(path.read_text("utf-8") for path in (folder / "tmp").glob("*/chatty.cast"))


def test_a_person_uses_the_program_and_is_asked_at_the_end(stage: Stage, tmp_path: Path) -> None:
    window = Window()
    (tmp_path / "tmp").mkdir()
    stage.environ["TMPDIR"] = str(tmp_path / "tmp")
    words = ["profile", "new", "chatty", *stage.where, "--", sys.executable, programs.__file__, "line", "[chat] "]
    process = stage.run([*words, str(tmp_path / "heard")], window)
    try:
        for turn in (1, 2):
            until(lambda count=turn: recorded(tmp_path).count(WAITS) == count, "it was seen to wait")  # type: ignore[misc]
            window.type(b"hello\r")
        until(lambda: recorded(tmp_path).count(WAITS) == 3, "it was seen to wait again")
        window.type(b"\x04")
        until(lambda: b"Save it as" in window.shown, "it asks")
        window.type(b"y\r")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
        window.close()
    assert (tmp_path / "heard").read_text() == "hello\nhello\n"
    source = (tmp_path / ".config" / "agent-relay" / "profiles" / "chatty.toml").read_text()
    assert r"^\\[chat\\]" in source
