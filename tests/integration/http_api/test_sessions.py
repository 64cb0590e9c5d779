"""Sessions over HTTP: a real wrapper in a real terminal is started, written to, read and ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .scene import Scene
from .server import ME, problem, until

pytestmark = pytest.mark.terminals
TURNS = [{"when": "ping", "busy_ms": 20, "say": [f"->relay:{ME} pong"]}]


@pytest.fixture
def scene(folder: Path) -> Iterator[Scene]:
    made = Scene(folder, *TURNS)
    yield made
    made.close()


def test_a_session_from_its_beginning_to_its_end(scene: Scene) -> None:
    http = scene.http
    made = http.post("/api/v1/sessions", json={"agent": "Bob", "cli": scene.program, "task": "ping, please"})
    started = made.json()
    assert (made.status_code, started["agentName"], started["status"]) == (201, "Bob", "starting"), started
    path = f"/api/v1/sessions/{started['sessionId']}"
    until(lambda: bool(_said(scene, "pong")), "it answers its task")
    shown = http.get(path).json()
    assert (shown["agentName"], shown["status"], shown["spawnedBy"]) == ("Bob", "running", ME)
    assert http.get("/api/v1/agents/Bob").json()["sessionId"] == started["sessionId"]
    assert problem(http.post("/api/v1/sessions", json={"agent": "Bob", "cli": scene.program})) == (409, "PERMISSION_DENIED")

    sent = http.post(f"{path}/messages", json={"message": "ping again"}).json()
    assert sent["success"]
    until(lambda: len(_said(scene, "pong")) == 2, "it answers the message")
    until(lambda: "ping again" in http.get("/api/v1/agents/Bob/output").text, "its terminal shows it")
    assert http.get("/api/v1/agents/Bob/screen").json()["isOver"] is False

    ended = http.delete(path).json()
    assert ended["success"]
    assert ended["summary"]["duration"] > 0
    assert set(ended["summary"]) == {"duration", "itemCount", "filesModified", "commandsRun", "totalTokens", "estimatedCost"}
    assert http.get(path).json()["reason"] == "released"
    assert http.delete(path).json()["success"]  # again: it has ended
    assert problem(http.post(f"{path}/messages", json={"message": "x"})) == (409, "AGENT_OFFLINE")

    def told() -> list[str]:
        of_it = {"types": "session.*", "session": started["sessionId"]}
        return [event["type"] for event in http.get("/api/v1/events", params=of_it).json()["events"]]

    until(lambda: told() == ["session.started", "session.ended"], "both are told, in this order")


def _said(scene: Scene, body: str) -> list[str]:
    found = scene.http.get("/api/v1/messages", params={"from": "Bob", "to": ME}).json()["messages"]
    return [message["body"] for message in found if message["body"] == body]


def test_what_cannot_be_started_or_ended(scene: Scene) -> None:
    http = scene.http
    for cli in ("no-such-cli", "/bin/sh", "claude; rm -rf /", "../Bob.sh"):
        assert problem(http.post("/api/v1/sessions", json={"agent": "X", "cli": cli})) == (422, "INVALID_TARGET")
    for name in ("human", "a b", "../x", "#x"):
        assert problem(http.post("/api/v1/sessions", json={"agent": name, "cli": scene.program})) == (422, "INVALID_TARGET")
    assert problem(http.post("/api/v1/sessions", json={"agent": "X", "cli": scene.program, "cwd": "/no/such"}))[0] == 422
    chosen = {"agent": "X", "cli": scene.program, "permissionMode": "yolo"}
    assert problem(http.post("/api/v1/sessions", json=chosen)) == (422, "INVALID_TARGET")
    assert problem(http.delete("/api/v1/sessions/ses_none")) == (404, "ROUTE_NOT_FOUND")
    alice = scene.server.join("Alice")
    session = http.get("/api/v1/agents/Alice").json()["sessionId"]
    assert http.get(f"/api/v1/sessions/{session}").json()["spawnedBy"] is None
    assert problem(http.delete(f"/api/v1/sessions/{session}")) == (409, "INVALID_TARGET")
    assert alice.name == "Alice"
