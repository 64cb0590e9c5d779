"""What happens in the core is told as events, each from where it happens and none twice."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core.announcements import derive_exchange
from agent_relay.ports.store import MessageQuery
from agent_relay.protocol.ulid import encode_time
from tests.support.harness import HarnessClient, RelayHarness

MESSAGES = ("message.exchanged", "message.delivered")


def report(client: HarnessClient, kind: str, **fields: Any) -> None:
    client.say("AGENT_EVENT", {"type": kind, "fields": fields})


def shown(event: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: event.get(name) for name in names}


# --- messages -----------------------------------------------------------------------------------------------------------------


def test_a_message_is_told_once_it_is_durable_and_again_once_it_is_acknowledged(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    relay.store.hold()
    alice.send("Bob", "hello", payload={"thread": "t", "kind": "action"})
    assert relay.events.named(*MESSAGES) == []
    relay.store.release()
    relay.settle()
    (exchanged,) = relay.events.named(*MESSAGES)
    message_id = alice.stored()[0]["message_id"]
    assert exchanged == {
        "type": "message.exchanged", "_seq": exchanged["_seq"], "_ts": relay.wall_ms, "_sessionId": alice.welcome["session_id"],
        "_agentName": "Alice", "sessionId": alice.welcome["session_id"], "messageId": message_id, "from": "Alice", "to": "Bob",
        "body": "hello", "kind": "action", "thread": "t",
    }  # fmt: skip
    relay.advance(250)
    bob.ack(bob.take_one("DELIVER"))
    (delivered,) = relay.events.named("message.delivered")
    assert delivered == {
        "type": "message.delivered", "_seq": delivered["_seq"], "_ts": relay.wall_ms, "_sessionId": bob.welcome["session_id"],
        "_agentName": "Bob", "messageId": message_id, "to": "Bob", "attempt": 1, "latencyMs": 250,
    }  # fmt: skip


def test_a_message_that_was_not_stored_never_happened(relay: RelayHarness) -> None:
    alice, _ = relay.connect("Alice"), relay.connect("Bob")
    relay.store.fail_next()
    alice.send("Bob", "hello")
    assert relay.events.named(*MESSAGES) == []


def test_a_repeated_send_is_one_event(relay: RelayHarness) -> None:
    alice, _ = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", "hello", id="same")
    alice.send("Bob", "hello", id="same")
    assert len(relay.events.named("message.exchanged")) == 1


def test_how_it_went_in_and_what_was_seen_of_it_are_told(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", "hello")
    deliver = bob.take_one("DELIVER")
    bob.ack(deliver, door="typing", evidence="composer empty")
    bob.ack(deliver, door="typing", evidence="composer empty")
    (event,) = relay.events.named("message.delivered")
    assert (event["door"], event["evidence"]) == ("typing", "composer empty")


def test_a_broadcast_is_exchanged_once_and_delivered_to_each(relay: RelayHarness) -> None:
    alice, bob, carol = (relay.connect(name) for name in ("Alice", "Bob", "Carol"))
    alice.send("*", "all of you")
    for client in (bob, carol):
        client.ack(client.take_one("DELIVER"))
    assert [event["to"] for event in relay.events.named("message.exchanged")] == ["*"]
    assert sorted(event["to"] for event in relay.events.named("message.delivered")) == ["Bob", "Carol"]


def test_a_recipient_that_never_acknowledges_has_it_when_the_bytes_are_gone(relay: RelayHarness) -> None:
    alice, _ = relay.connect("Alice"), relay.connect("Bob", capabilities={"ack": False})
    alice.send("Bob", "hello")
    assert [event["to"] for event in relay.events.named("message.delivered")] == ["Bob"]


def test_a_refusal_is_no_delivery(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", "hello")
    bob.nack(bob.take_one("DELIVER"), "REJECTED")
    assert relay.events.named("message.delivered") == []


def test_attempts_are_counted(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", "hello")
    relay.advance(6_000)
    bob.ack(bob.take("DELIVER")[-1])
    assert relay.events.named("message.delivered")[0]["attempt"] == 2


# --- agents -------------------------------------------------------------------------------------------------------------------


def states(relay: RelayHarness) -> list[tuple[str, str]]:
    return [(event["_agentName"], event["state"]) for event in relay.events.named("agent.state")]


def test_who_comes_and_goes(relay: RelayHarness) -> None:
    bob = relay.connect("Bob")
    bob.drop()
    assert states(relay) == [("Bob", "idle"), ("Bob", "offline")]


def test_one_that_only_says_something_and_leaves_is_not_told_of(relay: RelayHarness) -> None:
    relay.connect("Bob")
    passing = relay.connect("Passing", meta={"transient": True})
    passing.send("Bob", "hello")
    passing.drop()
    assert states(relay) == [("Bob", "idle")]
    assert [event["from"] for event in relay.events.named("message.exchanged")] == ["Passing"]
    again = relay.connect("Passing")
    again.drop()
    assert states(relay)[1:] == [("Passing", "idle"), ("Passing", "offline")]


def test_an_agent_says_itself_what_it_is_doing_and_the_same_is_told_once(relay: RelayHarness) -> None:
    bob = relay.connect("Bob", capabilities={"control": True})
    report(bob, "agent.state", state="working")
    report(bob, "agent.state", state="working")
    report(bob, "agent.state", state="waiting", waitingFor="a permission", door="typing", doorNote="no other", paused=True)
    bob.drop()
    assert states(relay) == [("Bob", "working"), ("Bob", "waiting"), ("Bob", "offline")]
    assert shown(relay.events.named("agent.state")[1], "waitingFor", "door", "doorNote", "paused") == {
        "waitingFor": "a permission", "door": "typing", "doorNote": "no other", "paused": True,
    }  # fmt: skip


def test_a_refused_connection_was_never_here(relay: RelayHarness) -> None:
    relay.connect("Bob")
    relay.open().hello("Bob")
    assert states(relay) == [("Bob", "idle")]


def test_agents_in_a_circle_are_told_of_it() -> None:
    relay = RelayHarness(loop_slow_after=2, loop_hold_after=3)
    pair = [relay.connect(name, capabilities={"control": True}) for name in ("Alice", "Bob")]
    pair[0].send("Bob", "0")
    for turn in range(1, 6):
        speaker = pair[turn % 2]
        for frame in speaker.take("DELIVER"):
            speaker.ack(frame)
            speaker.send(pair[(turn + 1) % 2].name, str(turn))
        relay.advance(40_000)
    events = relay.events.named("loop.detected")
    assert {event["_agentName"] for event in events} == {"Alice", "Bob"}
    assert {event["stage"] for event in events} >= {"slowed"}
    assert all(event["text"] and event["hops"] for event in events)


# --- what wrappers report -----------------------------------------------------------------------------------------------------

REPORTS: dict[str, dict[str, Any]] = {
    "item.started": {"itemId": "i", "itemType": "tool_call", "startedAt": 1},
    "item.delta": {"itemId": "i", "delta": {"type": "text", "content": "x"}},
    "item.completed": {"itemId": "i", "completedAt": 2, "duration": 1},
    "tokens.used": {"model": "m", "inputTokens": 1, "outputTokens": 2},
    "file.operation": {"operation": "read", "filePath": "f"},
    "command.executed": {"command": "ls", "exitCode": 0, "duration": 1},
}


@pytest.mark.parametrize("kind", REPORTS)
def test_what_an_agent_does_is_told_as_its_own(relay: RelayHarness, kind: str) -> None:
    bob = relay.connect("Bob")
    report(bob, kind, **REPORTS[kind], sessionId="ses_of_another", agentName="Mallory", _seq=99, _agentName="Mallory")
    (event,) = relay.events.named(kind)
    assert event["_agentName"] == "Bob"
    assert event["sessionId"] == event["_sessionId"] == bob.welcome["session_id"]
    assert event.get("agentName", "Bob") == "Bob"
    assert shown(event, *REPORTS[kind]) == REPORTS[kind]
    assert bob.take("ERROR") == []


@pytest.mark.parametrize("kind", REPORTS)
def test_a_wrong_report_is_refused_with_the_field(relay: RelayHarness, kind: str) -> None:
    bob = relay.connect("Bob")
    name = next(iter(REPORTS[kind]))
    report(bob, kind, **(REPORTS[kind] | {name: {"no": 1}}))
    error = bob.payload("ERROR")
    assert (error["code"], error["details"]["field"]) == ("INVALID_FORMAT", f"payload.fields.{name}")
    assert relay.events.named(kind) == []


@pytest.mark.parametrize(
    "kind", ["session.started", "session.ended", "agent.spawned", "message.exchanged", "stream.gap", "no.such"]
)
def test_what_is_not_a_wrappers_to_say_is_refused(relay: RelayHarness, kind: str) -> None:
    bob = relay.connect("Bob")
    report(bob, kind, sessionId="x", oldest=1)
    assert bob.payload("ERROR")["code"] == "FEATURE_UNSUPPORTED"
    assert relay.events.named(kind) == []


def test_a_permission_is_told_when_it_is_asked_for_and_when_it_is_decided(relay: RelayHarness) -> None:
    bob = relay.connect("Bob", capabilities={"control": True})
    report(bob, "permission.requested", requestId="r1", tool="bash", command="rm -rf x", description="Run rm?")
    report(bob, "permission.requested", requestId="r1", tool="bash", command="rm -rf x", description="Run rm?")
    report(bob, "permission.resolved", requestId="r1", resolution="denied", resolvedBy="human")
    requested, resolved = relay.events.named("permission.requested", "permission.resolved")
    assert shown(requested, "requestId", "tool", "command", "riskLevel", "_agentName") == {
        "requestId": "r1", "tool": "bash", "command": "rm -rf x", "riskLevel": "critical", "_agentName": "Bob",
    }  # fmt: skip
    assert shown(resolved, "requestId", "resolution", "resolvedBy") == {
        "requestId": "r1", "resolution": "denied", "resolvedBy": "human",
    }  # fmt: skip
    assert "reason" not in resolved


def test_why_a_permission_was_decided_is_told(relay: RelayHarness) -> None:
    bob = relay.connect("Bob", capabilities={"control": True})
    report(bob, "permission.requested", requestId="r1", tool="bash", command="pwd", description="Run?", isExact=True)
    report(bob, "permission.resolved", requestId="r1", resolution="approved", resolvedBy="door")
    (resolved,) = relay.events.named("permission.resolved")
    assert shown(resolved, "resolution", "resolvedBy", "reason") == {
        "resolution": "approved", "resolvedBy": "policy", "reason": "The command only shows something.",
    }  # fmt: skip


def test_a_question_is_told_with_its_answer(relay: RelayHarness) -> None:
    bob = relay.connect("Bob", capabilities={"control": True})
    report(bob, "question.requested", questionId="q1", question="Which?", options=["red", "blue"], defaultAnswer="red")
    report(bob, "question.resolved", questionId="q1", answer="blue")
    asked, answered = relay.events.named("question.requested", "question.resolved")
    assert shown(asked, "questionId", "question", "options", "defaultAnswer") == {
        "questionId": "q1", "question": "Which?", "options": ["red", "blue"], "defaultAnswer": "red",
    }  # fmt: skip
    assert shown(answered, "questionId", "answer", "resolvedBy") == {"questionId": "q1", "answer": "blue", "resolvedBy": "human"}


def test_numbers_count_up_over_everything(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    for _ in range(5):
        alice.send("Bob", "x")
        bob.ack(bob.take_one("DELIVER"))
    assert [event["_seq"] for event in relay.events.named()] == list(range(1, 13))


# --- derived from the store ---------------------------------------------------------------------------------------------------


def test_of_a_session_that_began_later_a_derived_event_says_nothing(relay: RelayHarness) -> None:
    alice = relay.connect("Alice")
    alice.send("Alice", "one")
    relay.settle()
    (exchanged,) = relay.events.named("message.exchanged")
    pages: list[Any] = []
    relay.store.find(MessageQuery(), pages.append)
    relay.settle()
    rows = pages[0].messages
    agent = relay.relay.registry.find("Alice")
    assert agent is not None
    derived = derive_exchange(rows[0], agent)
    assert (derived.session_id, derived.message_id, derived.body) == (agent.session_id, exchanged["messageId"], "one")
    agent.session_id = f"ses_{encode_time(relay.wall_ms + 1)}0000000000000000"
    assert derive_exchange(rows[0], agent).session_id == ""
    agent.session_id = "of somebody else's making"
    assert derive_exchange(rows[0], agent).session_id == agent.session_id
    assert derive_exchange(rows[0], None).session_id == ""
