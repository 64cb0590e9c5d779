"""How times are given, and what settings say to commands."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import read_duration_ms, read_moment_ms, tries_doors
from agent_relay.sdk.locate import locate


def test_durations() -> None:
    assert read_duration_ms("30s", "--await") == 30_000
    for text in ("soon", "0s", "-5s"):
        with pytest.raises(typer.BadParameter):
            read_duration_ms(text, "--await")


def test_moments() -> None:
    now = time.time_ns() // 1_000_000
    an_hour_ago = read_moment_ms("1h", "--since")
    assert an_hour_ago is not None
    assert 0 <= now - 3_600_000 - an_hour_ago + 5_000 <= 10_000
    assert read_moment_ms(None, "--since") is None
    assert read_moment_ms("2025-01-31T14:00:00+00:00", "--since") == 1_738_332_000_000
    assert read_moment_ms("99999d", "--since") == 0
    with pytest.raises(typer.BadParameter):
        read_moment_ms("yesterday", "--since")


def test_doors_that_are_not_known_are_tried_where_the_settings_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    (project / ".agent-relay").mkdir(parents=True)
    home.mkdir()
    place = locate(project, environ={"AGENT_RELAY_HOME": str(home)})
    monkeypatch.delenv("AGENT_RELAY_DOORS", raising=False)
    assert not tries_doors(place)
    (home / "config.toml").write_text('doors = "try"\n')
    assert tries_doors(place)
    monkeypatch.setenv("AGENT_RELAY_DOORS", "known")
    assert not tries_doors(place)
    monkeypatch.setenv("AGENT_RELAY_DOORS", "all")
    with pytest.raises(Failure, match="AGENT_RELAY_DOORS: 'all' is invalid; it must be known or try"):
        tries_doors(place)
    (project / ".agent-relay" / "config.toml").write_text('doors = "try"\n')
    monkeypatch.setenv("AGENT_RELAY_DOORS", "")
    (home / "config.toml").unlink()
    assert not tries_doors(place)
