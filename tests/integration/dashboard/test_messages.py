"""Messages as the page needs them: with their receipts, by conversation, in both directions; and the relay as a whole."""

from __future__ import annotations

from typing import Any

import httpx

from agent_relay.sdk.sync import SyncRelayClient
from tests.integration.http_api.conftest import StartServer
from tests.integration.http_api.server import Server, problem, until


def take(agent: SyncRelayClient, **seen: Any) -> str:
    message = agent.receive(timeout=60)
    message.ack(**seen)
    return message.id


def stages(http: httpx.Client, **wanted: Any) -> list[list[Any]]:
    page = http.get("/api/v1/messages", params={"receipts": "true", **wanted}).json()
    return [[each.get("stage"), each.get("door"), each.get("evidence")] for m in page["messages"] for each in m["recipients"]]


def test_a_page_says_how_far_every_message_came(http: httpx.Client, server: Server) -> None:
    ann, bob, carol = server.join(), server.join(), server.join()
    ann.send(bob.name, "one")
    ann.send(carol.name, "two")
    first = take(bob, door="typing", evidence="composer")
    until(lambda: stages(http, **{"from": ann.name}) == [["sent", None, None], ["delivered", "typing", "composer"]], "taken")
    bob.report("message.read", messageId=first, evidence="transcript")
    take(carol)
    until(
        lambda: stages(http, **{"from": ann.name}) == [["delivered", None, None], ["read", "typing", "transcript"]], "read"
    )  # fmt: skip
    assert "stage" not in {
        name for name, value in http.get("/api/v1/messages").json()["messages"][0]["recipients"][0].items() if value is not None
    }


def test_pages_go_both_ways_from_any_message(http: httpx.Client, server: Server) -> None:
    ann, bob = server.join(), server.join()
    ids = [ann.send(bob.name, str(number)).message_id for number in range(5)]
    between = f"{bob.name},{ann.name}"

    def page(**wanted: Any) -> tuple[list[str], str | None]:
        found = http.get("/api/v1/messages", params={"between": between, "limit": 2, **wanted}).json()
        return [message["messageId"] for message in found["messages"]], found["next_cursor"]

    older, cursor = page(cursor=ids[3])
    assert older == [ids[2], ids[1]]
    assert page(cursor=cursor)[0] == [ids[0]]
    newer, cursor = page(cursor=ids[0], order="oldest")
    assert newer == [ids[1], ids[2]]
    assert page(cursor=cursor, order="oldest") == ([ids[3], ids[4]], None)
    assert page(order="oldest")[0] == ids[:2]
    for wrong in ({"cursor": "msg_1"}, {"between": "one"}, {"order": "sideways"}, {"receipts": "perhaps"}):
        assert problem(http.get("/api/v1/messages", params=wrong)) == (422, "INVALID_FORMAT")


def test_conversations_and_the_whole(start_server: StartServer) -> None:
    server = start_server()
    ann, bob = server.join("Ann"), server.wrap("Bob")
    ann.send("Bob", "hello <b>" + "x" * 1_000, thread="t-1")
    bob.client.send("ann", "hello")
    bob.ask_permission("p-1")
    bob.client.report("tokens.used", model="m-1", inputTokens=10, outputTokens=5)
    found = server.http.get("/api/v1/conversations").json()["conversations"]
    assert [(each["type"], each["key"], each["count"], each["last"]["from"]) for each in found] == [
        ("pair", "Ann,Bob", 2, "Bob"),
        ("thread", "t-1", 1, "Ann"),
    ]
    assert len(found[1]["last"]["body"]) == 200
    until(lambda: server.agent("Bob")["model"] == "m-1", "what it used is counted")
    assert server.agent("Bob")["totalTokens"] == 15
    status = server.http.get("/api/v1/status").json()
    assert (status["agents"], status["connected"], status["messages"], status["permissions"]) == (2, 2, 2, 1)
    assert (status["questions"], status["deadLetters"], status["totalTokens"]) == (0, 0, 15)
