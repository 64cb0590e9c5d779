"""The name of the daemon's user: theirs alone, however somebody comes."""

from __future__ import annotations

import pytest

from agent_relay.core.spawned.checks import check_wish
from agent_relay.ports.callers import Caller
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.payloads import SpawnPayload
from tests.support.harness import HarnessClient, RelayHarness


@pytest.fixture
def relay() -> RelayHarness:
    return RelayHarness(owner="Anna")


def refusal(client: HarnessClient) -> str:
    return str(client.payload("ERROR")["code"])


@pytest.mark.parametrize("name", ["Anna", "anna", "Anna-2", "ANNA-9"])
def test_nobody_without_the_owners_token_has_it(relay: RelayHarness, name: str) -> None:
    stranger = relay.open()
    stranger.hello(name, owner_token=None)
    assert refusal(stranger) == "INVALID_TARGET"
    relay.connect(name)  # with the token


def test_names_that_only_begin_so_are_free(relay: RelayHarness) -> None:
    for name in ("Anna-10", "Anna-x", "Annas"):
        relay.connect(name, owner_token=None)


def test_no_agent_is_wrapped_or_spawned_or_registered_under_it(relay: RelayHarness) -> None:
    wrapper = relay.open()
    wrapper.hello("Anna", capabilities={"control": True})
    assert refusal(wrapper) == "INVALID_TARGET"
    with pytest.raises(RelayError, match="the name of the relay's owner"):
        check_wish(SpawnPayload("anna", "claude"), relay.limits)
    assert not relay.relay.names.claim("anna")
    assert relay.relay.names.claim("other")


def test_not_from_inside_an_agents_terminal_even_with_the_token(relay: RelayHarness) -> None:
    inside = relay.open()
    inside.connection.caller = lambda: Caller("Bob")  # type: ignore[method-assign]
    inside.hello("Anna")
    assert refusal(inside) == "PERMISSION_DENIED"


def test_an_agent_that_had_the_name_before_keeps_it() -> None:
    before = RelayHarness()
    bob = before.connect("Anna", capabilities={"control": True})
    bob.drop()
    after = RelayHarness(before.store, owner="Anna")
    person = after.open()
    person.hello("Anna")
    assert person.payload("ERROR")["details"]["reason"] == "name_in_use"
    after.connect("Anna-2")


def test_what_stands_in_for_the_owner_gives_way_to_the_owner_alone(relay: RelayHarness) -> None:
    page = relay.connect("Anna")
    page.connection.yields = True  # type: ignore[attr-defined]
    command = relay.connect("Anna")
    assert page.payload("BYE") == {"reason": "superseded"}
    second = relay.open()
    second.hello("Anna")
    assert second.payload("ERROR")["details"]["reason"] == "name_in_use"
    command.drop()
    page = relay.connect("Anna")
    page.connection.yields = False  # type: ignore[attr-defined]
    third = relay.open()
    third.hello("Anna")
    assert third.payload("ERROR")["details"]["reason"] == "name_in_use"
