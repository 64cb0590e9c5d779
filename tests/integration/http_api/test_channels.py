"""Channels over HTTP, and questions that are asked and answered in one call."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from agent_relay.sdk.sync_parts import SyncMessage

from .server import DEADLINE_S, UNKNOWN, Server, problem, until

MESSAGES = "/api/v1/messages"


def channel(http: httpx.Client, name: str) -> dict[str, Any] | None:
    return next((each for each in http.get("/api/v1/channels").json()["channels"] if each["name"] == name), None)


def test_agents_join_are_listed_get_what_is_said_and_leave(server: Server, http: httpx.Client) -> None:
    bob, carol = server.join(), server.join()
    joined = http.post("/api/v1/channels/web/join", json={"agent": bob.name.lower()})
    assert (joined.status_code, joined.json()) == (200, {"channel": "#web", "agent": bob.name, "success": True})
    http.post("/api/v1/channels/%23web/join", json={"agent": carol.name})
    sent = http.post(MESSAGES, json={"to": "#web", "body": "good morning"}).json()
    assert sent["recipients"] == 2
    assert [agent.receive(DEADLINE_S).to for agent in (bob, carol)] == ["#web", "#web"]
    found = channel(http, "#web")
    assert found is not None
    assert (set(found["members"]), found["messages"], found["lastAt"] is not None) == ({bob.name, carol.name}, 1, True)
    http.post("/api/v1/channels/web/leave", json={"agent": carol.name})
    assert http.post(MESSAGES, json={"to": "#web", "body": "again"}).json()["recipients"] == 1


def test_without_a_name_whoever_sends_over_http_joins(server: Server, http: httpx.Client) -> None:
    who = http.post("/api/v1/channels/own/join").json()["agent"]
    assert channel(http, "#own") == {"name": "#own", "members": [who], "messages": 0, "lastAt": None, "topicLine": ""}
    assert http.post("/api/v1/channels/own/leave").json()["agent"] == who
    assert channel(http, "#own") is None
    del server


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("nowhere/leave", {}, (404, "CHANNEL_NOT_FOUND")),
        ("_x/join", {}, (422, "INVALID_TARGET")),
        ("web/join", {"agent": UNKNOWN}, (404, "AGENT_NOT_FOUND")),
        ("web/join", {"agent": 7}, (422, "INVALID_FORMAT")),
    ],
)
def test_what_cannot_be_is_refused(http: httpx.Client, path: str, body: dict[str, Any], expected: tuple[int, str]) -> None:
    assert problem(http.post(f"/api/v1/channels/{path}", json=body)) == expected


# --- questions ----------------------------------------------------------------------------------------------------------


def answered_by(server: Server, http: httpx.Client, answer: Callable[[SyncMessage], object], **more: Any) -> dict[str, Any]:
    bob = server.join()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(http.post, MESSAGES, json={"to": bob.name, "body": "ready?", "reply_ms": 15_000, **more})
        answer(bob.receive(DEADLINE_S))
        receipt: dict[str, Any] = asking.result().json()
    assert (receipt["delivered"], receipt["by"]) == (True, [bob.name])
    assert receipt["reply"]["by"] == bob.name
    return receipt["reply"]


def test_a_reply_comes_in_the_same_call(server: Server, http: httpx.Client) -> None:
    reply = answered_by(server, http, lambda question: question.reply("yes", data={"sure": True}), thread="t")
    assert (reply["body"], reply["data"]) == ("yes", {"sure": True})
    assert http.get(f"{MESSAGES}/{reply['messageId']}").json()["thread"] == "t"


def test_so_does_an_answer_with_the_acknowledgement(server: Server, http: httpx.Client) -> None:
    reply = answered_by(server, http, lambda question: question.ack("yes", {"sure": True}), id="asked-once")
    assert (reply["body"], reply["response"], reply["data"], reply["messageId"]) == ("yes", "yes", {"sure": True}, None)


def test_a_repeat_under_the_same_key_gets_the_same_answer(server: Server, http: httpx.Client) -> None:
    bob = server.join()
    asked = {"to": bob.name, "body": "ready?", "reply_ms": 15_000, "id": "the-same"}
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(http.post, MESSAGES, json=asked) for _ in range(2)]
        bob.receive(DEADLINE_S).reply("yes")
        bodies = {each.result().text for each in both}
    assert len(bodies) == 1
    assert json.loads(bodies.pop())["reply"]["body"] == "yes"


def test_no_answer_in_time_is_said_so_and_a_delivery_is_told_apart(server: Server, http: httpx.Client) -> None:
    bob, deaf = server.join(), server.join()
    reading = threading.Thread(target=lambda: bob.receive(DEADLINE_S).ack(), daemon=True)
    reading.start()
    heard = http.post(MESSAGES, json={"to": bob.name, "body": "?", "reply_ms": 1_000}).json()
    assert (heard["reply"], heard["delivered"], heard["by"]) == (None, True, [bob.name])
    unheard = http.post(MESSAGES, json={"to": deaf.name, "body": "?", "reply_ms": 50}).json()
    assert (unheard["reply"], unheard["delivered"], unheard["failure"]) == (None, False, None)
    refusing = threading.Thread(target=lambda: bob.receive(DEADLINE_S).nack(message="not now"), daemon=True)
    refusing.start()
    refused = http.post(MESSAGES, json={"to": bob.name, "body": "?", "reply_ms": 15_000}).json()
    assert (refused["reply"], refused["delivered"], "not now" in refused["failure"]) == (None, False, True)
    reading.join(DEADLINE_S)
    refusing.join(DEADLINE_S)


def test_nobody_to_ask_is_no_delivery(http: httpx.Client) -> None:
    receipt = http.post(MESSAGES, json={"topic": "nobody.listens", "body": "?", "reply_ms": 15_000}).json()
    assert (receipt["recipients"], receipt["delivered"], receipt["reply"]) == (0, False, None)


def test_wait_ms_and_its_older_name_wait_for_the_delivery(server: Server, http: httpx.Client) -> None:
    bob = server.join()
    for name in ("wait_ms", "await_ms"):
        reading = threading.Thread(target=lambda: bob.receive(DEADLINE_S).ack(), daemon=True)
        reading.start()
        receipt = http.post(MESSAGES, json={"to": bob.name, "body": "x", name: 15_000}).json()
        assert (receipt["delivered"], receipt["by"], receipt["reply"]) == (True, [bob.name], None)
        reading.join(DEADLINE_S)


def test_everything_that_a_message_may_have_is_passed_on(server: Server, http: httpx.Client) -> None:
    bob = server.join()
    said = {"to": bob.name, "body": "x", "data": {"a": 1}, "priority": 1, "ttl_ms": 60_000, "reply_to": "msg_1", "topic": "a.b"}
    assert http.post(MESSAGES, json=said).status_code == 201
    got = bob.receive(DEADLINE_S)
    assert (got.data, got.meta.priority, got.meta.ttl_ms, got.reply_to, got.topic) == ({"a": 1}, 1, 60_000, "msg_1", "a.b")


def test_whoever_hangs_up_is_not_waited_for(server: Server) -> None:
    """The question is called off: what is answered then is a message as any other."""
    bob = server.join()
    port = urlsplit(server.url).port
    body = json.dumps({"to": bob.name, "body": "ready?", "reply_ms": 600_000})
    head = f"POST {MESSAGES} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {server.daemon.api_token}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as connection:
        connection.sendall((head + body).encode())
        question = bob.receive(DEADLINE_S)
    log = server.daemon.state_dir / "daemon.log"
    until(lambda: '"status": 400' in log.read_text(), "the daemon has noticed")
    question.reply("yes")
    found = server.http.get(MESSAGES, params={"from": bob.name}).json()["messages"]
    assert [message["body"] for message in found] == ["yes"]
    assert "http_failed" not in log.read_text()


def test_the_topic_line_is_set_shown_and_removed(server: Server, http: httpx.Client) -> None:
    bob = server.join()
    http.post("/api/v1/channels/lined/join", json={"agent": bob.name, "at_leisure": True})
    assert http.get(f"/api/v1/agents/{bob.name}").json()["atLeisure"] == ["#lined"]
    for text in ("The new parser", ""):
        done = http.post("/api/v1/channels/lined/topic", json={"text": text})
        assert (done.status_code, done.json()) == (200, {"channel": "#lined", "text": text})
        found = channel(http, "#lined")
        assert found is not None
        assert found["topicLine"] == text
    assert problem(http.post("/api/v1/channels/unlined/topic", json={"text": "x"})) == (404, "CHANNEL_NOT_FOUND")
