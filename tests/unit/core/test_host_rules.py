"""Rules of hosts: each host's owner says what others may do to what runs there."""

from __future__ import annotations

import pytest

from agent_relay.core.host_rules import NO_RULES, HostRules, decode_rules, encode_rules
from agent_relay.core.policy import Policy, Rule, Ruling
from agent_relay.ports.callers import RELAY, Caller
from agent_relay.protocol.requests import PermissionRequest
from tests.support.harness import HarnessClient, RelayHarness

CONTROL = {"control": True}
DENY_CURL = Rule(Ruling.DENY, tools=("Bash",), words=("curl",), reason="No network here.")
APPROVE_MAKE = Rule(Ruling.APPROVE, tools=("Bash",), commands=("make",))
MAKE = {"requestId": "p1", "tool": "Bash", "command": "make", "description": "Run make?", "isExact": True}


def cluster(**limits: object) -> RelayHarness:
    return RelayHarness(host="a", **limits)


def look_in(relay: RelayHarness, host: str, caller: Caller | None = None) -> HarnessClient:
    """A person's command at that host, or, with a caller, somebody else's."""
    client = relay.open(host="" if host == "a" else host)
    client.connection.process = caller or Caller(host=host)
    client.hello("x", mode="observer")
    client.take("WELCOME")
    return client


def stop(client: HarnessClient, agent: str = "Bob") -> str:
    """Why it is refused; "": it is not."""
    client.say("CONTROL", {"command": "stop", "agent": agent})
    (frame,) = client.take("ERROR", "ACK")
    return "" if frame["type"] == "ACK" else str(frame["payload"]["details"].get("reason") or frame["payload"]["code"])


def test_rules_survive_the_way_to_the_seat() -> None:
    rules = HostRules(frozenset({"b"}), frozenset({("lead", "approve")}), Policy([APPROVE_MAKE], 5_000, [DENY_CURL]))
    found = decode_rules(encode_rules(rules))
    assert (found.control, found.agent_rights) == (rules.control, rules.agent_rights)
    assert (found.policy.rules, found.policy.tightening) == (rules.policy.rules, rules.policy.tightening)
    assert found.policy.timeout_ms == 5_000
    curl = PermissionRequest("p", "May I?", "Bash", command="curl x")
    assert found.policy.judge(curl).reason == "No network here."


@pytest.mark.parametrize("data", [b"", b"\xff", encode_rules(NO_RULES)[:-1], b"\x95\x01\x02\x03\x04\x05"])
def test_what_cannot_be_read_grants_nothing(data: bytes) -> None:
    assert decode_rules(data) is NO_RULES
    assert not NO_RULES.grants("b")


def test_a_person_controls_agents_of_their_own_host_alone() -> None:
    relay = cluster()
    relay.relay.rights.learn("b", HostRules())
    relay.connect("Alice", capabilities=CONTROL)
    relay.connect("Bob", capabilities=CONTROL, host="b")
    assert stop(look_in(relay, "b"), "Bob") == ""
    assert stop(look_in(relay, "a"), "Alice") == ""
    assert stop(look_in(relay, "b"), "Alice") == "host_control"
    assert stop(look_in(relay, "a"), "Bob") == "host_control"
    assert stop(look_in(relay, "c"), "Bob") == "host_control"


def test_a_refusal_says_what_the_owner_of_that_host_has_to_add() -> None:
    relay = cluster()
    relay.connect("Bob", capabilities=CONTROL, host="b")
    person = look_in(relay, "a")
    person.say("CONTROL", {"command": "input", "agent": "Bob", "text": "rm -rf ."})
    error = person.payload("ERROR")
    assert "add a to cluster_control" in error["message"]
    assert error["details"] == {"reason": "host_control", "host": "b", "setting": "cluster_control", "value": "a"}


