"""What agents may do beside sending messages, and under which names they may come."""

from __future__ import annotations

import pytest

from agent_relay.core.rights import RIGHTS, parse_rights
from agent_relay.ports.callers import OWNER, Caller
from tests.support.harness import OWNER_TOKEN, HarnessClient, RelayHarness

CONTROL = {"control": True}
ASKS = {"type": "permission.requested", "fields": {"requestId": "p1", "description": "May I?"}}
COMMANDS = [
    "approve", "deny", "answer", "input", "pause", "resume", "interrupt", "stop", "retry_dead_letter", "dismiss_dead_letter",
]  # fmt: skip
INSIDE = Caller("Bob")
LOST = Caller(is_lost=True)


def look_in(relay: RelayHarness, caller: Caller) -> HarnessClient:
    client = relay.open()
    client.connection.process = caller
    client.hello("x", mode="observer")
    client.take("WELCOME")
    return client


def reason(client: HarnessClient) -> str:
    return str(client.payload("ERROR")["details"]["reason"])


def test_rights_are_read() -> None:
    assert parse_rights("none") == frozenset()
    assert parse_rights("Lead:approve *:control") == {("lead", "approve"), ("*", "control")}
    assert {right for _, right in parse_rights(",".join(f"A:{right}" for right in RIGHTS))} == set(RIGHTS)
    for wrong in ("Lead", "Lead:everything", ":approve", "Lead:"):
        with pytest.raises(ValueError, match="spawn-any"):
            parse_rights(wrong)


@pytest.mark.parametrize(("caller", "said"), [(INSIDE, "inside_agent"), (LOST, "caller_lost")])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_comes_from_inside_is_refused(command: str, caller: Caller, said: str) -> None:
    relay = RelayHarness()
    alice = relay.connect("Alice", capabilities=CONTROL)
    alice.say("AGENT_EVENT", ASKS)
    inside = look_in(relay, caller)
    inside.say("CONTROL", {"command": command, "agent": "Alice", "id": "p1", "text": "y"})
    assert reason(inside) == said
    assert alice.take("CONTROL") == []


def test_a_wrapper_is_the_agent_it_speaks_for() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice", capabilities=CONTROL), relay.connect("Bob", capabilities=CONTROL)
    alice.say("AGENT_EVENT", ASKS)
    bob.say("CONTROL", {"command": "approve", "agent": "Alice", "id": "p1"})
    assert reason(bob) == "inside_agent"
    bob.say("CONTROL", {"command": "stop", "agent": "Alice"})
    assert reason(bob) == "inside_agent"
    assert alice.take("CONTROL") == []


def test_a_granted_right_is_used_under_the_agents_name() -> None:
    relay = RelayHarness(agent_rights=frozenset({("bob", "approve")}))
    alice = relay.connect("Alice", capabilities=CONTROL)
    alice.say("AGENT_EVENT", ASKS)
    inside = look_in(relay, INSIDE)
    inside.say("CONTROL", {"command": "approve", "agent": "Alice", "id": "p1"})
    assert alice.payload("CONTROL")["by"] == "agent:Bob via cli"
    inside.say("CONTROL", {"command": "stop", "agent": "Alice"})
    assert reason(inside) == "inside_agent"


def test_nobody_answers_for_itself_whatever_was_granted() -> None:
    relay = RelayHarness(agent_rights=frozenset({("*", "approve")}))
    bob = relay.connect("Bob", capabilities=CONTROL)
    bob.say("AGENT_EVENT", ASKS)
    inside = look_in(relay, INSIDE)
    inside.say("CONTROL", {"command": "approve", "agent": "bob", "id": "p1"})
    assert reason(inside) == "own_request"


# --- names ----------------------------------------------------------------------------------------------------------------


def try_name(
    relay: RelayHarness, name: str, caller: Caller = OWNER, *, token: str | None = None, owner_token: str | None = None
) -> str:  # fmt: skip
    client = relay.open()
    client.connection.process = caller
    client.hello(name, token=token, owner_token=owner_token)
    if client.take("WELCOME"):
        client.drop()
        return "welcome"
    return reason(client)


def test_a_shell_in_an_agents_terminal_has_no_other_name() -> None:
    relay = RelayHarness()
    for owner_token in (None, OWNER_TOKEN):
        assert try_name(relay, "Anybody", INSIDE, owner_token=owner_token) == "inside_agent"
    assert try_name(relay, "Anybody", LOST) == "caller_lost"
    assert try_name(RelayHarness(agent_rights=frozenset({("bob", "names")})), "Anybody", INSIDE) == "welcome"


def test_a_wrapped_name_is_for_its_token_or_its_owner() -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob", capabilities=CONTROL)
    bob.drop()
    alice = relay.connect("Alice")
    alice.send("Bob", "for Bob alone")
    assert try_name(relay, "bob") == "name_owned"
    assert try_name(relay, "Bob", owner_token="guessed") == "name_owned"
    assert try_name(relay, "Bob", token="guessed") == "name_owned"
    relay.restart()
    assert try_name(relay, "Bob") == "name_owned"
    assert try_name(relay, "Bob", token=bob.welcome["resume_token"]) == "welcome"
    assert try_name(relay, "Bob", owner_token=OWNER_TOKEN) == "welcome"  # a person reads its mail, and it stays its own
    assert try_name(relay, "Bob") == "name_owned"


def test_a_granted_name_is_not_another_agents() -> None:
    relay = RelayHarness(agent_rights=frozenset({("*", "names")}))
    relay.connect("Alice", capabilities=CONTROL).drop()
    assert try_name(relay, "Alice", INSIDE, owner_token=OWNER_TOKEN) == "name_owned"


def test_a_name_that_no_wrapper_had_is_for_whoever_comes() -> None:
    relay = RelayHarness()
    relay.connect("Script").drop()
    assert try_name(relay, "Script") == "welcome"


def test_a_session_goes_on_wherever_its_process_is_now() -> None:
    """A wrapper whose parent has died may be found below another agent's."""
    relay = RelayHarness()
    bob = relay.connect("Bob", capabilities=CONTROL)
    bob.drop()
    assert try_name(relay, "Bob", Caller("Alice"), token=bob.welcome["resume_token"]) == "welcome"


def test_only_a_wrapper_says_which_program_its_agent_is() -> None:
    relay = RelayHarness()
    bob, script = relay.connect("Bob", capabilities=CONTROL), relay.connect("Script")
    for client in (bob, script):
        client.say("AGENT_EVENT", {"type": "agent.process", "fields": {"pid": 7}})
    assert bob.connection.programs == [("Bob", 7)]
    assert script.connection.programs == []
    assert script.payload("ERROR")["code"] == "PERMISSION_DENIED"
