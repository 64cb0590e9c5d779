"""How times are given, and what settings say to commands."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import choose_doors, read_doors, read_duration_ms, read_moment_ms
from agent_relay.sdk.locate import Place, locate


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


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    (tmp_path / "project" / ".agent-relay").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    monkeypatch.delenv("AGENT_RELAY_DOORS", raising=False)
    return locate(tmp_path / "project", environ={"AGENT_RELAY_HOME": str(tmp_path / "home")})


def test_which_doors_are_used_as_the_settings_say(project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "home" / "config.toml"
    assert read_doors(project) == "probe"
    for word, meant in (("known", "known"), ("off", "off"), ("try", "probe")):
        own.write_text(f'doors = "{word}"\n')
        assert read_doors(project) == meant
    monkeypatch.setenv("AGENT_RELAY_DOORS", "known")
    assert read_doors(project) == "known"
    monkeypatch.setenv("AGENT_RELAY_DOORS", "all")
    with pytest.raises(Failure, match="AGENT_RELAY_DOORS: 'all' is invalid; it must be probe or known or off"):
        read_doors(project)
    (tmp_path / "project" / ".agent-relay" / "config.toml").write_text('doors = "off"\n')
    monkeypatch.setenv("AGENT_RELAY_DOORS", "")
    own.unlink()
    assert read_doors(project) == "probe"  # a project's file has no say


@pytest.mark.parametrize(
    ("wanted", "is_off", "is_tried", "used"),
    [
        (None, False, False, "known"),
        ("probe", False, False, "probe"),
        ("try", False, False, "probe"),
        (None, True, False, "off"),
        ("off", True, False, "off"),
        (None, False, True, "probe"),
    ],
)
def test_a_flag_goes_before_the_settings(
    project: Place, wanted: str | None, is_off: bool, is_tried: bool, used: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("AGENT_RELAY_DOORS", "known")
    assert choose_doors(project, wanted, is_off=is_off, is_tried=is_tried) == used
    assert ("is now the default" in capsys.readouterr().err) is is_tried


@pytest.mark.parametrize(("wanted", "is_off", "is_tried"), [("all", False, False), ("known", True, False), (None, True, True)])
def test_flags_that_mean_nothing_or_two_things_are_refused(
    project: Place, wanted: str | None, is_off: bool, is_tried: bool
) -> None:
    with pytest.raises(Failure):
        choose_doors(project, wanted, is_off=is_off, is_tried=is_tried)
