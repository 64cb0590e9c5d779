"""Outlines of events and costs over time, of a running daemon."""

from __future__ import annotations

from .server import Server, problem, until
from .test_costs import spend

OUTLINE = "/api/v1/events/outline"


def test_an_outline_comes_in_pages_that_fit_together(server: Server) -> None:
    olga = server.join("Olga")
    for number in range(30):
        olga.report("agent.state", state=("working", "idle")[number % 2])
    until(lambda: "idle" in server.http.get(OUTLINE).json()["notes"], "what she reports")
    whole = server.http.get(OUTLINE, params={"limit": 20_000}).json()
    assert whole["next_cursor"] is None
    numbers: list[int] = []
    cursor = ""
    while cursor is not None:
        page = server.http.get(OUTLINE, params={"limit": 7} | ({"cursor": cursor} if cursor else {})).json()
        numbers += [entry[0] for entry in page["events"]]
        assert len(page["events"]) <= 7
        cursor = page["next_cursor"]
    assert numbers[: len(whole["events"])] == [entry[0] for entry in whole["events"]]
    last = whole["events"][-1]
    event = server.http.get("/api/v1/events", params={"cursor": last[0] - 1, "limit": 1}).json()["events"][0]
    assert (event["_seq"], event["_ts"], event["type"]) == (last[0], last[1], whole["types"][last[3]])
    assert problem(server.http.get(OUTLINE, params={"limit": 20_001})) == (422, "INVALID_FORMAT")


def test_costs_over_time_add_up_to_the_report(server: Server) -> None:
    for dollars in (2, 3):
        spend(server, "Tessa", dollars)
    asked = {"agent": "tessa"}
    until(lambda: server.http.get("/api/v1/costs", params=asked).json()["total"]["estimatedCostUsd"] == 5, "both usages")
    trend = server.http.get("/api/v1/costs/trend", params={**asked, "points": 12}).json()
    assert sum(trend["costUsd"]) == 5
    assert len(trend["costUsd"]) == 12
    assert list(trend["byAgent"]) == ["Tessa"]
    assert list(trend["byModel"]) == ["claude-opus-4-5"]
    assert sum(server.http.get("/api/v1/costs/trend", params={**asked, "until": trend["since"]}).json()["tokens"]) == 0
