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

    def call(*words: str, status: int = 0, **more: str) -> str:
        command = [sys.executable, "-m", "agent_relay", *words]
        done = subprocess.run(command, env=environ | more, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == status, done
        return done.stdout if status == 0 else done.stderr

    yield call
    call("down")


def test_up_and_status_say_where_it_is(run: Run) -> None:
    url = json.loads(run("up", "--port", "0", "--json"))["url"]
    assert httpx.get(f"{url}/health").status_code == 200
    lets_in(run("up").split("dashboard   ")[1].strip())
    assert f"http      {url}\n" in run("status")
    assert json.loads(run("status", "--json"))["http"] == {"url": url, "reason": None, "warning": None}


def lets_in(address: str) -> dict[str, str]:
    """What a browser that came by this address is known by."""
    url, _, code = address.partition("/#code=")
    answer = httpx.post(f"{url}/api/v1/page-keys", json={"code": code}, timeout=60)
    assert answer.status_code == 201, address
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0], "X-Relay-Page": answer.json()["key"]}


def test_open_gives_an_address_that_lets_a_browser_in(run: Run) -> None:
    started = json.loads(run("up", "--port", "0", "--json"))
    url = started["url"]
    lets_in(started["dashboard"])
    page = lets_in(run("open").strip())  # no terminal: no browser either
    lets_in(json.loads(run("open", "--json"))["url"])
    assert httpx.get(f"{url}/api/v1/agents", headers=page, timeout=60).status_code == 200
    assert run("open", "--forget") == "3 browsers signed out; `agent-relay open` signs one in again.\n"
    assert httpx.get(f"{url}/api/v1/agents", headers=page, timeout=60).status_code == 401
    assert json.loads(run("open", "--forget", "--json")) == {"forgotten": 0}
    assert "text/html" in httpx.get(f"{url}/").headers["content-type"]


def test_a_qr_code_is_for_a_relay_that_a_phone_reaches(run: Run) -> None:
    run("up", "--port", "0")
    refused = run("open", "--qr", status=1)
    assert "listens on this machine only" in refused
    run("down")
    run("up", "--port", "0", "--host", "0.0.0.0")
    shown = run("open", "--qr")
    address, *drawn = shown.splitlines()
    assert not address.startswith(("http://127.", "http://0."))
    assert "\u2580" in "".join(drawn)
    assert len({len(line) for line in drawn if line}) >= 1
    lets_in(f"http://127.0.0.1:{httpx.URL(address).port}/#code={address.partition('#code=')[2]}")


def test_without_auth_up_and_status_warn(run: Run) -> None:
    run("up", "--port", "0", "--no-auth")
    assert "WARNING: HTTP needs no token (--no-auth)" in run("status")
    assert "--no-auth" in json.loads(run("status", "--json"))["http"]["warning"]


def test_no_auth_is_for_this_machine_alone(run: Run) -> None:
    assert "--no-auth works only on loopback" in run("up", "--host", "0.0.0.0", "--no-auth", status=2)
    run("up", "--no-http")


def test_without_http(run: Run) -> None:
    assert "http" not in run("up", "--no-http")
    assert "none: The daemon was started without HTTP." in run("status")


def test_the_port_and_the_token_come_from_the_environment_too(run: Run, server: Server) -> None:
    taken = str(httpx.URL(server.url).port)
    shown = run("up", AGENT_RELAY_DASHBOARD_PORT=taken)
    assert f"none: Port {taken} on 127.0.0.1 is in use; leave out --port to get the next free one, or choose another." in shown
    run("down")
    url = json.loads(run("up", "--json", AGENT_RELAY_DASHBOARD_PORT="0", AGENT_RELAY_API_TOKEN="s3cret"))["url"]
    assert httpx.get(f"{url}/api/v1/agents").status_code == 401
    assert httpx.get(f"{url}/api/v1/agents", headers={"Authorization": "Bearer s3cret"}).status_code == 200
