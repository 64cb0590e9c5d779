"""What the command line says about HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from .server import Server

Run = Callable[..., str]


@pytest.fixture
def run(folder: Path) -> Iterator[Run]:
    """Commands in a project of its own."""
    (folder / ".git").mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
    environ = clean | {"AGENT_RELAY_HOME": str(folder / "home")}

    def call(*words: str, **more: str) -> str:
        command = [sys.executable, "-m", "agent_relay", *words]
        done = subprocess.run(command, env=environ | more, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done
        return done.stdout

    yield call
    call("down")


def test_up_and_status_say_where_it_is(run: Run) -> None:
    url = json.loads(run("up", "--port", "0", "--json"))["url"]
    assert httpx.get(f"{url}/health").status_code == 200
    assert f"dashboard   {url}/\n" in run("up")
    assert f"http      {url}\n" in run("status")
    assert json.loads(run("status", "--json"))["http"] == {"url": url, "reason": None}


def test_the_dashboard_says_where_it_is(run: Run) -> None:
    url = json.loads(run("up", "--port", "0", "--json"))["url"]
    assert run("dashboard") == f"{url}/\n"  # no terminal: no browser either
    assert json.loads(run("dashboard", "--json")) == {"url": f"{url}/"}
    assert "text/html" in httpx.get(f"{url}/").headers["content-type"]


def test_without_http(run: Run) -> None:
    assert "http" not in run("up", "--no-http")
    assert "none: It was started without HTTP." in run("status")


def test_the_port_and_the_token_come_from_the_environment_too(run: Run, server: Server) -> None:
    taken = str(httpx.URL(server.url).port)
    shown = run("up", AGENT_RELAY_DASHBOARD_PORT=taken)
    assert f"none: Port {taken} on 127.0.0.1 is in use; choose another one with --port, or 0 for any." in shown
    run("down")
    url = json.loads(run("up", "--json", AGENT_RELAY_DASHBOARD_PORT="0", AGENT_RELAY_API_TOKEN="s3cret"))["url"]
    assert httpx.get(f"{url}/api/v1/agents").status_code == 401
    assert httpx.get(f"{url}/api/v1/agents", headers={"Authorization": "Bearer s3cret"}).status_code == 200
