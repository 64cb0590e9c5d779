"""Questions about messages: what was said, what became of it, and what could not be delivered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import HarnessClient, RelayHarness


@pytest.fixture
def bob(relay: RelayHarness) -> HarnessClient:
    return relay.connect("Bob", cli="claude")


def ask(client: HarnessClient, **query: Any) -> dict[str, Any]:
    request = client.say("HISTORY", query)
    answer = client.payload("HISTORY_RESULT")
    assert answer["reply_to"] == request
    return answer


def found(client: HarnessClient, **query: Any) -> list[str]:
    return [message["payload"]["body"] for message in ask(client, **query)["messages"]]


def status(client: HarnessClient, message_id: str) -> dict[str, str]:
    (message,) = ask(client, view="message", id=message_id)["messages"]
    return {recipient["name"]: recipient["status"] for recipient in message["recipients"]}


def send(client: HarnessClient, *args: Any, **options: Any) -> str:
    client.send(*args, **options)
    return str(client.stored()[-1]["message_id"])


# --- messages -------------------------------------------------------------------------------------------------------


def test_history_is_filtered_and_newest_first(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    carol = relay.connect("Carol")
    for client, to, body, options in (
        (alice, "Bob", "first words", {}),
        (bob, "Alice", "second words", {"payload": {"thread": "t"}}),
        (carol, "Bob", "third", {"topic": "news"}),
        (carol, "*", "fourth", {}),
    ):
        client.send(to, body, **options)
        relay.advance(1_000)
    start = relay.wall_ms - 4_000
    assert found(alice) == ["fourth", "third", "second words", "first words"]
    assert found(alice, **{"from": "carol"}) == ["fourth", "third"]
    assert found(alice, to="bob") == ["fourth", "third", "first words"]
    assert found(alice, to="*") == ["fourth"]
    assert found(alice, **{"with": "Alice"}) == ["fourth", "second words", "first words"]
    assert found(alice, topic="news") == ["third"]
    assert found(alice, thread="t") == ["second words"]
    assert found(alice, search="words") == ["second words", "first words"]
    assert found(alice, since=start + 1_000, until=start + 3_000) == ["third", "second words"]


def test_pages_follow_each_other(alice: HarnessClient, bob: HarnessClient) -> None:
    for number in range(7):
        alice.send("Bob", str(number))
    pages, cursor = [], None
    for _ in range(3):
        answer = ask(alice, limit=3, cursor=cursor)
        pages.append([message["payload"]["body"] for message in answer["messages"]])
        cursor = answer["next_cursor"]
    assert pages == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    assert cursor is None


def test_pending_is_what_was_not_acknowledged(alice: HarnessClient, bob: HarnessClient) -> None:
    for number in range(3):
        alice.send("Bob", str(number))
    bob.ack(bob.take("DELIVER")[1])
    assert found(alice, to="Bob", pending=True) == ["2", "0"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"view": "nothing"}, "payload.view"),
        ({"cursor": "x"}, "payload.cursor"),
        ({"cursor": "9" * 30}, "payload.cursor"),
        ({"cursor": "-1"}, "payload.cursor"),
        ({"view": "message", "id": "msg_short"}, "payload.id"),
        ({"view": "message"}, "payload.id"),
    ],
)
def test_a_wrong_question_is_named(alice: HarnessClient, query: dict[str, Any], field: str) -> None:
    request = alice.say("HISTORY", query)
    error = alice.payload("ERROR")
    assert (error["code"], error["reply_to"], error["fatal"]) == ("INVALID_FORMAT", request, False)
    assert error["details"]["field"] == field


@pytest.mark.parametrize("query", [{}, {"view": "message", "id": "msg_01MCC5RM000000000000010002"}, {"view": "dead_letters"}])
def test_a_store_that_cannot_be_read_is_told(relay: RelayHarness, alice: HarnessClient, query: dict[str, Any]) -> None:
    relay.store.fail_next_read()
    alice.say("HISTORY", query)
    error = alice.payload("ERROR")
    assert (error["code"], error["retryable"], error["fatal"]) == ("SERVICE_UNAVAILABLE", True, False)


# --- explain ----------------------------------------------------------------------------------------------------------


def test_the_life_of_a_message_is_told_up_to_this_moment(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    message_id = send(alice, "Bob", "x", id="mine")
    relay.advance(5_000)
    bob.ack(bob.take("DELIVER")[-1])
    answer = ask(alice, view="message", id=message_id)  # no time has passed since the ACK
    (message,) = answer["messages"]
    assert (message["client_id"], message["from"], message["to"]) == ("mine", "Alice", "Bob")
    assert message["recipients"] == [{"name": "Bob", "seq": 1, "status": "delivered"}]
    assert [(step["event"], step["to"]) for step in answer["trail"]] == [
        ("sent", "Bob"),
        ("resent", "Bob"),
        ("acknowledged", "Bob"),
    ]
    assert [step["at"] for step in answer["trail"]] == sorted(step["at"] for step in answer["trail"])


def test_each_recipient_has_a_status(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    carol = relay.connect("Carol")
    for name in ("Dora", "Eve"):
        relay.connect(name).drop()
    message_id = send(alice, ["Bob", "Carol", "Dora"], meta={"ttl_ms": 1_000})
    assert status(alice, message_id) == {"Bob": "sent", "Carol": "sent", "Dora": "queued"}
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(1_000)
    assert status(alice, message_id) == {"Bob": "delivered", "Carol": "dead", "Dora": "dead"}
    assert carol.frames


def test_a_message_nobody_knows(alice: HarnessClient) -> None:
    alice.say("HISTORY", {"view": "message", "id": "msg_01MCC5RM000000000000010002"})
    assert alice.payload("ERROR")["code"] == "ROUTE_NOT_FOUND"


def test_an_id_that_only_shares_a_number_is_not_that_message(alice: HarnessClient, bob: HarnessClient) -> None:
    message_id = send(alice, "Bob")
    twin = message_id[:20] + ("A" if message_id[20] != "A" else "B") + message_id[21:]
    alice.say("HISTORY", {"view": "message", "id": twin})
    assert alice.payload("ERROR")["code"] == "ROUTE_NOT_FOUND"
