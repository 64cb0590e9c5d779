"""How an agent is launched: what is refused, which words and variables its program gets, and where its files are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.terminal.agent.launch import (
    Home,
    WrapFailed,
    arguments,
    check_command,
    child_environment,
    is_terminal_error,
    make_terminal,
    pick_backend,
    tmux_server,
)
from agent_relay.terminal.backends.choice import Backend
from agent_relay.terminal.backends.pty import PtyTerminal
from agent_relay.terminal.backends.terminal import TerminalError
from agent_relay.terminal.backends.tmux import TmuxTerminal
from agent_relay.terminal.profiles.profile import load_profiles
from tests.unit.terminal.backends.recorder import Recorder

PROFILES = load_profiles()


@pytest.mark.parametrize(
    "command",
    [
        "", "bash", "-bash", "/bin/sh", "bash -i", "bash --login", "zsh -l", "sh -s", "bash +x", "python3", "python3.11",
        "python -i", "python3 -", "node", "psql mydb", "sqlite3 x.db", "mysql -u me db", "env bash", "/usr/bin/env -i A=b zsh -l",
        "bash.exe",
    ],
)  # fmt: skip
def test_a_program_that_would_run_messages_is_refused(command: str) -> None:
    with pytest.raises(WrapFailed) as refused:
        check_command(command.split())
    assert is_terminal_error(refused.value)


@pytest.mark.parametrize(
    "command",
    [
        "claude", "bash run.sh", "bash -lc claude", "python3 -m aider", "python3.11 agent.py", "node cli.js", "env A=b claude",
        "env", "cat", "/opt/bash/agent", "pythonic", "bashful",
    ],
)  # fmt: skip
def test_an_agent_is_not_whatever_starts_it(command: str) -> None:
    check_command(command.split())


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_flags_are_added_once_and_not_before_a_subcommand(name: str) -> None:
    profile = PROFILES[name]
    flags = list(profile.launch.flags)
    assert arguments([name], profile) == [name, *flags]
    assert arguments([name, *flags], profile) == [name, *flags]
    assert arguments([name, "-x", "y"], profile) == [name, *flags, "-x", "y"]
    assert arguments([name, "login", "-x"], profile) == [name, "login", "-x"]


def test_a_persons_own_variable_wins_over_the_profile_and_ours_over_both() -> None:
    ours = {"AGENT_RELAY_NAME", "AGENT_RELAY_SOCKET", "AGENT_RELAY_PROJECT", "AGENT_RELAY_OUTBOX", "AGENT_RELAY_INBOX"}
    for profile in PROFILES.values():
        given = {**dict.fromkeys(profile.launch.environment, "mine"), **dict.fromkeys(ours, "theirs")}
        found = child_environment(given, profile, Home("/state", "Bob"), socket="/s", root="/r", inbox="/i")
        assert {name: found[name] for name in profile.launch.environment} == dict.fromkeys(profile.launch.environment, "mine")
        assert "theirs" not in found.values()
        bare = child_environment({}, profile, Home("/state", "Bob"), socket="/s", root="/r", inbox="/i")
        assert set(bare) == ours | set(profile.launch.environment)


def test_no_token_and_no_other_tmux_reach_the_program() -> None:
    secret = {"AGENT_RELAY_TOKEN": "x", "AGENT_RELAY_API_TOKEN": "x", "TMUX": "x", "TMUX_PANE": "x"}
    found = child_environment(secret, PROFILES["generic"], Home("/state", "Bob"), socket="/s", root="/r", inbox="/i")
    assert not set(found) & set(secret)


def test_an_agents_files_are_made_closed_and_kept(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "state"), "Bob")
    home.make()
    Path(home.outbox, "note").touch()
    home.make()
    assert Path(home.outbox, "note").exists()
    assert {os.stat(folder).st_mode & 0o777 for folder in (home.team, home.outbox)} == {0o700}
    assert home.team != home.outbox


def test_the_backend_that_was_picked_is_the_one_that_is_made(tmp_path: Path) -> None:
    home = Home(str(tmp_path), "Bob")
    tmux, pty = pick_backend("tmux"), pick_backend("pty")
    assert (tmux.backend, pty.backend) == (Backend.TMUX, Backend.PTY)
    assert isinstance(make_terminal(tmux, home, "project", Recorder()), TmuxTerminal)
    assert isinstance(make_terminal(pty, home, "project", Recorder()), PtyTerminal)
    assert tmux_server(tmux, str(tmp_path), "project").socket == str(tmp_path / "tmux.sock")


def test_which_errors_are_sentences() -> None:
    assert is_terminal_error(TerminalError("x"))
    assert not is_terminal_error(ValueError("x"))
    with pytest.raises(WrapFailed, match="nonsense"):
        pick_backend("nonsense")


def test_flags_that_help_are_added_where_they_can_be() -> None:
    codex = PROFILES["codex"]
    assert arguments(["codex"], codex) == ["codex", "--no-alt-screen"]
    assert arguments(["codex", "--no-alt-screen", "-m", "x"], codex) == ["codex", "--no-alt-screen", "-m", "x"]
    assert arguments(["codex", "login"], codex) == ["codex", "login"]
    assert arguments(["cat", "-u"], PROFILES["generic"]) == ["cat", "-u"]


def test_the_environment_is_the_persons_with_ours_in_front(tmp_path: Path) -> None:
    given = {"PATH": "/bin", "TMUX": "x", "AGENT_RELAY_TOKEN": "secret", "AGENT_RELAY_NAME": "Old", "DISABLE_AUTOUPDATER": "0"}
    home = Home("/state", "Bob")
    found = child_environment(given, PROFILES["claude"], home, socket="/s", root="/r", inbox="/i")
    assert found == {
        "PATH": "/bin", "DISABLE_AUTOUPDATER": "0", "CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN": "1", "AGENT_RELAY_NAME": "Bob",
        "AGENT_RELAY_SOCKET": "/s", "AGENT_RELAY_PROJECT": "/r", "AGENT_RELAY_OUTBOX": "/state/outbox/Bob",
        "AGENT_RELAY_INBOX": "/i",
    }  # fmt: skip


def test_folders_are_for_the_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Home(str(tmp_path), "Bob").make()
    finally:
        os.umask(before)
    for folder in ("team", "team/Bob", "outbox", "outbox/Bob"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("argv", [[], ["bash"], ["/bin/zsh"], ["-sh"]])
def test_a_shell_is_not_wrapped(argv: list[str]) -> None:
    with pytest.raises(WrapFailed):
        check_command(argv)
    check_command(["bash", "run-agent.sh"])


def test_a_backend_that_is_not_there_is_said_so() -> None:
    with pytest.raises(WrapFailed, match="screen"):
        pick_backend("screen")
