"""Reports of agents and commands to them, over a real socket: AGENT_EVENT, CONTROL, and evidence in an ACK."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agent_relay.daemon.system import owner_name
from agent_relay.testing.raw_client import DEADLINE_SECONDS, RawClient, encode, envelope

from .conftest import StartRelay
from .relay import Relay

CONTROL = {"control": True}


def report(client: RawClient, kind: str, **fields: Any) -> str:
    return client.say("AGENT_EVENT", {"type": kind, "fields": fields})


def trail(relay: Relay, message_id: str, *, up_to: str) -> list[dict[str, Any]]:
    """The steps, once the last one is the one that is waited for: a report is looked up in the store and not answered."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        found: list[dict[str, Any]] = relay.observer().request("HISTORY", {"view": "message", "id": message_id})["trail"]
        if found and found[-1]["event"] == up_to:
            return found
        assert time.monotonic() < deadline, f"{up_to} did not come: {found}"


def test_a_message_goes_all_the_way_into_an_agent(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob", capabilities=CONTROL)
    request = alice.send(bob.name, "hello", meta={"requires_ack": True})
    deliver = bob.expect("DELIVER")
    message_id = deliver["delivery"]["message_id"]
    report(bob, "message.received", messageId=message_id)
    bob.ack(deliver, door="typing", evidence="composer")
    receipt = alice.expect("ACK", where=lambda frame: frame["payload"].get("stage") == "delivered")["payload"]
    assert (receipt["ack_id"], receipt["door"], receipt["evidence"]) == (request, "typing", "composer")
    report(bob, "message.read", messageId=message_id, evidence="transcript")
    report(bob, "message.read", messageId=message_id, evidence="transcript")
    steps = trail(relay, message_id, up_to="read")
    assert [(step["event"], step["detail"]) for step in steps] == [
        ("sent", ""),
        ("received", ""),
        ("injected", "door typing, seen: composer"),
        ("read", "seen: transcript"),
    ]
    bob.expect_none("ERROR", "ACK")


def test_a_message_is_read_after_a_crash_of_the_daemon(start_relay: StartRelay) -> None:
    relay = start_relay()
    alice, bob = relay.rejoin("Alice"), relay.rejoin("Bob")
    message_id = alice.send_stored("Bob", "hello")["message_id"]
    bob.ack(bob.expect("DELIVER"), door="typing", evidence="composer")
    trail(relay, message_id, up_to="injected")  # which writes it down
    relay.daemon.kill()
    relay.daemon.start()
    again = relay.rejoin("Bob", token=bob.token)
    report(again, "message.read", messageId=message_id)
    assert [step["event"] for step in trail(relay, message_id, up_to="read")] == ["sent", "injected", "read"]


def test_only_its_own_messages_can_be_reported_on(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    message_id = alice.send_stored(bob.name)["message_id"]
    for client in (alice, carol):
        answer = client.answer(report(client, "message.read", messageId=message_id))
        assert (answer["type"], answer["payload"]["code"]) == ("ERROR", "INVALID_TARGET")


@pytest.mark.parametrize(
    ("payload", "code", "details"),
    [
        ({"type": "agent.mood"}, "FEATURE_UNSUPPORTED", {"type": "agent.mood"}),
        ({"type": "agent.state"}, "INVALID_FORMAT", {"field": "payload.fields.state"}),
        ({"type": "agent.state", "fields": {"state": "idle", "door": 7}}, "INVALID_FORMAT", {"field": "payload.fields.door"}),
        ({"type": "agent.state", "fields": []}, "INVALID_FORMAT", {"field": "payload.fields"}),
        ({"type": 1}, "INVALID_FORMAT", {"field": "payload.type"}),
        (
            {"type": "message.read", "fields": {"messageId": "msg_1"}},
            "INVALID_FORMAT",
            {"field": "payload.fields.messageId"},
        ),
    ],
)
def test_a_wrong_report_is_answered(relay: Relay, payload: dict[str, Any], code: str, details: dict[str, str]) -> None:
    client = relay.join()
    answer = client.answer(client.say("AGENT_EVENT", payload))["payload"]
    assert (answer["code"], answer["details"], answer["fatal"]) == (code, details, False)


def test_a_state_lasts_as_long_as_the_connection(relay: Relay) -> None:
    bob = relay.join("Bob", capabilities=CONTROL)
    report(bob, "agent.state", state="waiting", waitingFor="a permission", door="typing", paused=True)
    bob.flush()
    shown = relay.agent(bob.name) or {}
    assert [shown[name] for name in ("state", "waiting_for", "door", "door_note", "paused")] == [
        "waiting", "a permission", "typing", None, True
    ]  # fmt: skip
    relay.cut(bob)
    assert (relay.agent(bob.name) or {})["state"] == "offline"
    again = relay.rejoin(bob.name, token=bob.token)
    assert (relay.agent(again.name) or {})["state"] == "idle"


def test_reports_are_limited_like_messages(start_relay: StartRelay) -> None:
    relay = start_relay("--rate-limit", "10")
    bob = relay.join("Bob")
    frames = [envelope("AGENT_EVENT", {"type": "agent.state", "fields": {"state": "idle"}}) for _ in range(200)]
    bob.write(b"".join(map(encode, frames)))
    bob.flush()
    refused = bob.listen(0.0, "ERROR")
    assert 150 <= len(refused) < 200
    assert {frame["payload"]["code"] for frame in refused} == {"RATE_LIMITED"}


# --- control ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["pause", "resume", "interrupt", "stop", "input"])
def test_a_command_reaches_the_agent(relay: Relay, command: str) -> None:
    bob = relay.join("Bob", capabilities=CONTROL)
    asked = {"command": command, "agent": bob.name.lower(), **({"text": "yes\n"} if command == "input" else {})}
    answer = relay.observer().request("CONTROL", asked)
    assert (answer["stage"], answer["by"]) == ("controlled", bob.name)
    said = bob.expect("CONTROL")["payload"]
    more = {"input": {"text": "yes\n"}, "pause": {"by": owner_name()}}
    assert said == {"command": command} | more.get(command, {})


def test_a_command_that_cannot_be_carried_out_is_refused(relay: Relay) -> None:
    bob, carol = relay.join("Bob", capabilities=CONTROL), relay.join("Carol")
    away = relay.offline()
    for payload, code in (
        ({"command": "pause", "agent": "Nobody-at-all"}, "AGENT_NOT_FOUND"),
        ({"command": "pause", "agent": away}, "AGENT_OFFLINE"),
        ({"command": "pause", "agent": carol.name}, "FEATURE_UNSUPPORTED"),
        ({"command": "pause"}, "INVALID_FORMAT"),
        ({"command": "input", "agent": bob.name}, "INVALID_FORMAT"),
        ({"command": "input", "agent": bob.name, "text": 1}, "INVALID_FORMAT"),
        ({"command": "pause", "agent": 1}, "INVALID_FORMAT"),
    ):
        answer = carol.answer(carol.say("CONTROL", payload))
        assert (answer["type"], answer["payload"]["code"]) == ("ERROR", code), payload
    bob.expect_none("CONTROL")
