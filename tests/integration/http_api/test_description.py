"""The OpenAPI description: valid, up to date, whole, and true of the running server."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from agent_relay.transports.http.openapi import encode_description
from agent_relay.transports.http.repeats import KEY_HEADER
from agent_relay.transports.http.route import SSE
from agent_relay.transports.http.table import ROUTES

from .server import Server

WRITTEN = Path(__file__).parents[3] / "docs" / "api" / "openapi.json"
CONTRACT = """
GET / | GET /health | GET /ready | GET /metrics | GET /openapi.json | GET /docs
POST /api/v1/sessions | GET /api/v1/sessions | GET /api/v1/sessions/{id} | POST /api/v1/sessions/{id}/messages
GET /api/v1/agents/{name}/data | DELETE /api/v1/agents/{name}/data | GET /api/v1/agents/{name}/export
DELETE /api/v1/sessions/{id} | GET /api/v1/agents | GET /api/v1/agents/{name} | GET /api/v1/agents/{name}/output
GET /api/v1/agents/{name}/screen | GET /api/v1/agents/{name}/permissions | GET /api/v1/agents/{name}/questions
POST /api/v1/agents/{name}/permissions/{requestId}/approve | POST /api/v1/agents/{name}/permissions/{requestId}/deny
POST /api/v1/agents/{name}/permissions/{requestId}/rule | POST /api/v1/agents/{name}/permissions/{requestId}/rule/preview
POST /api/v1/agents/{name}/questions/{questionId}/answer | POST /api/v1/agents/{name}/pause
POST /api/v1/agents/{name}/resume | POST /api/v1/agents/{name}/stop | POST /api/v1/agents/{name}/interrupt
POST /api/v1/agents/{name}/input | GET /api/v1/permissions | GET /api/v1/questions
GET /api/v1/projects | GET /api/v1/clis
GET /api/v1/hosts | GET /api/v1/events/sse
GET /api/v1/agents/{name}/events/sse | GET /api/v1/sessions/{id}/events/sse | GET /api/v1/events | GET /api/v1/messages
GET /api/v1/messages/{id} | GET /api/v1/messages/{id}/timeline | POST /api/v1/messages | GET /api/v1/costs
GET /api/v1/costs/budget | POST /api/v1/costs/budget | GET /api/v1/dead-letters | POST /api/v1/dead-letters/{id}/retry
DELETE /api/v1/dead-letters/{id}
GET /workspaces | POST /workspaces | GET /workspaces/{id} | DELETE /workspaces/{id} | POST /workspaces/{id}/switch
GET /workspaces/{id}/agents | POST /workspaces/{id}/agents | GET /agents | GET /agents/{id} | DELETE /agents/{id}
GET /agents/{id}/output | POST /agents/{id}/input | POST /agents/{id}/interrupt | POST /agents/by-name/{name}/interrupt
GET /api/v1/events/outline | GET /api/v1/costs/trend | POST /api/v1/page-codes | POST /api/v1/page-keys | DELETE /api/v1/page-keys
GET /api/v1/status | GET /api/v1/conversations | GET /api/v1/terminals/stream
GET /api/v1/marks | POST /api/v1/marks
GET /api/v1/channels | POST /api/v1/channels/{channel}/join | POST /api/v1/channels/{channel}/leave
POST /api/v1/channels/{channel}/topic
GET /api/v1/proposals | POST /api/v1/proposals | GET /api/v1/proposals/{id} | DELETE /api/v1/proposals/{id}
POST /api/v1/proposals/{id}/vote
POST /api/v1/agents/{name}/keyboard | POST /api/v1/agents/{name}/keyboard/release
POST /register | POST /token/refresh | DELETE /register
GET /api/v1/arc/limits | GET /api/v1/arc/agents | DELETE /api/v1/arc/agents/{id} | POST /api/v1/arc/agents/{id}/free
POST /api/v1/arc/invitations | GET /api/v1/arc/invitations | DELETE /api/v1/arc/invitations/{id}
"""
# A stream does not end by itself; what it answers is tested in test_sse.
# What is right by the description and still refused, because of the world: a program or a folder that is not there, or because of
# what a description cannot say: which rule takes a quorum or weights.
WORLDLY = "".join(
    f"""
[[operations]]
include-name = "{name}"
checks.positive_data_acceptance.expected-statuses = ["2xx", "404", "409", "422", "429"]
"""
    for name in ("POST /api/v1/sessions", "POST /workspaces", "POST /workspaces/{id}/agents", "POST /api/v1/proposals")
)
STREAMS = tuple(route.path for route in ROUTES if route.media == SSE and route.is_described)


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(WRITTEN.read_text("utf-8"))
    return found


def read_without_keys() -> dict[str, Any]:
    """Requests that are made up use the same keys again and again, which is refused; what keys do is tested in test_repeats."""
    description = read()
    for operation in (each for methods in description["paths"].values() for each in methods.values()):
        operation["parameters"] = [each for each in operation.get("parameters", []) if each["name"] != KEY_HEADER]
    for name in ("NewMessage", "SessionMessage"):
        del description["components"]["schemas"][name]["properties"]["id"]
    return description


def test_it_is_up_to_date() -> None:
    assert WRITTEN.read_bytes() == encode_description(ROUTES), "write it again: agent-relay openapi > docs/api/openapi.json"


def test_the_command_prints_it() -> None:
    printed = subprocess.run([sys.executable, "-m", "agent_relay", "openapi"], capture_output=True, check=True, timeout=60).stdout
    assert printed == WRITTEN.read_bytes()


def test_it_is_valid() -> None:
    description = read()
    assert description["openapi"].startswith("3.1")
    assert list(OpenAPIV31SpecValidator(description).iter_errors()) == []


def test_every_route_of_the_contract_is_in_it_and_no_other() -> None:
    described = {f"{method.upper()} {path}" for path, methods in read()["paths"].items() for method in methods}
    assert described == {route.strip() for line in CONTRACT.strip().splitlines() for route in line.split("|")}


def test_operations_have_names_of_their_own_and_say_how_they_fail() -> None:
    operations = [operation for methods in read()["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    for operation in operations:
        assert operation["summary"].endswith(".")
        assert "403" in operation["responses"]


def test_schemas_have_plain_names() -> None:
    """Two structs of the same name would be told apart by their modules, and generators of clients stumble over that."""
    assert [name for name in read()["components"]["schemas"] if not name.isidentifier()] == []


def test_streams_say_what_they_are() -> None:
    for path in STREAMS:
        assert list(read()["paths"][path]["get"]["responses"]["200"]["content"]) == ["text/event-stream"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(server: Server, tmp_path: Path) -> None:
    """Requests that fit the description and requests that do not, to every route: no failure, no answer that it does not know."""
    bob = server.wrap("Bob")
    threading.Thread(target=lambda: list(bob.client.messages()), daemon=True).start()  # takes what it is sent
    bob.ask_permission("p1")
    config = tmp_path / "schemathesis.toml"
    config.write_text(WORLDLY)
    described = tmp_path / "openapi.json"
    described.write_text(json.dumps(read_without_keys()))
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", str(described), "--url", server.url]
    command += ["--header", f"Authorization: Bearer {server.daemon.api_token}"]
    options = [
        "--exclude-path-regex",
        "/(sse|stream)$",
        "--max-examples",
        "8",
        "--seed",
        "1",
        "--generation-database",
        "none",
        "--no-color",
    ]
    ran = subprocess.run([*command, *options], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=590)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert server.http.get("/health").status_code == 200
