"""What agents ask people, over a real socket: who was first, a wrapper that goes, a daemon that is killed."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.testing.raw_client import RawClient

from .conftest import StartRelay
from .relay import Relay

CONTROL = {"control": True}
ASKS = {"requestId": "p1", "description": "Run make?", "tool": "Bash", "command": "make", "options": ["Yes", "No"]}


def report(client: RawClient, kind: str, **fields: Any) -> None:
    client.say("AGENT_EVENT", {"type": kind, "fields": fields})
    client.flush()


def requests(relay: Relay, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (relay.agent(name) or {})["requests"]
    return found


def ask(relay: Relay) -> RawClient:
    bob = relay.join("Bob", capabilities=CONTROL)
    report(bob, "permission.requested", **ASKS)
    return bob


def test_the_first_answer_wins_and_the_others_are_told_why(relay: Relay) -> None:
    bob = ask(relay)
    first, second = relay.join("First"), relay.join("Second")
    assert [(shown["id"], shown["command"]) for shown in requests(relay, bob.name)] == [("p1", "make")]
    approving = first.say("CONTROL", {"command": "approve", "agent": bob.name, "id": "p1"})
    said = bob.expect("CONTROL")["payload"]
    assert said == {"command": "approve", "id": "p1", "text": "", "by": first.name}
    late = second.answer(second.say("CONTROL", {"command": "deny", "agent": bob.name, "id": "p1"}))["payload"]
    assert (late["code"], late["details"]) == ("PERMISSION_DENIED", {"reason": "being_answered", "id": "p1"})
    report(bob, "permission.resolved", requestId="p1", resolution="approved", resolvedBy="door")
    answer = first.answer(approving)
    assert (answer["type"], answer["payload"]["stage"], answer["payload"]["by"]) == ("ACK", "controlled", bob.name)
    over = second.answer(second.say("CONTROL", {"command": "deny", "agent": bob.name, "id": "p1"}))["payload"]
    assert (over["code"], over["details"]) == ("PERMISSION_DENIED", {"reason": "already_answered", "id": "p1"})
    assert requests(relay, bob.name) == []
    bob.expect_none("CONTROL", "ERROR")


def test_an_answer_that_cannot_be_given_can_be_given_again(relay: Relay) -> None:
    bob, person = ask(relay), relay.join("Person")
    denying = person.say("CONTROL", {"command": "deny", "agent": bob.name, "id": "p1", "text": "not now"})
    assert bob.expect("CONTROL")["payload"]["text"] == "not now"
    report(bob, "request.failed", requestId="p1", reason="The dialog is another one.", changed=True)
    failed = person.answer(denying)["payload"]
    assert (failed["details"]["reason"], failed["message"]) == ("changed", "The dialog is another one.")
    person.say("CONTROL", {"command": "deny", "agent": bob.name, "id": "p1"})
    assert bob.expect("CONTROL")["payload"]["command"] == "deny"


def test_a_wrapper_that_goes_takes_nothing_with_it(relay: Relay) -> None:
    bob, person = ask(relay), relay.join("Person")
    approving = person.say("CONTROL", {"command": "approve", "agent": bob.name, "id": "p1"})
    bob.expect("CONTROL")
    relay.cut(bob)
    assert person.answer(approving)["payload"]["code"] == "AGENT_OFFLINE"
    assert requests(relay, bob.name) == []
    again = relay.rejoin(bob.name, token=bob.token, capabilities=CONTROL)
    report(again, "permission.requested", **ASKS)
    assert [shown["id"] for shown in requests(relay, bob.name)] == ["p1"]


def test_a_daemon_that_is_killed_hears_of_it_again(start_relay: StartRelay) -> None:
    relay = start_relay()
    bob = relay.rejoin("Bob", capabilities=CONTROL)
    report(bob, "permission.requested", **ASKS)
    assert len(requests(relay, "Bob")) == 1
    relay.daemon.kill()
    relay.daemon.start()
    again = relay.rejoin("Bob", token=bob.token, capabilities=CONTROL)
    report(again, "permission.requested", **ASKS)
    person = relay.rejoin("Person")
    approving = person.say("CONTROL", {"command": "approve", "agent": "Bob", "id": "p1"})
    assert again.expect("CONTROL")["payload"]["by"] == "Person"
    report(again, "permission.resolved", requestId="p1", resolution="approved", resolvedBy="door")
    assert person.answer(approving)["type"] == "ACK"


def test_what_only_looks_is_approved_by_the_policy(relay: Relay) -> None:
    bob = relay.join("Bob", capabilities=CONTROL)
    report(bob, "permission.requested", **ASKS | {"command": "pwd", "isExact": True})
    said = bob.expect("CONTROL")["payload"]
    assert (said["command"], said["id"], said["by"]) == ("approve", "p1", "policy")


@pytest.mark.parametrize(
    ("kind", "fields", "field"),
    [
        ("permission.requested", {"description": "x"}, "requestId"),
        ("permission.requested", {"requestId": "p1", "description": 7}, "description"),
        ("permission.requested", {"requestId": "p1", "description": "x", "options": ["x" * 201]}, "options"),
        ("permission.requested", {"requestId": "p" * 129, "description": "x"}, "requestId"),
        ("permission.resolved", {"requestId": "p1", "resolution": "maybe"}, "resolution"),
        ("question.requested", {"questionId": "q1"}, "question"),
        ("request.failed", {}, "requestId"),
    ],
)
def test_a_wrong_report_is_answered(relay: Relay, kind: str, fields: dict[str, Any], field: str) -> None:
    bob = relay.join("Bob", capabilities=CONTROL)
    answer = bob.answer(bob.say("AGENT_EVENT", {"type": kind, "fields": fields}))["payload"]
    assert (answer["code"], answer["details"]) == ("INVALID_FORMAT", {"field": f"payload.fields.{field}"})
