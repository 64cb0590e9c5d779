"""Mail that is owed: counted wherever it is, and given up once, for good."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_relay.core.agents import Agent
from agent_relay.core.owed_mail import OwedMail
from tests.support.harness import HarnessClient, RelayHarness, connect_pair


def owed(relay: RelayHarness) -> OwedMail:
    return relay.relay.ledger.owed


def agent(relay: RelayHarness, name: str) -> Agent:
    found = relay.relay.registry.find(name)
    assert found is not None
    return found


def counts(relay: RelayHarness, sender: str, recipient: str) -> tuple[int, int]:
    told: list[int] = []
    relay.turn(lambda: owed(relay).count_from(agent(relay, sender), told.append))
    return told[0], owed(relay).count_to(agent(relay, recipient))


def send_three(relay: RelayHarness, alice: HarnessClient, where: str, bob: HarnessClient) -> None:
    """On the wire, in a queue, or left in the store by a daemon that was killed."""
    if where != "wire":
        bob.drop()
    for number in range(3):
        alice.send("Bob", str(number))
    if where == "store":
        relay.restart()


@pytest.mark.parametrize("where", ["wire", "queue", "store"])
def test_it_is_counted_wherever_it_is(where: str) -> None:
    relay, alice, bob = connect_pair()
    send_three(relay, alice, where, bob)
    assert counts(relay, "Alice", "Bob") == (3, 3)
    assert counts(relay, "Bob", "Alice") == (0, 0)


@pytest.mark.parametrize("where", ["wire", "queue", "store"])
def test_what_is_abandoned_is_told_and_never_comes(where: str) -> None:
    relay, alice, bob = connect_pair()
    send_three(relay, alice, where, bob)
    told: list[tuple[int, int]] = []
    relay.turn(lambda: owed(relay).abandon(agent(relay, "Bob"), lambda *both: told.append(both)))
    relay.advance(1_000)
    assert told == [(0, 3)]
    assert counts(relay, "Alice", "Bob") == (0, 0)
    relay.restart()
    assert relay.connect("Bob", token=bob.token).bodies() == []


@pytest.mark.parametrize(("give_up", "letters"), [(OwedMail.drop, 0), (OwedMail.bury, 3)])
def test_what_is_dropped_is_no_dead_letter_and_what_is_buried_is_one(
    give_up: Callable[[OwedMail, Agent], None], letters: int
) -> None:
    relay, alice, bob = connect_pair()
    send_three(relay, alice, "queue", bob)
    relay.turn(lambda: give_up(owed(relay), agent(relay, "Bob")))
    relay.advance(1_000)
    assert counts(relay, "Alice", "Bob") == (0, 0)
    assert relay.relay.journal.dead_letters == letters
