"""Routes that act: sending, commands to agents, permissions and questions."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import Any

import httpx
import pytest

from .conftest import StartServer
from .server import ME, UNKNOWN, Server, problem, until


def test_a_message_is_stored_when_it_is_answered(server: Server, http: httpx.Client) -> None:
    bob = server.join()
    answer = http.post("/api/v1/messages", json={"to": bob.name, "body": "good morning", "thread": "t", "kind": "action"})
    receipt = answer.json()
    assert (answer.status_code, receipt["recipients"], receipt["queued"], receipt["delivered"]) == (201, 1, 0, None)
    got = next(iter(bob.messages()))
    assert (got.body, got.from_, got.thread, got.kind) == ("good morning", ME, "t", "action")


def test_waiting_for_delivery_says_the_truth(server: Server, http: httpx.Client) -> None:
    awake, asleep = server.join(), server.join()
    reading = threading.Thread(target=lambda: next(iter(awake.messages())).ack(), daemon=True)
    reading.start()
    delivered = http.post("/api/v1/messages", json={"to": awake.name, "body": "x", "await_ms": 15_000}).json()
    assert (delivered["delivered"], delivered["by"]) == (True, [awake.name])
    not_yet = http.post("/api/v1/messages", json={"to": [asleep.name], "body": "x", "await_ms": 50}).json()
    assert (not_yet["delivered"], not_yet["by"], not_yet["failure"]) == (False, [], None)
    reading.join(30)


def test_whoever_answers_can_be_read_over_http(server: Server, http: httpx.Client) -> None:
    bob = server.join()
    http.post("/api/v1/messages", json={"to": bob.name, "body": "ready?"})
    next(iter(bob.messages())).reply("yes")
    found = http.get("/api/v1/messages", params={"from": bob.name, "to": ME}).json()["messages"]
    assert [message["body"] for message in found] == ["yes"]
    until(
        lambda: http.get(f"/api/v1/messages/{found[0]['messageId']}").json()["recipients"][0]["status"] == "delivered",
        "it is taken",
    )


def test_several_recipients(server: Server, http: httpx.Client) -> None:
    one, two = server.join(), server.join()
    both = http.post("/api/v1/messages", json={"to": f"{one.name}, {two.name}", "body": "x"}).json()
    assert both["recipients"] == 2
    assert problem(http.post("/api/v1/messages", json={"body": "x"})) == (422, "INVALID_FORMAT")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"to": UNKNOWN, "body": "x"}, (404, "AGENT_NOT_FOUND")),
        ({"to": "#nothing", "body": "x"}, (404, "CHANNEL_NOT_FOUND")),
        ({"to": "../etc", "body": "x"}, (422, "INVALID_TARGET")),
        ({"to": [ME, ""], "body": "x"}, (422, "INVALID_TARGET")),
        ({"to": [], "body": "x"}, (422, "INVALID_FORMAT")),
        ({"to": ME, "body": "x", "topic": "a b"}, (422, "INVALID_FORMAT")),
        ({"to": ME, "body": ""}, (422, "INVALID_FORMAT")),
        ({"to": ME, "body": 1}, (422, "INVALID_FORMAT")),
        ({"to": {"a": 1}, "body": "x"}, (422, "INVALID_FORMAT")),
        ({"to": ME, "body": "x", "await_ms": 0}, (422, "INVALID_FORMAT")),
        ({"to": ME, "body": "x", "kind": "No Kind"}, (422, "INVALID_FORMAT")),
        ([], (422, "INVALID_FORMAT")),
        (None, (422, "INVALID_FORMAT")),
    ],
)
def test_wrong_messages_are_refused_and_the_field_is_named(http: httpx.Client, body: Any, expected: tuple[int, str]) -> None:
    answer = http.post("/api/v1/messages", json=body)
    assert problem(answer) == expected
    if expected[1] == "INVALID_FORMAT":
        assert answer.json()["error"]["details"]["field"]


def test_dead_letters_are_sent_again(start_server: StartServer) -> None:
    server = start_server("--message-ttl=100")
    bob = server.join("Bob")
    bob.close(1)
    sent = server.http.post("/api/v1/messages", json={"to": "Bob", "body": "late"}).json()["messageId"]
    until(lambda: bool(server.http.get("/api/v1/dead-letters").json()["deadLetters"]), "it is dead")
    (dead,) = server.http.get("/api/v1/dead-letters?limit=5").json()["deadLetters"]
    assert (dead["messageId"], dead["dead"]["to"], dead["dead"]["code"]) == (sent, "Bob", "DELIVERY_TIMEOUT")
    again = server.http.post(f"/api/v1/dead-letters/{sent}/retry").json()
    assert (again["success"], again["to"]) == (True, "Bob")
    assert problem(server.http.post(f"/api/v1/dead-letters/{sent}/retry")) == (404, "ROUTE_NOT_FOUND")
    assert problem(server.http.post("/api/v1/dead-letters/17/retry")) == (404, "ROUTE_NOT_FOUND")


def test_dead_letters_are_dismissed_and_stay_in_the_history(start_server: StartServer) -> None:
    server = start_server("--message-ttl=100")
    server.join("Bob").close(1)
    sent = server.http.post("/api/v1/messages", json={"to": "Bob", "body": "late"}).json()["messageId"]
    until(lambda: bool(server.http.get("/api/v1/dead-letters").json()["deadLetters"]), "it is dead")
    assert server.http.delete(f"/api/v1/dead-letters/{sent}").json() == {"success": True}
    assert server.http.get("/api/v1/dead-letters").json()["deadLetters"] == []
    assert server.http.get("/api/v1/status").json()["deadLetters"] == 0
    assert server.http.get(f"/api/v1/messages/{sent}").json()["body"] == "late"
    assert problem(server.http.delete(f"/api/v1/dead-letters/{sent}")) == (404, "ROUTE_NOT_FOUND")


def test_commands_reach_the_wrapper(server: Server, http: httpx.Client) -> None:
    bob = server.wrap()
    base = f"/api/v1/agents/{bob.name}"
    for command in ("pause", "resume", "interrupt", "stop"):
        assert http.post(f"{base}/{command}").json() == {"success": True}
    assert http.post(f"{base}/input", json={"text": "y\n"}).json() == {"success": True}
    assert http.post(f"/agents/{bob.name}/input", json={"text": "n"}).status_code == 200
    assert http.post(f"/agents/{bob.name}/interrupt").status_code == 200
    assert http.post(f"/agents/by-name/{bob.name}/interrupt").status_code == 200
    assert http.delete(f"/agents/{bob.name}").status_code == 200
    commands = ["pause", "resume", "interrupt", "stop", "input", "input", "interrupt", "interrupt", "stop"]
    until(lambda: [told.command for told in bob.told] == commands, "they arrive in order")
    assert [told.text for told in bob.told if told.text is not None] == ["y\n", "n"]
    plain = server.join()
    assert problem(http.post(f"/api/v1/agents/{plain.name}/pause")) == (409, "FEATURE_UNSUPPORTED")
    assert problem(http.post(f"/api/v1/agents/{UNKNOWN}/pause")) == (404, "AGENT_NOT_FOUND")
    assert problem(http.post(f"{base}/input", json={})) == (422, "INVALID_FORMAT")
    plain.close(1)
    assert problem(http.post(f"/api/v1/agents/{plain.name}/stop")) == (409, "AGENT_OFFLINE")


def test_permissions_wait_for_a_person(server: Server, http: httpx.Client) -> None:
    bob = server.wrap()
    bob.ask_permission("p1")
    bob.ask_permission("p2", command="rm -rf build")
    listed = http.get(f"/api/v1/agents/{bob.name}/permissions").json()["permissions"]
    assert [(each["requestId"], each["tool"], each["command"]) for each in listed] == [
        ("p1", "Bash", "make install"),
        ("p2", "Bash", "rm -rf build"),
    ]
    assert listed[1]["riskLevel"] == "critical"
    assert {each["requestId"] for each in http.get("/api/v1/permissions").json()["permissions"]} >= {"p1", "p2"}
    assert server.agent(bob.name)["openRequests"] == 2
    base = f"/api/v1/agents/{bob.name}/permissions"
    assert http.post(f"{base}/p1/approve").json() == {"success": True}
    assert http.post(f"{base}/p2/deny", json={"reason": "Keep it."}).json() == {"success": True}
    assert [(told.command, told.id, told.text, told.by) for told in bob.told] == [
        ("approve", "p1", "", "human"),
        ("deny", "p2", "Keep it.", "human"),
    ]
    assert http.get(base).json() == {"permissions": [], "next_cursor": None}
    assert problem(http.post(f"{base}/p1/approve")) == (409, "PERMISSION_DENIED")
    assert problem(http.post(f"{base}/p3/approve")) == (404, "ROUTE_NOT_FOUND")
    until(lambda: len(_resolved(http, bob.name)) == 2, "the end is recorded")
    assert [(each["resolution"], each["resolvedBy"]) for each in _resolved(http, bob.name)] == [
        ("approved", "human"),
        ("denied", "human"),
    ]


def _resolved(http: httpx.Client, agent: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = http.get("/api/v1/events", params={"types": "permission.resolved", "agent": agent}).json()[
        "events"
    ]
    return found


def test_of_several_answers_the_first_wins(server: Server, http: httpx.Client) -> None:
    bob = server.wrap()
    bob.is_stubborn = True
    bob.ask_permission("p1")
    path = f"/api/v1/agents/{bob.name}/permissions/p1"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(http.post, f"{path}/approve")
        assert bob.heard.wait(30)
        assert problem(http.post(f"{path}/deny")) == (409, "PERMISSION_DENIED")
        bob.client.report("permission.resolved", requestId="p1", resolution="approved", resolvedBy="door")
        assert first.result().json() == {"success": True}
    assert [told.command for told in bob.told] == ["approve"]


def test_an_answer_to_a_dialog_that_has_changed_is_a_conflict(server: Server, http: httpx.Client) -> None:
    bob = server.wrap()
    bob.is_stubborn = True
    bob.ask_permission("p1")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(http.post, f"/api/v1/agents/{bob.name}/permissions/p1/approve")
        assert bob.heard.wait(30)
        bob.client.report("request.failed", requestId="p1", reason="The dialog is another one.")
        assert problem(answer.result()) == (409, "PERMISSION_DENIED")
    assert answer.result().json()["error"]["message"] == "The dialog is another one."


def test_questions(server: Server, http: httpx.Client) -> None:
    bob = server.wrap()
    bob.ask_question("q1")
    base = f"/api/v1/agents/{bob.name}/questions"
    (asked,) = http.get(base).json()["questions"]
    assert (asked["questionId"], asked["question"], asked["options"]) == ("q1", "Which colour?", ["red", "blue"])
    assert asked in http.get("/api/v1/questions").json()["questions"]
    assert problem(http.post(f"/api/v1/agents/{bob.name}/permissions/q1/approve")) == (422, "INVALID_FORMAT")
    assert problem(http.post(f"{base}/q1/answer", json={})) == (422, "INVALID_FORMAT")
    assert http.post(f"{base}/q1/answer", json={"answer": "blue"}).json() == {"success": True}
    assert bob.told[-1].text == "blue"
    assert http.get(base).json()["questions"] == []


def test_the_name_of_the_sender_is_taken_up_again_after_a_restart(start_server: StartServer) -> None:
    server = start_server()
    bob = server.join("Bob")
    server.http.post("/api/v1/messages", json={"to": "Bob", "body": "one"})
    server.daemon.kill()
    server.daemon.start()
    server.daemon.wait_for_url()
    until(lambda: server.daemon.wait_for_url() is not None and _is_connected(server), "http is back")
    bob.close(1)


def _is_connected(server: Server) -> bool:
    with httpx.Client(base_url=server.daemon.wait_for_url(), headers=server.daemon.api_headers) as http:
        return bool(http.get(f"/api/v1/agents/{ME}").json().get("connected"))


def test_where_somebody_has_the_senders_name_another_is_used(start_server: StartServer) -> None:
    server = start_server()
    taken = server.join(ME)
    sent = server.http.post("/api/v1/messages", json={"to": ME, "body": "x"})
    assert sent.status_code == 201
    assert next(iter(taken.messages())).from_ == f"{ME}-2"


def test_it_stays_connected_however_long_nobody_asks(start_server: StartServer) -> None:
    """It answers the heartbeats of the relay as any client does."""
    server = start_server("--heartbeat-ms=1000")  # others may say nothing for a second or two, on a busy machine
    assert server.http.post("/api/v1/messages", json={"to": ME, "body": "x"}).status_code == 201
    session = server.agent(ME)["sessionId"]
    began = server.http.get("/health").json()["uptimeMs"]
    until(lambda: server.http.get("/ready").status_code == 200 and _uptime(server) > began + 5_000, "five heartbeats pass")
    found = server.agent(ME)
    assert (found["connected"], found["sessionId"]) == (True, session)
    log = (server.daemon.state_dir / "daemon.log").read_text()
    assert "heartbeat_timeout" not in log


def _uptime(server: Server) -> int:
    with server.daemon.connect_sync(observer=True) as looking:  # beside HTTP, so that its own connections stay silent
        return int(looking.agents().server["uptime_ms"])
