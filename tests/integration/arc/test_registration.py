"""POST /register: who may call itself what."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from agent_relay.transports.http.route import Route
from agent_relay.transports.http.table import ROUTES
from tests.integration.arc.stage import FREE, Member, Stage

TOKEN = re.compile(r"tok_[A-Za-z0-9_-]{43}")


def test_an_id_and_its_token(stage: Stage) -> None:
    answer = stage.http.post("/register", json={"agent_id": "rawk-042"})
    assert answer.status_code == 200
    assert answer.json().keys() == {"agent_id", "token"}
    assert answer.json()["agent_id"] == "rawk-042"
    assert TOKEN.fullmatch(answer.json()["token"])


@pytest.mark.parametrize("body", [b"", b"{}", b'{"agent_id":null}'])
def test_without_an_id_the_relay_picks_one(stage: Stage, body: bytes) -> None:
    kind = {"content-type": "application/json"} if body else {}
    found = [stage.http.post("/register", content=body, headers=kind).json() for _ in range(2)]
    assert found[0]["agent_id"] != found[1]["agent_id"]
    for one in found:
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{1,62}[a-z0-9]", one["agent_id"])
        assert TOKEN.fullmatch(one["token"])


@pytest.mark.parametrize("agent_id", ["abc", "a-b", "0-0", "a" * 64, "a--b", "123"])
def test_ids_that_may_be(stage: Stage, agent_id: str) -> None:
    assert stage.http.post("/register", json={"agent_id": agent_id}).status_code == 200


@pytest.mark.parametrize(
    "agent_id", ["", "ab", "a" * 65, "-abc", "abc-", "Abc", "a_b", "a.b", "a b", "äbc", "abc\n", "*", 7, True, ["abc"], {}]
)
def test_ids_that_may_not_be(stage: Stage, agent_id: Any) -> None:
    answer = stage.http.post("/register", json={"agent_id": agent_id})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_agent_id")
    assert answer.json().keys() == {"error", "message"}


@pytest.mark.parametrize("body", [b"{", b"rawk-043", b"[]", b'"abc"', b"null", b"\xff", b"[" * 16_000])
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_a_body_that_is_no_json_object(stage: Stage, body: bytes, kind: str) -> None:
    answer = stage.http.post("/register", content=body, headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_json")


def test_json_must_say_that_it_is_json(stage: Stage) -> None:
    answer = stage.http.post("/register", content=b'{"agent_id":"abc-1"}', headers={"content-type": "text/plain"})
    assert (answer.status_code, answer.json()["error"]) == (415, "unsupported_media_type")


def test_no_id_is_given_out_twice(stage: Stage) -> None:
    member = stage.register()
    again = stage.http.post("/register", json={"agent_id": member.id})
    assert (again.status_code, again.json()["error"]) == (409, "agent_id_taken")
    gone = stage.http.request("DELETE", "/register", headers={"authorization": f"Bearer {member.token}"})
    assert (gone.status_code, gone.json()) == (200, {"agent_id": member.id, "revoked": True})
    after = stage.http.post("/register", json={"agent_id": member.id})
    assert (after.status_code, after.json()["error"]) == (409, "agent_id_taken")


@pytest.mark.parametrize(
    "agent_id",
    ["relay", "daemon", "system", "all", "everyone", "spawn", "release", "human", "http", "policy", "door", "cli-root"],
)
def test_reserved_ids_are_taken(stage: Stage, agent_id: str) -> None:
    answer = stage.http.post("/register", json={"agent_id": agent_id})
    assert (answer.status_code, answer.json()["error"]) == (409, "agent_id_taken")


def test_the_limit_is_for_an_address_and_counts_what_was_registered(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage("--arc-registrations-per-hour=3")
    stage.register("one-1")
    stage.register("one-2")
    assert [stage.http.post("/register", json={"agent_id": "one-1"}).status_code for _ in range(5)] == [409] * 5
    stage.register("one-3")
    over = stage.http.post("/register")
    assert (over.status_code, over.json()["error"]) == (429, "rate_limit")
    assert 3_000 < int(over.headers["retry-after"]) <= 3_600
    local = httpx.HTTPTransport(local_address="127.0.0.2")
    with httpx.Client(base_url=stage.url, transport=local, headers=stage.daemon.api_headers) as same_machine:
        assert same_machine.post("/register").status_code == 429


def test_registering_needs_the_api_token(stage: Stage) -> None:
    with httpx.Client(base_url=stage.url) as stranger:
        for headers in ({}, {"authorization": "Bearer guess"}):
            refused = stranger.post("/register", headers=headers)
            assert (refused.status_code, refused.json()["error"]) == (401, "unauthorized")
            assert refused.json().keys() == {"error", "message"}
            assert "arc invite" in refused.json()["message"]
        assert stranger.get("/api/v1/arc/limits").status_code == 200
        for method, path in (("GET", "agents"), ("GET", "invitations"), ("POST", "invitations"), ("POST", "agents/ann-1/free")):
            assert stranger.request(method, f"/api/v1/arc/{path}").status_code == 401


def test_or_an_invitation(stage: Stage) -> None:
    made = stage.http.post("/api/v1/arc/invitations", json={"agent_id": "guest-1"})
    assert made.status_code == 201
    with httpx.Client(base_url=stage.url) as stranger:
        wish = {"agent_id": "guest-1", "invite": made.json()["invite"]}
        given = stranger.post("/register", json=wish)
        assert given.status_code == 200
        assert stranger.post("/register", json=wish).status_code == 401  # it was for one
    with stage.connect(Member("guest-1", given.json()["token"])) as client:
        assert client.welcome["type"] == "welcome"


def test_an_open_relay_lets_in_everybody(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE, "--arc-open")
    with httpx.Client(base_url=stage.url) as stranger:
        assert stranger.post("/register").status_code == 200
        assert stranger.get("/api/v1/arc/agents").status_code == 401


@pytest.mark.parametrize(
    "body", [{"uses": 0}, {"uses": 10**9}, {"lasts_ms": 0}, {"agent_id": "No"}, {"uses": "1"}, {"who": "me"}, {"uses": True}]
)
def test_an_invitation_that_cannot_be(stage: Stage, body: Any) -> None:
    assert stage.http.post("/api/v1/arc/invitations", json=body).status_code == 422


def test_without_arc_the_routes_say_so(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage("--arc=false")
    answer = stage.http.post("/register")
    assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
    assert stage.try_upgrade()[0] == 503


@pytest.mark.parametrize("route", [route for route in ROUTES if route.is_flat], ids=lambda route: f"{route.method} {route.path}")
def test_every_refusal_has_the_flat_shape(stage: Stage, route: Route) -> None:
    for headers, status in (
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Content-Length": "2000000"}, 413),
    ):
        if status == 413 and route.method == "GET":
            continue
        content = b" " * 2_000_000 if status == 413 else None
        answer = stage.http.request(route.method, route.path, headers=headers, content=content)
        assert (answer.status_code, answer.json().keys()) == (status, {"error", "message"})
    wrong = stage.http.request("PUT", route.path)
    assert (wrong.status_code, wrong.json()["error"]) == (405, "method_not_allowed")
