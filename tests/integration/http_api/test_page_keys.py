"""A browser is let in by a code, known by a key of two halves, and forgotten when the owner says so."""

from __future__ import annotations

import httpx
import pytest

from .conftest import StartServer
from .server import ME, Server, problem

KEYS = "/api/v1/page-keys"


def enter(server: Server, code: str = "") -> dict[str, str]:
    """The headers of a page that was let in."""
    said = code or server.http.post("/api/v1/page-codes").json()["code"]
    answer = server.bare.post(KEYS, json={"code": said})
    assert answer.status_code == 201, answer.text
    server.bare.cookies.clear()
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0], "X-Relay-Page": answer.json()["key"]}


def test_a_code_lets_one_page_in(server: Server) -> None:
    made = server.http.post("/api/v1/page-codes")
    assert made.status_code == 201
    page = enter(server, made.json()["code"])
    assert server.bare.get("/api/v1/agents", headers=page).status_code == 200
    assert server.bare.post("/api/v1/messages", json={"to": ME, "body": "x"}, headers=page).status_code == 201
    with server.bare.stream("GET", "/api/v1/events/sse", headers=page) as stream:
        assert stream.status_code == 200
    again = server.bare.post(KEYS, json={"code": made.json()["code"]})
    assert problem(again) == (401, "PERMISSION_DENIED")
    assert "agent-relay open" in again.json()["error"]["message"]
    assert "set-cookie" not in again.headers


def test_codes_are_for_those_who_are_in_already(server: Server) -> None:
    assert problem(server.bare.post("/api/v1/page-codes")) == (401, "PERMISSION_DENIED")
    assert problem(server.bare.delete(KEYS)) == (401, "PERMISSION_DENIED")
    assert server.bare.post("/api/v1/page-codes", headers=enter(server)).status_code == 201  # the page, for a phone


def test_the_token_serves_as_a_code(server: Server) -> None:
    assert server.bare.get("/api/v1/agents", headers=enter(server, server.daemon.api_token)).status_code == 200


@pytest.mark.parametrize("half", ["Cookie", "X-Relay-Page"])
def test_half_a_key_is_none(server: Server, half: str) -> None:
    page = enter(server)
    assert problem(server.bare.get("/api/v1/agents", headers={half: page[half]})) == (401, "PERMISSION_DENIED")
    other = enter(server)
    assert problem(server.bare.get("/api/v1/agents", headers=page | {half: other[half]})) == (401, "PERMISSION_DENIED")


def test_a_key_counts_for_our_own_page_alone(server: Server) -> None:
    page = enter(server)
    own = {"Sec-Fetch-Site": "same-origin", "Origin": server.url}
    assert server.bare.get("/api/v1/agents", headers=page | own).status_code == 200
    for site in ("cross-site", "same-site", "none"):
        visit = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
        assert problem(server.bare.get("/api/v1/agents", headers=page | visit)) == (401, "PERMISSION_DENIED"), site
    assert problem(server.bare.get("/api/v1/agents", headers=page | {"Origin": "http://127.0.0.1:1"}))[0] == 403


def test_a_wrong_token_beside_a_good_key_is_wrong(server: Server) -> None:
    page = enter(server)
    answer = server.bare.get("/api/v1/agents", headers=page | {"Authorization": "Bearer nonsense"})
    assert problem(answer) == (401, "PERMISSION_DENIED")


def test_a_key_is_good_after_a_restart_and_gone_when_it_is_forgotten(start_server: StartServer) -> None:
    server = start_server()
    page = enter(server)
    server.daemon.restart()
    url = server.daemon.wait_for_url()
    assert httpx.get(f"{url}/api/v1/agents", headers=page, timeout=60).status_code == 200
    with httpx.stream("GET", f"{url}/api/v1/events/sse", headers=page, timeout=60) as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": events follow"
        answer = httpx.delete(f"{url}{KEYS}", headers=server.daemon.api_headers, timeout=60)
        assert answer.json() == {"forgotten": 1}
        list(lines)  # it ends
    assert httpx.get(f"{url}/api/v1/agents", headers=page, timeout=60).status_code == 401


def test_the_error_names_the_way_in(server: Server) -> None:
    said = server.bare.get("/api/v1/agents").json()["error"]["message"]
    assert "api-token" in said
    assert str(server.daemon.state_dir) not in said  # a stranger need not know where
    assert "agent-relay open" in said
    assert server.daemon.api_token not in said


def test_without_auth_everybody_is_let_in_and_everybody_is_told(start_server: StartServer) -> None:
    server = start_server("--no-auth=true")
    assert server.bare.get("/api/v1/agents").status_code == 200
    assert problem(server.bare.get("/api/v1/agents", headers={"Origin": "https://evil.example"}))[0] == 403
    assert "WARNING: HTTP needs no token (--no-auth)" in server.daemon.output
    assert "--no-auth" in (server.daemon.state_dir / "http.json").read_text()
