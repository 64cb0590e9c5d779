"""How times are given."""

from __future__ import annotations

import time

import pytest
import typer

from agent_relay.cli.options import read_duration_ms, read_moment_ms


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
