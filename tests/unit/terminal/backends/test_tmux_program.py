from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.terminal.backends.choice import Backend, choose_backend
from agent_relay.terminal.backends.terminal import BackendMissing
from agent_relay.terminal.backends.tmux_program import (
    TmuxFailed,
    TmuxGone,
    base_command,
    client_environment,
    find_tmux,
    parse_version,
    raise_tmux_error,
)


@pytest.mark.parametrize(
    ("said", "version"),
    [("tmux 3.3a", (3, 3)), ("tmux 3.1c\n", (3, 1)), ("tmux next-3.5", (3, 5)), ("tmux 2.9", (2, 9)), ("tmux master", (99, 0))],
)
def test_versions(said: str, version: tuple[int, int]) -> None:
    assert parse_version(said) == version
    assert parse_version("tmux openbsd-7.4") == (99, 0)


def fake_tmux(folder: Path, script: str) -> str:
    program = folder / "tmux"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(folder)


def test_the_real_one_is_found_and_chosen() -> None:
    tmux = find_tmux()
    assert tmux.version >= (3, 0)
    assert choose_backend("auto").backend is Backend.TMUX
    assert choose_backend(Backend.TMUX).tmux == tmux
    assert choose_backend("pty").backend is Backend.PTY


@pytest.mark.parametrize(
    ("script", "reason"),
    [(None, "not found"), ("echo tmux 2.8", "2.8"), ("exit 1", "cannot be run"), ("kill -9 $$", "cannot be run")],
)
def test_without_a_tmux_that_serves_auto_takes_the_pty(tmp_path: Path, script: str | None, reason: str) -> None:
    path = str(tmp_path) if script is None else fake_tmux(tmp_path, script)
    choice = choose_backend("auto", path)
    assert choice.backend is Backend.PTY
    assert reason in choice.reason
    with pytest.raises(BackendMissing, match="--backend pty"):
        choose_backend("tmux", path)


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(BackendMissing, match=r"'screen'.*auto, tmux or pty"):
        choose_backend("screen")


def test_the_one_place_for_errors() -> None:
    raise_tmux_error(0, "")
    for said in ("no server running on /x", "can't find session: Bob", "server exited unexpectedly"):
        with pytest.raises(TmuxGone):
            raise_tmux_error(1, said)
    with pytest.raises(TmuxFailed, match="duplicate session"):
        raise_tmux_error(1, "duplicate session: Bob")
    with pytest.raises(TmuxFailed, match="exit code 3"):
        raise_tmux_error(3, "")


def test_only_our_own_socket_and_no_configuration() -> None:
    command = base_command(find_tmux(), "/s")
    assert command[1:] == ["-u", "-f", os.devnull, "-S", "/s"]
    assert client_environment({"TMUX": "x", "TMUX_PANE": "%1", "A": "b"}) == {"A": "b"}
