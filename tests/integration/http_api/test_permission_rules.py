"""Rules like an open request, over HTTP: what they would have approved, and that they hold."""

from __future__ import annotations

from .conftest import StartServer
from .server import problem, until


def test_a_rule_is_shown_against_the_past_and_then_holds(start_server: StartServer) -> None:
    server = start_server()
    bob = server.wrap("Bob")
    bob.ask_permission("p0", command="make docs", isExact=True)
    server.http.post("/api/v1/agents/Bob/permissions/p0/deny", json={})
    for id_, command in (("p1", "make lint"), ("p2", "make test"), ("p3", "pytest -q")):
        bob.ask_permission(id_, command=command, isExact=True)
    path = "/api/v1/agents/Bob/permissions/p2/rule"
    exactly = {"count": 0}

    def is_known() -> bool:
        exactly.update(server.http.post(f"{path}/preview", json={}).json())
        return exactly["looked"] == 4

    until(is_known, "the requests are recorded")
    assert (exactly["pattern"], exactly["wider"], exactly["count"]) == ("make test", "make *", 1)
    wider = server.http.post(f"{path}/preview", json={"pattern": "make *"}).json()
    assert [(each["agentName"], each["subject"], each["outcome"]) for each in wider["found"]] == [
        ("Bob", "make test", None), ("Bob", "make lint", None), ("Bob", "make docs", "denied"),
    ]  # fmt: skip
    assert wider["denied"] == 1
    assert "whole program" in server.http.post(f"{path}/preview", json={"pattern": "*"}).json()["problem"]
    assert problem(server.http.post(path, json={"pattern": "*"})) == (422, "INVALID_FORMAT")
    assert problem(server.http.post("/api/v1/agents/Bob/permissions/p9/rule", json={})) == (404, "ROUTE_NOT_FOUND")

    added = server.http.post(path, json={"pattern": "make *"})
    assert added.status_code == 201
    assert added.json()["path"].endswith("config.toml")
    bob.ask_permission("p4", command="make docs", isExact=True)
    until(lambda: [(told.id, told.by) for told in bob.told][-1:] == [("p4", "policy")], "the rule decides")
    assert bob.told[-1].command == "approve"
