"""A client that a generator made of the description, used against the real server."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .server import Server, until

ROOT = Path(__file__).parents[3]
GENERATOR = Path(sys.prefix) / "generator" / "bin"
PACKAGE = "generated_relay_client"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert (GENERATOR / "openapi-python-client").exists(), "build it first: scripts/generator"
    folder = tmp_path_factory.mktemp("generated")
    command = [
        str(GENERATOR / "openapi-python-client"), "generate", "--path", str(ROOT / "docs" / "api" / "openapi.json"),
        "--meta", "none", "--output-path", str(folder / PACKAGE), "--fail-on-warning",
    ]  # fmt: skip
    environ = os.environ | {"PATH": f"{GENERATOR}:{os.environ['PATH']}"}  # it formats what it wrote with its own ruff
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=280)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    sys.path.insert(0, str(folder))
    yield PACKAGE
    sys.path.remove(str(folder))


@pytest.mark.timeout(600)
def test_it_can_be_used(server: Server, generated: str) -> None:
    def load(name: str) -> Any:
        return importlib.import_module(f"{generated}.{name}")

    bob = server.wrap("Bob")
    bob.ask_permission("p1")
    with load("client").AuthenticatedClient(base_url=server.url, token=server.daemon.api_token) as client:
        agents = load("api.agents.get_agents").sync(client=client)
        assert "Bob" in [agent.name for agent in agents.agents]
        body = load("models").NewMessage(to="Bob", body="hello")
        receipt = load("api.messages.post_messages").sync(client=client, body=body)
        assert (receipt.recipients, receipt.message_id[:4]) == (1, "msg_")
        shown = load("api.messages.get_messages_id").sync("x", client=client)
        assert shown.error.code == "ROUTE_NOT_FOUND"
        (asked,) = load("api.permissions.get_permissions").sync(client=client).permissions
        assert (asked.request_id, asked.risk_level) == ("p1", "medium")
        approve = load("api.permissions.post_agents_name_permissions_request_id_approve")
        assert approve.sync("Bob", "p1", client=client, body=load("models").Decision()).success
        get_events = load("api.events.get_events").sync
        until(lambda: len(get_events(client=client, types="permission.*").events) == 2, "both are recorded")
        kinds = [type(event).__name__ for event in get_events(client=client, types="permission.*").events]
        assert kinds == ["PermissionRequested", "PermissionResolved"]
