"""Routes that look: the server, agents, messages, events, costs, workspaces."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent_relay.version import __version__

from .server import UNKNOWN, Server, problem, until


def test_it_is_alive_and_ready(http: httpx.Client) -> None:
    health = http.get("/health")
    assert (health.status_code, health.json()["status"], health.json()["version"]) == (200, "ok", __version__)
    assert http.get("/ready").json() == {"ready": True}
    assert health.headers["content-type"] == "application/json"
    assert health.headers["cache-control"] == "no-store"


def test_the_page_loads_nothing_from_outside(http: httpx.Client) -> None:
    page = http.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert all(link.startswith("#") or link == "openapi.json" for link in re.findall(r'(?:src|href)="([^"]*)', page.text))
    assert "url(" not in page.text
    assert "@import" not in page.text
    assert "<script" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert "/api/v1/agents/{name}/permissions/{requestId}/approve" in page.text


def test_agents(server: Server, http: httpx.Client) -> None:
    alice = server.join()
    shown = http.get(f"/api/v1/agents/{alice.name}").json()
    assert (shown["name"], shown["connected"], shown["state"], shown["queueDepth"]) == (alice.name, True, "idle", 0)
    assert http.get(f"/api/v1/agents/{alice.name.upper()}").json()["name"] == alice.name
    listed = http.get("/api/v1/agents").json()
    assert shown["sessionId"] in [agent["sessionId"] for agent in listed["agents"]]
    assert listed["next_cursor"] is None
    assert alice.name in [agent["name"] for agent in http.get("/agents").json()["agents"]]
    assert http.get(f"/agents/{alice.name}").json()["name"] == alice.name
    for path in (f"/api/v1/agents/{UNKNOWN}", f"/agents/{UNKNOWN}", f"/api/v1/agents/{UNKNOWN}/permissions"):
        assert problem(http.get(path)) == (404, "AGENT_NOT_FOUND")


def test_output_and_screen_are_what_the_wrapper_wrote_down(server: Server, http: httpx.Client) -> None:
    from agent_relay.terminal.agent.launch import Home
    from agent_relay.terminal.recordings.screen_log import ScreenLog
    from agent_relay.terminal.screen.contents import Line, Screen

    name = server.join().name
    assert problem(http.get(f"/api/v1/agents/{name}/screen")) == (404, "ROUTE_NOT_FOUND")
    home = Home(str(server.daemon.state_dir), name)
    home.make()
    log = ScreenLog(home.team)
    lines = tuple(Line(number, f"line {number}") for number in range(8))
    log.note(Screen(lines, columns=80, first_visible=5), 0.0)
    log.close()
    assert http.get(f"/api/v1/agents/{name}/screen").json() == {"lines": ["line 5", "line 6", "line 7"], "isOver": True}
    assert http.get(f"/api/v1/agents/{name}/output?lines=4").json()["lines"] == [f"line {n}" for n in range(4, 8)]
    assert len(http.get(f"/agents/{name}/output").json()["lines"]) == 8
    for wrong in ("0", "10001", "x", "", "1.5", "null", "1&lines=2"):
        assert problem(http.get(f"/api/v1/agents/{name}/output?lines={wrong}")) == (422, "INVALID_FORMAT")


def test_messages_and_what_became_of_them(server: Server, http: httpx.Client) -> None:
    alice, bob = server.join(), server.join()
    ids = [alice.send(bob.name, f"note {number} about the harbour", thread="t1").message_id for number in range(5)]
    page = http.get("/api/v1/messages", params={"from": alice.name, "limit": 2}).json()
    assert [message["messageId"] for message in page["messages"]] == ids[:-3:-1]
    rest = http.get("/api/v1/messages", params={"from": alice.name, "cursor": page["next_cursor"]}).json()
    assert [message["messageId"] for message in rest["messages"]] == ids[2::-1]
    assert rest["next_cursor"] is None
    found = http.get("/api/v1/messages", params={"search": "3 harbour", "with": bob.name}).json()["messages"]
    assert [(message["messageId"], message["to"], message["thread"]) for message in found] == [(ids[3], bob.name, "t1")]
    doing = alice.send(bob.name, "I sail.", kind="action").message_id
    found = http.get("/api/v1/messages", params={"from": alice.name, "kind": "action"}).json()["messages"]
    assert [(message["messageId"], message["kind"]) for message in found] == [(doing, "action")]
    one = http.get(f"/api/v1/messages/{ids[0]}").json()
    assert (one["body"], one["from"], one["recipients"][0]["name"]) == ("note 0 about the harbour", alice.name, bob.name)
    timeline = http.get(f"/api/v1/messages/{ids[0]}/timeline").json()
    assert timeline["messageId"] == ids[0]
    assert [(step["event"], step["to"]) for step in timeline["timeline"]][:2] == [
        ("stored", bob.name), ("sent", bob.name),
    ]  # fmt: skip
    shown = http.get(f"/api/v1/messages/{ids[0]}").json()
    assert shown["timeline"] == timeline["timeline"]
    assert shown["timeline"][0]["at"] == shown["ts"]


def test_a_parameter_that_there_is_not_is_refused(http: httpx.Client) -> None:
    for path in ("/api/v1/events?offset=5", "/api/v1/agents?limit=5", "/api/v1/messages?sender=Bob"):
        refused = http.get(path)
        assert (refused.status_code, refused.json()["error"]["details"]["field"]) == (
            422,
            path.partition("?")[2].partition("=")[0],
        )


def test_messages_that_there_are_not(http: httpx.Client) -> None:
    unknown = "msg_01K00000000000000000000000"
    for path in (f"/api/v1/messages/{unknown}", f"/api/v1/messages/{unknown}/timeline"):
        assert problem(http.get(path)) == (404, "ROUTE_NOT_FOUND")
    assert problem(http.get("/api/v1/messages/17")) == (404, "ROUTE_NOT_FOUND")


def test_events_by_page_type_and_agent(server: Server, http: httpx.Client) -> None:
    alice, bob = server.join(), server.join()
    for number in range(3):
        alice.send(bob.name, f"event {number}")

    def find(**query: Any) -> dict[str, Any]:
        answer: dict[str, Any] = http.get("/api/v1/events", params=query).json()
        return answer

    def bodies(page: dict[str, Any]) -> list[str]:
        return [event["body"] for event in page["events"]]

    wanted = {"types": "message.exchanged", "agent": bob.name}
    until(lambda: len(find(**wanted)["events"]) == 3, "the events are recorded")
    first = find(**wanted, limit=2)
    assert bodies(first) == ["event 0", "event 1"]
    assert bodies(find(**wanted, cursor=first["next_cursor"])) == ["event 2"]
    assert find(types="consensus.*", agent=bob.name) == {"events": [], "next_cursor": None}
    assert problem(http.get("/api/v1/events?types=nothing.such")) == (422, "INVALID_FORMAT")


def test_costs(server: Server, http: httpx.Client) -> None:
    alice = server.join()
    usage = {"sessionId": "s", "agentName": alice.name, "model": "claude-opus-4-5", "inputTokens": 1000, "outputTokens": 200}
    alice.report("tokens.used", **usage)
    until(lambda: alice.name in http.get("/api/v1/costs").json()["byAgent"], "the usage is recorded")
    report = http.get("/api/v1/costs", params={"agent": alice.name}).json()
    assert (report["total"]["totalTokens"], report["total"]["estimatedCostUsd"]) == (1200, 0.01)
    assert http.get("/api/v1/costs", params={"agent": UNKNOWN}).json()["total"]["totalTokens"] == 0
    assert http.get("/api/v1/costs", params={"until": 1}).json()["total"]["totalTokens"] == 0


def test_metrics_can_be_read_by_prometheus(server: Server, http: httpx.Client) -> None:
    answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    alice = server.join()
    alice.close(1)
    http.post("/api/v1/messages", json={"to": alice.name, "body": "hello"})
    http.get("/nothing")
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(http.get("/metrics").text)
        for sample in family.samples
    }
    assert found["agent_relay_messages_accepted",] >= 1
    assert found["agent_relay_queue_depth", alice.name] == 1
    assert found["agent_relay_http_errors_total", "ROUTE_NOT_FOUND"] >= 1
    assert found["agent_relay_http_responses_total", "404"] >= 1
    assert ("agent_relay_store_wal_bytes",) in found
    assert found["agent_relay_sse_streams",] == 0
    assert ("agent_relay_delivery_seconds_count",) in found
    assert found["agent_relay_agents", "idle"] >= 1


def test_workspaces(server: Server, http: httpx.Client, tmp_path: Any) -> None:
    (own,) = [each for each in http.get("/workspaces").json()["workspaces"] if each["isOwn"]]
    assert own["isRunning"]
    added = http.post("/workspaces", json={"path": str(tmp_path), "name": "Other"})
    other = added.json()
    assert (added.status_code, other["path"], other["name"], other["isRunning"]) == (201, str(tmp_path), "Other", False)
    assert http.post(f"/workspaces/{other['id']}/switch").json()["isDefault"]
    assert [each["isDefault"] for each in http.get("/workspaces").json()["workspaces"] if each["isOwn"]] == [False]
    assert http.get(f"/workspaces/{other['id']}").json()["isDefault"]
    assert http.get(f"/workspaces/{other['id']}/agents").json() == {"agents": [], "next_cursor": None}
    alice = server.join()
    assert alice.name in [agent["name"] for agent in http.get(f"/workspaces/{own['id']}/agents").json()["agents"]]
    elsewhere = http.post(f"/workspaces/{other['id']}/agents", json={"agent": "X", "cli": "claude"})
    assert problem(elsewhere) == (409, "PERMISSION_DENIED")
    assert problem(http.delete(f"/workspaces/{own['id']}")) == (409, "PERMISSION_DENIED")
    assert http.delete(f"/workspaces/{other['id']}").json() == {"success": True}
    assert problem(http.get(f"/workspaces/{other['id']}")) == (404, "ROUTE_NOT_FOUND")
    for path in ("relative", "/no/such/folder", str(tmp_path / "file"), "/\0"):
        assert problem(http.post("/workspaces", json={"path": path})) == (422, "INVALID_FORMAT")


def test_the_description_is_served_as_it_is_written_down(http: httpx.Client) -> None:
    from pathlib import Path

    written = Path(__file__).parents[3] / "docs" / "api" / "openapi.json"
    assert http.get("/openapi.json").json() == json.loads(written.read_text("utf-8"))


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api", "/static/x", "/api/v1/agents/a/b/c"])
def test_what_is_not_there(http: httpx.Client, path: str) -> None:
    assert problem(http.get(path)) == (404, "ROUTE_NOT_FOUND")
