"""What a CLI says its version is: asked once for each program that is installed, and not waited for for long."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.terminal.doors import versions
from agent_relay.terminal.doors.versions import (
    CACHE_FILE,
    VersionLookup,
    ask_version,
    numbers_of,
    recall_version,
    remember_version,
)


def program(folder: Path, says: str, name: str = "opencode") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho asked >> {folder}/asked\n{says}\n")
    path.chmod(0o700)
    return str(path)


def asked(folder: Path) -> int:
    return len((folder / "asked").read_text().splitlines())


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ("echo codex-cli 0.166.0", "0.166.0"),
        ("echo '2.1.325 (Claude Code)'", "2.1.325"),
        ("echo v1.2 >&2", "1.2"),
        ("echo 1.19.0-beta.3", "1.19.0-beta.3"),
        ("echo none", ""),
        ("exit 3", ""),
    ],
)
def test_a_version_is_read_from_whatever_is_said(tmp_path: Path, says: str, version: str) -> None:
    assert ask_version(program(tmp_path, says)) == version


def test_a_program_that_is_not_there_or_does_not_end(tmp_path: Path) -> None:
    assert ask_version(str(tmp_path / "none")) == ""
    assert ask_version(program(tmp_path, "exec sleep 60"), timeout_s=0.2) == ""


def look_up(folder: Path) -> str:
    return VersionLookup("opencode", {"PATH": f"{folder}:/usr/bin:/bin"}, str(folder)).wait(30)


def test_it_is_asked_once_for_each_program_that_is_installed(tmp_path: Path) -> None:
    program(tmp_path, "echo 1.17.0")
    assert [look_up(tmp_path), look_up(tmp_path)] == ["1.17.0", "1.17.0"]
    assert asked(tmp_path) == 1
    path = program(tmp_path, "echo 1.18.0")  # an update
    os.utime(path, ns=(1, 1))
    assert look_up(tmp_path) == "1.18.0"
    assert asked(tmp_path) == 2
    assert (tmp_path / CACHE_FILE).stat().st_mode & 0o077 == 0


def test_an_old_answer_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "echo 1.17.0")
    look_up(tmp_path)
    monkeypatch.setattr(versions, "KEPT_S", 0)
    assert look_up(tmp_path) == "1.17.0"
    assert asked(tmp_path) == 2


def test_nobody_waits_for_one_that_is_slow_and_rubbish_is_no_answer(tmp_path: Path) -> None:
    program(tmp_path, "read forever < /dev/tty || sleep 60")
    (tmp_path / CACHE_FILE).write_text("rubbish")
    assert VersionLookup("opencode", {"PATH": f"{tmp_path}:/usr/bin:/bin"}, str(tmp_path)).wait(0.05) == ""
    assert VersionLookup("opencode", {"PATH": str(tmp_path / "nowhere")}, str(tmp_path)).wait(30) == ""


def test_numbers_are_compared_as_numbers() -> None:
    assert numbers_of("1.17.0-beta.2") == numbers_of("1.17.0") == (1, 17, 0)
    assert numbers_of("1.9") < numbers_of("1.17.0") < numbers_of("1.17.19") < numbers_of("2")
    assert numbers_of("unknown") == numbers_of("") == ()


def test_a_version_is_remembered_without_asking(tmp_path: Path) -> None:
    path = program(tmp_path, "exit 1")
    environ = {"PATH": "/usr/bin:/bin"}
    assert recall_version(path, environ, str(tmp_path)) == ""
    remember_version(path, environ, str(tmp_path), "")
    assert recall_version(path, environ, str(tmp_path)) == ""
    remember_version(path, environ, str(tmp_path), "2.1.325")
    assert recall_version(path, environ, str(tmp_path)) == "2.1.325"
    assert recall_version("no-such-program", environ, str(tmp_path)) == ""
    Path(path).write_text("#!/bin/sh\nexit 2\n# another one\n")
    assert recall_version(path, environ, str(tmp_path)) == ""
