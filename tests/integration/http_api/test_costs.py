"""Budgets over HTTP: kept over a restart, told once, and acted upon."""

from __future__ import annotations

import pytest

from .conftest import StartServer
from .server import Server, problem, until

BUDGET = "/api/v1/costs/budget"


def spend(server: Server, agent: str, dollars: int) -> None:
    """At five dollars a million input tokens."""
    known = {client.name: client for client in server.agents}
    client = known.get(agent) or server.join(agent)
    client.report(
        "tokens.used", sessionId="s", agentName=agent, model="claude-opus-4-5", inputTokens=200_000 * dollars, outputTokens=0
    )


def exceeded(server: Server) -> list[tuple[str, float, float, str]]:
    found = server.http.get("/api/v1/events", params={"types": "budget.exceeded"}).json()["events"]
    told = [each for each in found if each["type"] != "stream.gap"]  # after a restart there is one
    return [(each["budget"], each["limitUsd"], each["spentUsd"], each["action"]) for each in told]


def test_a_budget_is_told_once_and_stops_the_starting_of_agents(start_server: StartServer) -> None:
    server = start_server()
    assert server.http.get(BUDGET).json()["maxTotal"] is None
    asked = {"maxTotal": 10, "alertThreshold": 0.5, "action": "pause-spawning"}
    assert server.http.post(BUDGET, json=asked).json() | asked == server.http.get(BUDGET).json()
    spend(server, "Alice", 6)
    until(lambda: len(exceeded(server)) == 1, "the alert")
    spend(server, "Alice", 1)
    spend(server, "Alice", 5)
    until(lambda: len(exceeded(server)) == 2, "the limit")
    assert exceeded(server) == [("total", 10, 6, "alert"), ("total", 10, 12, "pause-spawning")]
    refused = server.http.post("/api/v1/sessions", json={"agent": "New", "cli": "claude"})
    assert problem(refused) == (503, "SERVICE_UNAVAILABLE")
    assert refused.json()["error"]["details"]["reason"] == "spawning_paused"

    server.daemon.restart()
    with_new_url = Server(server.daemon)
    assert with_new_url.http.get(BUDGET).json()["maxTotal"] == 10
    again = with_new_url.http.post("/api/v1/sessions", json={"agent": "New", "cli": "claude"})
    assert again.json()["error"]["details"].get("reason") == "spawning_paused"
    assert len(exceeded(with_new_url)) == 2  # what was reached before is not told again
    with_new_url.http.post(BUDGET, json={"maxTotal": 100, "action": "pause-spawning"})
    raised = with_new_url.http.post("/api/v1/sessions", json={"agent": "New", "cli": "no-such-cli"})
    assert raised.json()["error"]["details"].get("reason") != "spawning_paused"
    with_new_url.close()


def test_stop_all_stops_what_the_relay_runs(start_server: StartServer) -> None:
    server = start_server()
    bob = server.wrap("Bob")
    server.join("Carol")
    server.http.post(BUDGET, json={"maxPerHour": 1, "action": "stop-all"})
    spend(server, "Carol", 2)
    until(lambda: [told.command for told in bob.told] == ["stop"], "Bob is stopped")
    until(lambda: exceeded(server) == [("hour", 1, 2, "stop-all")], "it is told")


@pytest.mark.parametrize(
    ("limits", "scopes"),
    [({"maxTotal": 1}, ["total"]), ({"maxPerHour": 1, "maxPerSession": 1, "maxTotal": 50}, ["hour", "session"])],
)
@pytest.mark.parametrize(("action", "stopped"), [("stop-all", ["Bob"]), ("pause-spawning", [])])
def test_a_budget_that_is_spent_already_asks_before_it_stops_anyone(
    start_server: StartServer, limits: dict[str, int], scopes: list[str], action: str, stopped: list[str]
) -> None:
    server = start_server()
    bob = server.wrap("Bob")
    spend(server, "Carol", 2)
    until(lambda: bool(server.http.get("/api/v1/events?types=tokens.used").json()["events"]), "it is recorded")
    before = server.http.get(BUDGET).json()
    refused = server.http.post(BUDGET, json=limits | {"action": action})
    assert problem(refused) == (409, "REJECTED")
    details = refused.json()["error"]["details"]
    assert (details["reason"], details["stops"]) == ("budget_spent", stopped)
    assert [(each["budget"], each["limitUsd"], each["spentUsd"]) for each in details["exceeded"]] == [
        (scope, 1, 2) for scope in scopes
    ]
    assert server.http.get(BUDGET).json() == before
    assert (exceeded(server), bob.told) == ([], [])

    assert server.http.post(BUDGET, json=limits | {"action": action, "confirm": True}).status_code == 200
    until(lambda: {each[0] for each in exceeded(server)} == set(scopes), "it is told")
    until(lambda: [told.command for told in bob.told] == ["stop"] * bool(stopped), "it is acted upon")
    again = server.http.post(BUDGET, json=limits | {"action": action})
    assert again.status_code == 200, "what holds already need not be asked again"


def test_a_budget_that_only_tells_or_is_not_spent_asks_nothing(start_server: StartServer) -> None:
    server = start_server()
    spend(server, "Carol", 2)
    until(lambda: bool(server.http.get("/api/v1/events?types=tokens.used").json()["events"]), "it is recorded")
    for body in ({"maxTotal": 1}, {"maxTotal": 3, "alertThreshold": 0.5, "action": "stop-all"}):
        assert server.http.post(BUDGET, json=body).status_code == 200


@pytest.mark.parametrize(
    "body",
    [{"maxTotal": 0}, {"maxTotal": -1}, {"maxTotal": "10"}, {"alertThreshold": 2}, {"action": "shout"}, {"maxPerHour": 1e10}],
)
def test_budgets_that_make_no_sense(server: Server, body: dict[str, object]) -> None:
    assert problem(server.http.post(BUDGET, json=body)) == (422, "INVALID_FORMAT")


def test_an_agent_s_own_limit_stops_it_alone(start_server: StartServer) -> None:
    server = start_server()
    bob, carol = server.wrap("Bob"), server.wrap("Carol")
    spend(server, "Bob", 3)
    asked = {"agents": {"Bob": 2}, "action": "stop-all"}
    until(lambda: server.http.get("/api/v1/costs").json()["total"]["totalTokens"] > 0, "it is counted")
    refused = server.http.post(BUDGET, json=asked)
    assert problem(refused) == (409, "REJECTED")
    details = refused.json()["error"]["details"]
    assert (details["stops"], [(each["budget"], each["name"]) for each in details["exceeded"]]) == (["Bob"], [("agent", "Bob")])
    set_ = server.http.post(BUDGET, json={**asked, "confirm": True})
    assert set_.json()["agents"] == {"Bob": 2}
    until(lambda: [told.command for told in bob.told] == ["stop"], "it is stopped")
    until(lambda: exceeded(server) == [("agent", 2, 3, "stop")], "it is told")
    assert carol.told == []
    started = server.http.post("/api/v1/sessions", json={"agent": "New", "cli": "no-such-cli"})
    assert started.json()["error"]["details"].get("reason") != "spawning_paused"
