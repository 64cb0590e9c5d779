"""What was used and what it costs, as a daemon reports it."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.http_api.conftest import StartServer
from tests.integration.http_api.server import Server, until

COSTS = "/api/v1/costs"


def use(server: Server, agent: str, model: str, tokens: int) -> None:
    client = next((client for client in server.agents if client.name == agent), None) or server.join(agent)
    client.report("tokens.used", sessionId="s", agentName=agent, model=model, inputTokens=tokens, outputTokens=0)


def report(server: Server, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = server.http.get(COSTS, params=query).json()
    return found


def test_prices_of_one_s_own_are_used(start_server: StartServer) -> None:
    """`cost-models.json` in the relay's home gives prices, before the built-in ones, and to models that have none."""
    server = start_server()
    home = server.daemon.directory / "home"
    home.mkdir(exist_ok=True)
    prices = [{"model": name, "inputPer1M": 1, "outputPer1M": 1} for name in ("claude-opus-4-5", "our-own")]
    (home / "cost-models.json").write_text(json.dumps(prices))
    for model in ("claude-opus-4-5", "our-own", "claude-sonnet-4-5", "nobody-knows"):
        use(server, "Alice", model, 1_000_000)
    until(lambda: len(report(server)["byModel"]) == 4, "all is recorded")
    costs = {model: each["estimatedCostUsd"] for model, each in report(server)["byModel"].items()}
    assert costs == {"claude-opus-4-5": 1, "our-own": 1, "claude-sonnet-4-5": 3, "nobody-knows": None}


def test_a_report_is_of_one_agent_and_of_a_time(start_server: StartServer) -> None:
    """A report can be had of one agent, from a moment on and up to a moment, and of all of it together."""
    server = start_server()
    use(server, "Alice", "claude-opus-4-5", 1000)
    until(lambda: report(server)["total"]["inputTokens"] == 1000, "the first is recorded")
    (first,) = server.http.get("/api/v1/events?types=tokens.used").json()["events"]
    server.http.post("/api/v1/messages", json={"to": "Alice", "body": "time goes by"})
    until(lambda: server.http.get(f"/api/v1/events?since={first['_ts'] + 1}").json()["events"], "time goes by")
    use(server, "Bob", "claude-opus-4-5", 10)
    until(lambda: report(server)["total"]["inputTokens"] == 1010, "the second is recorded")
    later = first["_ts"] + 1
    tokens = [
        report(server, **query)["total"]["inputTokens"]
        for query in (
            {"agent": "alice"},
            {"agent": "Bob"},
            {"since": later},
            {"until": later},
            {"since": later, "agent": "Alice"},
        )
    ]
    assert tokens == [1000, 10, 10, 1000, 0]
    assert set(report(server)["byAgent"]) == {"Alice", "Bob"}


def test_a_budget_that_is_spent_when_it_is_set_is_acted_upon(start_server: StartServer) -> None:
    """A limit that was passed before it was set, and was set all the same, stops the starting of agents, and is told."""
    server = start_server()
    use(server, "Alice", "claude-opus-4-5", 1_000_000)
    until(lambda: report(server)["total"]["inputTokens"] == 1_000_000, "it is recorded")
    server.http.post(f"{COSTS}/budget", json={"maxTotal": 1, "action": "pause-spawning", "confirm": True})

    def told() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = server.http.get("/api/v1/events?types=budget.exceeded").json()["events"]
        return found

    until(lambda: bool(told()), "it is told")
    assert [(each["budget"], each["spentUsd"], each["action"]) for each in told()] == [("total", 5, "pause-spawning")]
    refused = server.http.post("/api/v1/sessions", json={"agent": "New", "cli": "claude"})
    assert refused.json()["error"]["details"]["reason"] == "spawning_paused"
