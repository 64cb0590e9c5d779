"""What the owner has seen, over HTTP: told to each browser, and kept over a restart."""

from __future__ import annotations

from tests.integration.http_api.conftest import StartServer
from tests.integration.http_api.server import Server, problem


def test_marks_are_kept_over_a_restart(start_server: StartServer) -> None:
    server = start_server()
    before = server.http.get("/api/v1/status").json()["marksVersion"]
    said = {"set": {"seen:channel:#build": {"at": 5}, "later:per_1": {"at": 6, "until": 90}}}
    answer = server.http.post("/api/v1/marks", json=said).json()
    assert answer["marks"] == {"seen:channel:#build": {"at": 5, "until": None}, "later:per_1": {"at": 6, "until": 90}}
    assert server.http.get("/api/v1/status").json()["marksVersion"] == answer["version"] > before
    server.http.post("/api/v1/marks", json={"remove": ["later:per_1"]})
    server.daemon.restart("--port=0")
    again = Server(server.daemon)
    assert list(again.http.get("/api/v1/marks").json()["marks"]) == ["seen:channel:#build"]
    again.close()


def test_wrong_ones_are_refused_and_named(start_server: StartServer) -> None:
    server = start_server()
    for wrong in ({"set": {"": {"at": 1}}}, {"set": {"a": {"at": -1}}}, {"set": {"a": {}}}, {"else": 1}):
        assert problem(server.http.post("/api/v1/marks", json=wrong))[0] == 422
