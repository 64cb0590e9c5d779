"""Reports of agents: their state, the steps of their messages, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core import reports
from tests.support.harness import Frame, HarnessClient, RelayHarness


def report(client: HarnessClient, kind: str, **fields: Any) -> str:
    return client.say("AGENT_EVENT", {"type": kind, "fields": fields})


def about(client: HarnessClient, event: str, message_id: str, **fields: Any) -> str:
    return report(client, f"message.{event}", messageId=message_id, **fields)


def give(sender: HarnessClient, recipient: HarnessClient, **meta: Any) -> Frame:
    sender.send(recipient.name, "x", meta=meta or None)
    return recipient.take_one("DELIVER")


def trail(client: HarnessClient, message_id: str) -> list[dict[str, Any]]:
    client.say("HISTORY", {"view": "message", "id": message_id})
    found: list[dict[str, Any]] = client.payload("HISTORY_RESULT")["trail"]
    return found


def events(client: HarnessClient, message_id: str) -> list[str]:
    return [step["event"] for step in trail(client, message_id)]


def shown(client: HarnessClient, name: str) -> dict[str, Any]:
    client.say("LIST_AGENTS", {})
    found: dict[str, Any] = next(agent for agent in client.payload("AGENTS")["agents"] if agent["name"] == name)
    return found


def refusal(client: HarnessClient, request: str) -> dict[str, Any]:
    error = client.payload("ERROR")
    assert (error["reply_to"], error["fatal"]) == (request, False)
    return error


# --- states -----------------------------------------------------------------------------------------------------------


def test_a_reported_state_is_shown_until_the_connection_ends(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    assert shown(alice, "Bob")["state"] == "idle"
    report(bob, "agent.state", state="waiting", waitingFor="a permission", door="typing", doorNote="no socket", paused=True)
    said = shown(alice, "Bob")
    assert [said[name] for name in ("state", "waiting_for", "door", "door_note", "paused")] == [
        "waiting", "a permission", "typing", "no socket", True
    ]  # fmt: skip
    report(bob, "agent.state", state="working")
    said = shown(alice, "Bob")
    assert [said[name] for name in ("state", "waiting_for", "door", "door_note", "paused")] == [
        "working",
        None,
        None,
        None,
        False,
    ]
    assert bob.take() == []
    bob.drop()
    assert (shown(alice, "Bob")["state"], shown(alice, "Bob")["door"]) == ("offline", None)
    relay.connect("Bob")
    assert shown(alice, "Bob")["state"] == "idle"


def test_new_input_is_passed_on(relay: RelayHarness, bob: HarnessClient) -> None:
    heard: list[str] = []
    relay.relay.on_input.append(lambda agent: heard.append(agent.name))
    report(bob, "agent.input")
    assert (heard, bob.take()) == (["Bob"], [])


# --- steps of messages ------------------------------------------------------------------------------------------------


def test_a_message_goes_from_received_over_injected_to_read(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    deliver = give(alice, bob, requires_ack=True)
    id_ = deliver["delivery"]["message_id"]
    relay.advance(1_000)
    about(bob, "received", id_)
    relay.advance(1_000)
    bob.ack(deliver, door="typing", evidence="composer")
    relay.advance(1_000)
    about(bob, "read", id_, evidence="transcript")
    steps = trail(alice, id_)
    assert [step["event"] for step in steps] == ["sent", "received", "injected", "read"]
    assert [step["at"] - steps[0]["at"] for step in steps] == [0, 1_000, 2_000, 3_000]
    assert [step["detail"] for step in steps[1:]] == ["", "door typing, seen: composer", "seen: transcript"]
    assert (steps[2]["door"], steps[2]["evidence"], steps[3]["evidence"]) == ("typing", "composer", "transcript")
    assert bob.take() == []


def test_in_one_turn_the_order_is_the_same(alice: HarnessClient, bob: HarnessClient) -> None:
    deliver = give(alice, bob)
    id_ = deliver["delivery"]["message_id"]
    bob.say_frames(
        bob.frame("AGENT_EVENT", {"type": "message.received", "fields": {"messageId": id_}}),
        bob.frame("ACK", {"ack_id": deliver["id"], "door": "typing"}),
        bob.frame("AGENT_EVENT", {"type": "message.read", "fields": {"messageId": id_}}),
    )
    assert events(alice, id_) == ["sent", "received", "injected", "read"]


def test_a_plain_acknowledgement_stands_behind_what_was_received_before_it(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    first, second = give(alice, bob), give(alice, bob)
    bob.ack(first)  # the run of acknowledgements begins here, and carries this moment
    relay.advance(30)  # not so long that it would be written
    about(bob, "received", second["delivery"]["message_id"])
    relay.advance(30)
    bob.ack(second)
    assert events(alice, second["delivery"]["message_id"]) == ["sent", "received", "acknowledged"]


def test_steps_only_move_forward(alice: HarnessClient, bob: HarnessClient) -> None:
    deliver = give(alice, bob)
    id_ = deliver["delivery"]["message_id"]
    for event in ("received", "received", "read", "received", "read"):
        about(bob, event, id_)
    bob.ack(deliver)
    for event in ("received", "read"):
        about(bob, event, id_)
    assert sorted(events(alice, id_)) == ["acknowledged", "read", "received", "sent"]
    late = give(alice, bob)
    bob.ack(late)
    about(bob, "received", late["delivery"]["message_id"])
    assert events(alice, late["delivery"]["message_id"]) == ["sent", "acknowledged"]
    assert bob.take() == []


def test_what_is_shown_again_is_not_received_again(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    deliver = give(alice, bob)
    id_ = deliver["delivery"]["message_id"]
    bob.ack(deliver)
    bob.drop()
    again = relay.open()
    again.resume("Bob", bob.token, [{"topic": "", "peer": "Alice", "last_seq": 0}])
    assert again.take_one("DELIVER")["delivery"]["message_id"] == id_
    about(again, "received", id_)
    assert "received" not in events(alice, id_)
    about(again, "read", id_)
    assert events(alice, id_)[-1] == "read"


def test_the_same_report_twice_before_the_store_answers_is_one_step(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    deliver = give(alice, bob)
    id_ = deliver["delivery"]["message_id"]
    bob.ack(deliver)
    relay.store.hold()
    about(bob, "read", id_)
    about(bob, "read", id_)
    relay.store.release()
    relay.settle()
    assert events(alice, id_).count("read") == 1


def test_a_message_is_read_after_a_restart(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    read, unread = give(alice, bob), give(alice, bob)
    bob.ack(read, door="typing")
    relay.advance(1_000)
    relay.restart()
    watcher, again = relay.connect("Watcher"), relay.connect("Bob")
    for deliver in (read, unread):
        about(again, "read", deliver["delivery"]["message_id"])
    assert events(watcher, read["delivery"]["message_id"]) == ["sent", "injected", "read"]
    assert events(watcher, unread["delivery"]["message_id"])[-1] == "read"
    assert again.take("ERROR") == []


def test_only_the_memory_of_steps_is_bounded(
    monkeypatch: pytest.MonkeyPatch, relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    monkeypatch.setattr(reports, "_REMEMBERED", 2)
    ids = [give(alice, bob)["delivery"]["message_id"] for _ in range(3)]
    for id_ in ids:
        about(bob, "received", id_)
    about(bob, "received", ids[2])
    assert events(alice, ids[2]).count("received") == 1
    about(bob, "received", ids[0])  # forgotten: it is noted once more, and nothing worse
    assert events(alice, ids[0]).count("received") == 2


# --- what is refused --------------------------------------------------------------------------------------------------


def test_only_what_was_delivered_to_this_agent_counts(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    carol = relay.connect("Carol", max_inflight=1)
    to_bob = give(alice, bob)["delivery"]["message_id"]
    give(alice, carol)
    alice.take()
    alice.send("Carol", "waits")
    waiting = alice.stored()[0]["message_id"]
    alice.send("Bob", "too late", meta={"ttl_ms": 100})
    expired = bob.take_one("DELIVER")["delivery"]["message_id"]
    relay.advance(1_000)
    nothing = to_bob[:-1] + ("0" if to_bob[-1] != "0" else "1")
    for client, id_ in ((carol, to_bob), (carol, waiting), (alice, to_bob), (bob, expired), (bob, nothing)):
        client.take()
        error = refusal(client, about(client, "read", id_))
        assert (error["code"], error["details"]) == ("INVALID_TARGET", {"field": "payload.fields.messageId"})
    assert events(alice, to_bob) == ["sent"]


@pytest.mark.parametrize("id_", ["msg_1", "x", "01MCC5RM0000000000000", "msg_" + "Z" * 26])
def test_an_id_that_is_none_is_named(bob: HarnessClient, id_: str) -> None:
    error = refusal(bob, about(bob, "received", id_))
    assert (error["code"], error["details"]) == ("INVALID_FORMAT", {"field": "payload.fields.messageId"})


def test_another_type_and_a_wrong_field_are_named(bob: HarnessClient) -> None:
    error = refusal(bob, report(bob, "agent.mood", mood="good"))
    assert (error["code"], error["details"]) == ("FEATURE_UNSUPPORTED", {"type": "agent.mood"})
    error = refusal(bob, report(bob, "agent.state", state="gone"))
    assert (error["code"], error["details"]) == ("INVALID_FORMAT", {"field": "payload.fields.state"})


def test_an_observer_reports_nothing(relay: RelayHarness) -> None:
    watcher = relay.connect("Watcher", mode="observer")
    assert refusal(watcher, report(watcher, "agent.input"))["code"] == "PERMISSION_DENIED"


def test_a_store_that_cannot_be_read_is_said(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    deliver = give(alice, bob)
    bob.ack(deliver)
    relay.store.fail_next_read()
    error = refusal(bob, about(bob, "read", deliver["delivery"]["message_id"]))
    assert (error["code"], error["retryable"]) == ("SERVICE_UNAVAILABLE", True)
    about(bob, "read", deliver["delivery"]["message_id"])
    assert events(alice, deliver["delivery"]["message_id"])[-1] == "read"


# --- floods -----------------------------------------------------------------------------------------------------------


def test_reports_count_towards_the_rate_limit() -> None:
    relay = RelayHarness(rate_limit=3)
    bob = relay.connect("Bob")
    for _ in range(3):
        report(bob, "agent.state", state="idle")
    error = refusal(bob, report(bob, "agent.state", state="working"))
    assert (error["code"], error["retry_after_ms"] > 0) == ("RATE_LIMITED", True)
    bob.send("Bob")
    assert bob.payload("NACK")["code"] == "RATE_LIMITED"
    relay.advance(1_000)
    report(bob, "agent.state", state="working")
    assert bob.take("ERROR") == []


def test_a_batch_costs_two_questions_to_the_store(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    deliveries = [give(alice, bob) for _ in range(100)]
    for deliver in deliveries:
        bob.ack(deliver)
    relay.store.hold()
    ids = [deliver["delivery"]["message_id"] for deliver in deliveries]
    bob.say_frames(*(bob.frame("AGENT_EVENT", {"type": "message.read", "fields": {"messageId": id_}}) for id_ in ids))
    asked = 0
    while relay.store.step_held():
        asked += 1
    relay.store.release()
    relay.settle()
    assert asked == 2
    assert all(events(alice, id_)[-1] == "read" for id_ in ids)


def test_more_than_can_be_looked_up_is_refused(
    monkeypatch: pytest.MonkeyPatch, relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    monkeypatch.setattr(reports, "_MAX_WAITING", 2)
    deliveries = [give(alice, bob) for _ in range(4)]
    for deliver in deliveries:
        bob.ack(deliver)
    relay.store.hold()
    for deliver in deliveries:
        last = about(bob, "read", deliver["delivery"]["message_id"])
    assert refusal(bob, last)["code"] == "RATE_LIMITED"
    relay.store.release()
    relay.settle()
    assert [events(alice, deliver["delivery"]["message_id"])[-1] for deliver in deliveries] == ["read"] * 3 + ["acknowledged"]
