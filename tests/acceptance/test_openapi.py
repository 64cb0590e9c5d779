"""The description of the API, as it is written down for whoever makes clients of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

DESCRIPTION = json.loads((Path(__file__).parents[2] / "docs" / "api" / "openapi.json").read_text("utf-8"))
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DESCRIPTION["paths"].items()
    for method, operation in methods.items()
    if method in {"get", "post", "put", "patch", "delete"}
}
OLDER = """
GET /metrics | GET /workspaces | POST /workspaces | GET /workspaces/{id} | DELETE /workspaces/{id} | POST /workspaces/{id}/switch
GET /workspaces/{id}/agents | POST /workspaces/{id}/agents | GET /agents | GET /agents/{id} | DELETE /agents/{id}
GET /agents/{id}/output | POST /agents/{id}/input | POST /agents/{id}/interrupt | POST /agents/by-name/{name}/interrupt
""".replace("\n", " | ").strip(" |")


@pytest.mark.parametrize("name", OLDER.split(" | "))
def test_the_older_routes_say_what_they_take_and_give(name: str) -> None:
    """Every route that there was before the first version of the API is described, with its bodies."""
    operation = OPERATIONS[name]
    success = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    (content,) = success["content"].values()
    assert content["schema"]
    if name.startswith("POST") and name.rpartition("/")[2] in {"workspaces", "agents", "input"}:
        assert operation["requestBody"]["content"]["application/json"]["schema"]


def test_a_token_is_how_one_comes_in() -> None:
    """The scheme of security is a bearer token, or the key of a page that was let in; what is open to all says so."""
    scheme = DESCRIPTION["components"]["securitySchemes"]["bearerAuth"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert DESCRIPTION["security"] == [{"bearerAuth": []}, {"pageCookie": [], "pageHeader": []}]
    open_to_all = {name for name, operation in OPERATIONS.items() if operation.get("security") == []}
    assert {"GET /health", "GET /ready"} <= open_to_all
    assert {name for name in open_to_all if " /api/v1/" in name} == {"GET /api/v1/arc/limits", "POST /api/v1/page-keys"}
