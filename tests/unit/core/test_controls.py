"""Commands to agents that the relay runs."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.ports.connection import FULL_BYTES
from tests.support.harness import HarnessClient, RelayHarness

CONTROL = {"control": True}


@pytest.fixture
def bob(relay: RelayHarness) -> HarnessClient:
    return relay.connect("Bob", capabilities=CONTROL)


def refusal(client: HarnessClient, **payload: Any) -> dict[str, Any]:
    request = client.say("CONTROL", payload)
    error = client.payload("ERROR")
    assert (error["reply_to"], error["fatal"]) == (request, False)
    return error


@pytest.mark.parametrize("command", ["pause", "resume", "interrupt", "stop"])
def test_a_command_is_passed_on_and_answered(watcher: HarnessClient, bob: HarnessClient, command: str) -> None:
    request = watcher.say("CONTROL", {"command": command, "agent": "bob", "text": "not for this one"})
    assert watcher.payload("ACK") == {"ack_id": request, "stage": "controlled", "by": "Bob"}
    assert bob.payload("CONTROL") == {"command": command} | ({"by": "human"} if command == "pause" else {})


def test_a_pause_may_be_for_a_time(watcher: HarnessClient, bob: HarnessClient) -> None:
    watcher.say("CONTROL", {"command": "pause", "agent": "bob", "for_ms": 30_000})
    assert bob.payload("CONTROL") == {"command": "pause", "for_ms": 30_000}
    watcher.say("CONTROL", {"command": "resume", "agent": "bob", "for_ms": 30_000})
    assert bob.payload("CONTROL") == {"command": "resume"}


def test_text_is_passed_on_as_it_is(relay: RelayHarness, bob: HarnessClient) -> None:
    alice = relay.connect("Alice")
    alice.say("CONTROL", {"command": "input", "agent": "Bob", "text": "yes\n"})
    assert bob.payload("CONTROL") == {"command": "input", "text": "yes\n"}
    assert alice.payload("ACK")["stage"] == "controlled"


@pytest.mark.parametrize(
    ("payload", "field"), [({"command": "pause"}, "payload.agent"), ({"command": "input", "agent": "Bob"}, "payload.text")]
)
def test_what_is_missing_is_named(watcher: HarnessClient, bob: HarnessClient, payload: dict[str, Any], field: str) -> None:
    error = refusal(watcher, **payload)
    assert (error["code"], error["details"]) == ("INVALID_FORMAT", {"field": field})
    assert bob.take() == []


def test_nobody_of_that_name(watcher: HarnessClient, bob: HarnessClient) -> None:
    error = refusal(watcher, command="pause", agent="Bop")
    assert (error["code"], error["details"]["did_you_mean"]) == ("AGENT_NOT_FOUND", ["Bob"])
    error = refusal(watcher, command="pause", agent="#dev")
    assert (error["code"], error["details"]["field"]) == ("INVALID_TARGET", "payload.agent")


def test_an_agent_that_is_away(watcher: HarnessClient, bob: HarnessClient) -> None:
    bob.drop()
    assert refusal(watcher, command="pause", agent="Bob")["code"] == "AGENT_OFFLINE"


@pytest.mark.parametrize(
    ("command", "word"), [("pause", "paused"), ("stop", "stopped"), ("interrupt", "interrupted"), ("input", "typed to")]
)
def test_an_agent_the_relay_does_not_run(relay: RelayHarness, watcher: HarnessClient, command: str, word: str) -> None:
    carol = relay.connect("Carol")
    error = refusal(watcher, command=command, agent="Carol", text="x")
    assert (error["code"], error["details"]) == ("FEATURE_UNSUPPORTED", {"name": "Carol", "command": command})
    assert error["message"] == f"Carol is not run by the relay, so it cannot be {word}."
    assert carol.take() == []


def test_a_command_there_is_not(watcher: HarnessClient, bob: HarnessClient) -> None:
    error = refusal(watcher, command="d" * 200, agent="Bob")
    assert (error["code"], error["details"]) == ("FEATURE_UNSUPPORTED", {"command": "d" * 128})


def test_the_capability_outlives_a_restart(relay: RelayHarness, bob: HarnessClient) -> None:
    token = bob.token
    relay.restart()
    watcher, again = relay.connect("Watcher", mode="observer"), relay.open()
    again.resume("Bob", token)
    again.take()
    watcher.say("CONTROL", {"command": "pause", "agent": "Bob"})
    assert again.payload("CONTROL") == {"command": "pause", "by": "human"}


def test_one_that_does_not_read_is_not_given_more(watcher: HarnessClient, bob: HarnessClient) -> None:
    bob.stall(FULL_BYTES + 1)
    error = refusal(watcher, command="pause", agent="Bob")
    assert (error["code"], error["retry_after_ms"]) == ("AGENT_BUSY", 1_000)


def test_to_go_on_and_to_be_typed_to_is_new_input(relay: RelayHarness, watcher: HarnessClient, bob: HarnessClient) -> None:
    heard: list[str] = []
    relay.relay.on_input.append(lambda agent: heard.append(agent.name))
    for command in ("pause", "interrupt", "resume", "input"):
        watcher.say("CONTROL", {"command": command, "agent": "Bob", "text": "x"})
        heard.append(command)
    assert heard == ["pause", "interrupt", "Bob", "resume", "Bob", "input"]


def test_commands_count_towards_the_rate_limit() -> None:
    relay = RelayHarness(rate_limit=2)
    relay.connect("Bob", capabilities=CONTROL)
    watcher = relay.connect("Watcher", mode="observer")
    for _ in range(2):
        watcher.say("CONTROL", {"command": "pause", "agent": "Bob"})
    assert len(watcher.take("ACK")) == 2
    assert refusal(watcher, command="pause", agent="Bob")["code"] == "RATE_LIMITED"
