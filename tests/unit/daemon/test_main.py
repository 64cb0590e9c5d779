"""The command line of the daemon: what it takes, and how it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.daemon.config import ConfigError
from agent_relay.daemon.main import EXIT_FAILED, EXIT_USAGE, main, parse
from agent_relay.daemon.settings import SETTINGS


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("AGENT_RELAY_HOME", str(tmp_path / "home"))
    return ["--socket", str(tmp_path / "s.sock"), "--state-dir", str(tmp_path / "state"), "--project-root", str(tmp_path)]


def test_every_setting_is_a_flag(arguments: list[str]) -> None:
    config = parse([*arguments, "--queue-capacity", "7", "--heartbeat-ms=9s", "--storage", "memory"])
    assert (config.limits.queue_capacity, config.limits.heartbeat_ms, config.storage) == (7, 9_000, "memory")


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert [setting.flag for setting in SETTINGS if setting.flag not in shown] == []


@pytest.mark.parametrize("missing", [["--socket", "x"], ["--state-dir", "x"], []])
def test_a_socket_and_a_place_are_needed(missing: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(missing)
    assert ended.value.code == 2


def test_a_setting_that_cannot_be_used_is_a_sentence_and_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--queue-capacity", "none"]) == EXIT_USAGE
    error = capsys.readouterr().err
    assert error.startswith("agent-relay: --queue-capacity: 'none' is invalid")
    assert error.count("\n") == 1


def test_a_config_file_that_cannot_be_used_is_refused_before_anything_is_made(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text("nonsense = 1\n")
    with pytest.raises(ConfigError):
        parse(arguments)
    assert main(arguments) == EXIT_USAGE
    assert not (tmp_path / "state").exists()


def test_a_place_that_cannot_be_used_is_a_sentence_and_exit_1(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").write_text("precious")
    assert main(arguments) == EXIT_FAILED
    assert "is not a directory" in capsys.readouterr().err
    assert (tmp_path / "state").read_text() == "precious"
