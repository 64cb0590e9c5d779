"""Rules of a team in force: who sets them, what they stop, what is told of it, and that they outlive the daemon."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core.teams.rules import DOCUMENT
from agent_relay.ports.callers import Caller
from tests.support.harness import HarnessClient, RelayHarness

QUIET = {"effect": "deny", "action": "send", "from": "Worker*", "to": "Lead", "reason": "Ask Bob instead."}


def look_in(relay: RelayHarness, host: str = "") -> HarnessClient:
    client = relay.open(host=host)
    client.hello("x", mode="observer")
    client.take("WELCOME")
    return client


def set_rules(relay: RelayHarness, *rules: dict[str, Any], by: HarnessClient | None = None) -> str:
    """Why it is refused; "": it is not."""
    client = by or look_in(relay)
    client.say("CONTROL", {"command": "set_team", "id": "f" * 64, "rules": list(rules)})
    (frame,) = client.take("ERROR", "ACK")
    return "" if frame["type"] == "ACK" else str(frame["payload"]["message"])


def answer(client: HarnessClient, to: Any, **fields: Any) -> dict[str, Any]:
    """The ACK or the NACK."""
    client.say("SEND", {"body": "psst, the secret word"}, to=to, **fields)
    (frame,) = client.take("ACK", "NACK")
    payload: dict[str, Any] = frame["payload"]
    return payload


def code(client: HarnessClient, to: Any, **fields: Any) -> str:
    return str(answer(client, to, **fields).get("code", "ok"))


def test_a_message_against_a_rule_is_refused_and_the_rule_is_named() -> None:
    relay = RelayHarness()
    worker, lead = relay.connect("Worker1"), relay.connect("Lead")
    assert code(worker, "Lead") == "ok"
    assert set_rules(relay, QUIET) == ""
    refusal = answer(worker, "lead")
    assert refusal["code"] == "PERMISSION_DENIED"
    assert refusal["details"]["rule"] == "deny send from Worker* to Lead"
    assert "deny send from Worker* to Lead" in refusal["message"]
    assert "Ask Bob instead." in refusal["message"]
    assert code(lead, "Worker1") == "ok"  # the other way is open
    assert len(lead.take("DELIVER")) == 1  # the one from before


def test_a_refusal_is_logged_and_published_without_the_body() -> None:
    relay = RelayHarness()
    worker, _ = relay.connect("Worker1"), relay.connect("Lead")
    set_rules(relay, QUIET)
    code(worker, "Lead")
    (note,) = relay.log.named("rule_refused")
    assert note == {"agent": "Worker1", "action": "send", "to": "Lead", "rule": "deny send from Worker* to Lead"}
    assert "secret" not in repr(relay.log.notes)
    person = look_in(relay)
    person.say("LIST_AGENTS", {})
    team = person.payload("AGENTS")["server"]["team"]
    assert team == {"sha256": "f" * 64, "rules": ["deny send from Worker* to Lead"], "refused": 1}


@pytest.mark.parametrize(
    ("to", "fields", "is_open"),
    [("Bob", {}, True), (["Bob", "Lead"], {}, False), ("*", {}, False), ("#dev", {}, True), ("#ops", {}, False),
     (None, {"topic": "code.x"}, False), (None, {"topic": "other"}, True), ("Bob", {"topic": "code.x"}, False)],
)  # fmt: skip
def test_names_lists_everybody_channels_and_topics(to: Any, fields: dict[str, Any], is_open: bool) -> None:
    relay = RelayHarness()
    worker, lead, bob = relay.connect("Worker1"), relay.connect("Lead"), relay.connect("Bob")
    for channel in ("#dev", "#ops"):
        lead.say("CHANNEL_JOIN", {"channel": channel})
    bob.say("SUBSCRIBE", {"topic": "code.>"})
    set_rules(relay, QUIET, {"effect": "deny", "action": "send", "from": "*", "to": ["#ops", "topic:code.>"]})
    assert (code(worker, to, **fields) == "ok") is is_open


def test_a_proposal_is_no_way_around_a_rule() -> None:
    relay = RelayHarness()
    worker, lead, _ = relay.connect("Worker1"), relay.connect("Lead"), relay.connect("Bob")
    set_rules(relay, QUIET)
    worker.say("PROPOSE", {"title": "psst", "participants": ["Bob", "Lead"]})
    assert worker.payload("NACK")["details"]["reason"] == "team_rule"
    worker.say("PROPOSE", {"title": "Shall we?", "participants": ["Bob"]})
    assert worker.take("ERROR", "NACK") == []
    assert lead.take("DELIVER") == []


def test_the_owner_is_bound_by_no_rule_and_everybody_may_write_to_the_owner() -> None:
    relay = RelayHarness(owner="root")
    root, worker = relay.connect("root"), relay.connect("Worker1")
    set_rules(relay, {"effect": "deny", "action": "send"})
    assert (code(root, "Worker1"), code(worker, "root"), code(worker, "Worker1")) == ("ok", "ok", "PERMISSION_DENIED")


def test_rules_outlive_the_daemon_and_go_when_the_owner_says_so() -> None:
    relay = RelayHarness()
    set_rules(relay, QUIET)
    relay.restart()
    worker, _ = relay.connect("Worker1"), relay.connect("Lead")
    assert code(worker, "Lead") == "PERMISSION_DENIED"
    look = look_in(relay)
    look.say("CONTROL", {"command": "set_team"})
    assert len(look.take("ACK")) == 1
    assert code(worker, "Lead") == "ok"
    relay.restart()
    assert relay.relay.rules.describe() == {"sha256": "", "rules": [], "refused": 0}


def test_rules_are_in_force_once_they_are_durable() -> None:
    relay = RelayHarness()
    person = look_in(relay)
    relay.store.hold()
    person.say("CONTROL", {"command": "set_team", "rules": [QUIET]})
    assert person.take("ACK", "ERROR") == []
    relay.store.release()
    relay.tick()
    assert len(person.take("ACK")) == 1
    assert relay.relay.rules.access is not None


def test_only_the_owner_sets_rules() -> None:
    relay = RelayHarness(host="a")
    inside = look_in(relay)
    inside.connection.process = Caller("Bob")
    assert "inside Bob" in set_rules(relay, QUIET, by=inside)
    assert "cluster_control" in set_rules(relay, QUIET, by=look_in(relay, "c"))
    assert relay.relay.rules.access is None


@pytest.mark.parametrize("rules", [[QUIET] * 201, [{"effect": "deny"}], ["x"], [QUIET | {"to": "a/b"}], [QUIET | {"more": 1}]])
def test_rules_that_cannot_be_meant_change_nothing(rules: list[Any]) -> None:
    relay = RelayHarness()
    set_rules(relay, QUIET)
    assert "payload.rules" in set_rules(relay, *rules)
    assert relay.relay.rules.describe()["rules"] == ["deny send from Worker* to Lead"]


@pytest.mark.parametrize("content", [b"{", b'{"rules": [{"effect": "fly"}]}', b"\xff"])
def test_a_document_that_cannot_be_read_keeps_the_daemon_from_nothing(content: bytes) -> None:
    relay = RelayHarness()
    relay.turn(lambda: relay.relay.keep_document(DOCUMENT, content, lambda: None))
    relay.restart()
    assert relay.relay.rules.access is None
    assert relay.log.named("team_unreadable")


def test_a_rule_grants_no_right_and_takes_some_away() -> None:
    relay = RelayHarness(agent_rights=frozenset({("ann", "approve"), ("ann", "spawn")}))
    relay.connect("Bob", capabilities={"control": True})
    ann, eve = relay.connect("Ann", capabilities={"control": True}), relay.connect("Eve", capabilities={"control": True})
    set_rules(
        relay, {"effect": "deny", "action": "approve", "from": "Ann"}, {"effect": "allow", "action": "approve", "from": "Eve"}
    )
    ask = {"command": "approve", "agent": "Bob", "id": "1"}
    ann.say("CONTROL", ask)
    assert ann.payload("ERROR")["details"]["reason"] == "team_rule"
    eve.say("CONTROL", ask)
    assert eve.payload("ERROR")["details"]["reason"] == "inside_agent"
