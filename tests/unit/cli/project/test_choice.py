"""`--project`, given to every command that looks for a daemon, and to no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.cli.app import build_command
from agent_relay.cli.command_list import COMMANDS
from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.main import main
from agent_relay.cli.project.choice import choose_project


@pytest.mark.parametrize("name", COMMANDS)
def test_who_has_it(name: str) -> None:
    command = build_command([name]).commands[name]
    for each in (command, *getattr(command, "commands", {}).values()):
        options = {option for parameter in each.params for option in parameter.opts}
        assert ("--project" in options) == ("--state-dir" in options), each.name


def test_a_command_s_choice_is_over_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_RELAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AGENT_RELAY_SOCKET", "/run/another.sock")
    monkeypatch.delenv("AGENT_RELAY_PROJECT", raising=False)
    assert main(["status", "--project", str(tmp_path), "--json"]) == 3
    assert f'"project": "{tmp_path}"' in capsys.readouterr().out
    assert "AGENT_RELAY_PROJECT" not in os.environ
    assert os.environ["AGENT_RELAY_SOCKET"] == "/run/another.sock"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="there is no folder") as raised:
        choose_project(str(tmp_path / "nowhere"))
    assert raised.value.status == USAGE
