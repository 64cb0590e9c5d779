"""The suite that checks relays, run against our own with the limits it has by default, as others would run it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from agent_relay.arc.conformance.pytest_cases import *  # noqa: F403 - as a relay's author would write it
from agent_relay.arc.conformance.runner import CASES
from agent_relay.cli.main import main
from agent_relay.testing.daemon import DaemonProcess


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess("--port=0") as process:
        yield process


@pytest.fixture(scope="module")
def arc_url(daemon: DaemonProcess) -> Iterator[str]:
    url = daemon.wait_for_url()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARC_API_TOKEN", daemon.api_token)
        yield url


def test_the_command_finds_nothing_wrong_and_nothing_missing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with DaemonProcess("--port=0") as daemon:
        url = daemon.wait_for_url()
        with httpx.Client(base_url=url, headers=daemon.api_headers) as owner:
            invite = owner.post("/api/v1/arc/invitations", json={"uses": 30}).json()["invite"]
        words = ["arc", "conformance", "--url", url, "--invite", invite, "--strict", "--json", "--timeout", "30"]
        status = main([*words, "--state-dir", str(tmp_path)])
        report = json.loads(capsys.readouterr().out)
        assert (status, report["counts"]["kept"], report["counts"]["not_offered"]) == (0, len(CASES), 0), report
