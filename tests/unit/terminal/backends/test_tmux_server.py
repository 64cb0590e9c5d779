from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.places import MAX_SOCKET_PATH_BYTES
from agent_relay.terminal.backends.terminal import TerminalError
from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.backends.tmux_server import (
    TmuxServer,
    check_environment,
    default_terminal,
    session_name,
    tmux_socket_path,
)


def test_names_tmux_takes() -> None:
    assert session_name("Bob") == "Bob"
    assert session_name("v1.2-x_y") == "v1~2e2-x_y"


@given(st.text(), st.text())
def test_two_agents_never_share_a_session(one: str, other: str) -> None:
    assert (session_name(one) == session_name(other)) == (one == other)
    assert not set(session_name(one)) & set(".:{}*?[]$@%! #()\n")


def test_a_long_path_moves_to_a_short_place() -> None:
    assert tmux_socket_path("/state", "abc", 7) == "/state/tmux.sock"
    moved = tmux_socket_path("/" + "long/" * 30, "abc", 7)
    assert moved == "/tmp/agent-relay-7/abc/tmux.sock"
    assert len(moved) <= MAX_SOCKET_PATH_BYTES


def test_the_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = TmuxServer(find_tmux(), str(tmp_path / "tmux.sock"))
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    with pytest.raises(TerminalError, match="not a directory that you own"):
        asyncio.run(server.start_session("Bob", ["true"], cwd=str(tmp_path), environment={}, columns=80, rows=24))


def test_a_variable_that_tmux_would_leave_out_is_refused() -> None:
    check_environment({"A": "x" * 10_000, "BASH_FUNC_x%%": "y" * 20_000})
    with pytest.raises(TerminalError, match="BIG"):
        check_environment({"BIG": "x" * 17_000})


def test_the_kind_of_terminal_is_one_the_system_knows(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "tmux-256color").touch()
    assert default_terminal({"TERMINFO": str(tmp_path)}) == "tmux-256color"
