"""Which keys leave an agent running, inside the person's own tmux and outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.cli.wrapper.wrapped_agent import find_detach_keys, is_nested


@pytest.fixture
def tmux(tmp_path: Path) -> Path:
    """One that says what its file says."""
    program = tmp_path / "tmux"
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/prefix"\n')
    program.chmod(0o755)
    (tmp_path / "socket").touch()
    return program


def keys(tmux: Path, prefix: str, socket: str = "socket") -> str:
    (tmux.parent / "prefix").write_text(prefix)
    return find_detach_keys(str(tmux), {"TMUX": f"{tmux.parent / socket},4711,0"})


def test_outside_of_tmux(tmux: Path) -> None:
    assert not is_nested({})
    assert not is_nested({"TMUX": ""})
    assert find_detach_keys(str(tmux), {}) == "Ctrl-b d"


def test_inside(tmux: Path) -> None:
    assert keys(tmux, "C-b\n") == "Ctrl-b Ctrl-b d"
    assert keys(tmux, "C-a\n") == "Ctrl-b d"


def test_one_that_does_not_say_or_is_not_ours(tmux: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    either = "Ctrl-b Ctrl-b d (or Ctrl-b d, if your own tmux has another prefix)"
    assert keys(tmux, "") == either
    assert keys(tmux, "C-b\n", socket="gone") == either
    monkeypatch.setattr("os.geteuid", lambda: 54_321)
    assert keys(tmux, "C-a\n") == either
