"""What is known of a program's doors at its next start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.terminal.doors import findings as kept
from agent_relay.terminal.doors.findings import FINDINGS_FILE, DoorFindings


def program(folder: Path, text: str = "") -> str:
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def of(folder: Path, name: str = "codex") -> DoorFindings:
    return DoorFindings(name, {"PATH": f"{folder}:/usr/bin:/bin"}, str(folder))


def test_a_failure_holds_for_the_program_as_it_is(tmp_path: Path) -> None:
    path = program(tmp_path)
    assert of(tmp_path).failure("codex queue") is None
    of(tmp_path).note_failed("codex queue", "There is none.", "Update Codex.")
    found = of(tmp_path).failure("codex queue")
    assert found is not None
    assert (found.reason, found.mend) == ("There is none.", "Update Codex.")
    assert of(tmp_path).failure("codex app-server") is None
    assert (tmp_path / FINDINGS_FILE).stat().st_mode & 0o077 == 0
    os.utime(path, ns=(1, 1))  # an update
    assert of(tmp_path).failure("codex queue") is None


def test_a_failure_holds_for_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path)
    of(tmp_path).note_failed("codex queue", "There is none.")
    monkeypatch.setattr(kept, "FAILED_S", 0)
    assert of(tmp_path).failure("codex queue") is None


def test_a_proof_holds_for_its_version(tmp_path: Path) -> None:
    program(tmp_path)
    of(tmp_path).note_proven("codex queue", "0.170.0")
    assert of(tmp_path).is_proven("codex queue", "0.170.0")
    assert not of(tmp_path).is_proven("codex queue", "0.171.0")
    assert of(tmp_path).failure("codex queue") is None
    of(tmp_path).note_failed("codex queue", "It is gone.")
    assert not of(tmp_path).is_proven("codex queue", "0.170.0")
    of(tmp_path).note_proven("codex app-server", "")
    assert not of(tmp_path).is_proven("codex app-server", "")


def test_many_programs_leave_room_for_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path)
    monkeypatch.setattr(kept, "_MAX_KEPT", 2)
    for number in range(4):
        os.utime(tmp_path / "codex", ns=(number, number))
        of(tmp_path).note_proven("codex queue", "1.0")
    assert of(tmp_path).is_proven("codex queue", "1.0")
    os.utime(tmp_path / "codex", ns=(0, 0))
    assert not of(tmp_path).is_proven("codex queue", "1.0")


def test_a_program_that_is_not_there_and_a_file_that_is_damaged_have_none(tmp_path: Path) -> None:
    missing = of(tmp_path, "none")
    missing.note_failed("codex queue", "There is none.")
    assert missing.failure("codex queue") is None
    program(tmp_path)
    (tmp_path / FINDINGS_FILE).write_text("{")
    assert of(tmp_path).failure("codex queue") is None
    of(tmp_path).note_proven("codex queue", "1.0")
    assert of(tmp_path).is_proven("codex queue", "1.0")