@pytest.mark.parametrize("listed", ["c", "*"])
def test_a_host_that_is_listed_may(listed: str) -> None:
    relay = cluster(cluster_control=frozenset({listed}))
    relay.relay.rights.learn("b", HostRules(frozenset({listed})))
    relay.connect("Alice", capabilities=CONTROL)
    relay.connect("Bob", capabilities=CONTROL, host="b")
    assert stop(look_in(relay, "c"), "Bob") == ""
    assert stop(look_in(relay, "c"), "Alice") == ""
    assert stop(look_in(relay, "d"), "Bob") == ("" if listed == "*" else "host_control")


def test_the_rules_of_a_host_that_is_gone_hold_no_more() -> None:
    relay = cluster()
    relay.relay.rights.learn("b", HostRules(frozenset({"*"})))
    relay.connect("Bob", capabilities=CONTROL, host="b")
    relay.relay.rights.learn("b", None)
    assert stop(look_in(relay, "c"), "Bob") == "host_control"


def test_no_host_speaks_for_the_seat() -> None:
    relay = cluster()
    relay.relay.rights.learn("a", HostRules(frozenset({"*"})))
    relay.connect("Alice", capabilities=CONTROL)
    assert stop(look_in(relay, "b"), "Alice") == "host_control"


def test_an_agent_needs_the_right_by_both_hosts() -> None:
    granted = frozenset({("lead", "control")})
    for own, there, said in (
        (granted, granted, ""),
        (frozenset(), granted, "inside_agent"),
        (granted, frozenset(), "inside_agent"),
    ):
        relay = cluster()
        relay.relay.rights.learn("b", HostRules(frozenset({"c"}), there))
        relay.relay.rights.learn("c", HostRules(frozenset(), own))
        relay.connect("Bob", capabilities=CONTROL, host="b")
        assert stop(look_in(relay, "c", Caller("Lead", host="c")), "Bob") == said


def test_a_wrapper_of_another_host_is_its_agent_there() -> None:
    relay = cluster(agent_rights=frozenset({("*", "control")}), cluster_control=frozenset({"*"}))
    relay.relay.rights.learn("b", HostRules())
    relay.connect("Alice", capabilities=CONTROL)
    bob = relay.connect("Bob", capabilities=CONTROL, host="b")
    assert stop(bob, "Alice") == "inside_agent"  # its own host grants it nothing


def test_channels_of_agents_elsewhere_are_theirs() -> None:
    relay = cluster()
    relay.connect("Bob", capabilities=CONTROL, host="b")
    person = look_in(relay, "a")
    person.say("CONTROL", {"command": "join", "agent": "Bob", "channel": "#dev"})
    assert person.payload("ERROR")["details"]["reason"] == "host_control"


def test_what_the_relay_does_itself_holds_on_every_host() -> None:
    relay = cluster()
    relay.connect("Bob", capabilities=CONTROL, host="b")
    inside = look_in(relay, "a", RELAY)
    assert stop(inside, "Bob") == ""


def ask(client: HarnessClient) -> list[str]:
    client.say("AGENT_EVENT", {"type": "permission.requested", "fields": MAKE})
    return [frame["payload"]["command"] for frame in client.take("CONTROL")]


def test_an_agent_is_judged_by_the_rules_of_its_own_host() -> None:
    relay = RelayHarness(host="a", policy=Policy([APPROVE_MAKE]))
    relay.relay.rights.learn("b", HostRules(policy=Policy([Rule(Ruling.DENY, commands=("make",))])))
    assert ask(relay.connect("Alice", capabilities=CONTROL)) == ["approve"]
    assert ask(relay.connect("Bob", capabilities=CONTROL, host="b")) == ["deny"]
    assert ask(relay.connect("Carol", capabilities=CONTROL, host="c")) == []  # nothing is known of its rules: a person


def test_agents_are_listed_with_their_host_also_when_they_are_gone() -> None:
    relay = cluster()
    relay.connect("Alice")
    relay.connect("Bob", host="b").drop()
    relay.restart()
    assert {agent.name: agent.host for agent in relay.relay.queries.agents()} == {"Alice": "a", "Bob": "b"}
    assert [agent.host for agent in alone()] == [""]


def alone() -> list[object]:
    relay = RelayHarness()
    relay.connect("Alice")
    return list(relay.relay.queries.agents())
