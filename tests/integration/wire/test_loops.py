"""Agents that only answer each other, over a real daemon: slowed, then held, told about it, and let go by new input."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient

from .relay import Relay, calm_flags

GUARDED = {"control": True}


@pytest.fixture(scope="module")
def guarding_daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(*calm_flags("--loop-slow-after", "6", "--loop-hold-after", "7")) as daemon:
        yield daemon


@pytest.fixture
def guarding(guarding_daemon: DaemonProcess) -> Iterator[Relay]:
    relay = Relay(guarding_daemon)
    yield relay
    relay.close()


def a_ring(relay: Relay) -> list[RawClient]:
    ring = [relay.join(name, capabilities=GUARDED) for name in ("Alice", "Bob", "Carol")]
    ring[0].say("AGENT_EVENT", {"type": "agent.input", "fields": {}})
    return ring


def pass_on(ring: list[RawClient], first: int, last: int) -> None:
    """Hops `first` to `last`, each an answer to the one before."""
    for hop in range(first, last + 1):
        speaker, listener = ring[(hop - 1) % len(ring)], ring[hop % len(ring)]
        speaker.send_stored(listener.name, f"hop {hop}")
        listener.deliveries(1)
        listener.flush()


def shown(relay: Relay, client: RawClient) -> object:
    found = relay.agent(client.name)
    assert found is not None
    return found["loop"]


def test_a_triangle_is_slowed_then_held_and_goes_on_with_new_input(guarding: Relay) -> None:
    ring = a_ring(guarding)
    names = sorted(client.name for client in ring)
    pass_on(ring, 1, 5)
    before = time.monotonic()
    pass_on(ring, 6, 6)
    assert time.monotonic() - before >= 1.9
    for client in ring:
        fields = client.expect("AGENT_EVENT")["payload"]["fields"]
        assert (fields["stage"], fields["hops"], fields["agents"]) == ("slowed", 6, names)

    receipt = ring[0].send_stored(ring[1].name, "hop 7")
    for client in ring:
        fields = client.expect("AGENT_EVENT")["payload"]["fields"]
        assert (fields["stage"], fields["hops"], fields["agents"]) == ("held", 7, names)
    ring[1].expect_none("DELIVER")
    assert shown(guarding, ring[1]) == {"stage": "held", "hops": 7, "agents": names}
    found = guarding.observer().request("HISTORY", {"view": "message", "id": receipt["message_id"]})
    assert [step["event"] for step in found["trail"]] == ["waits"]
    assert found["trail"][0]["hold"] == "loop_guard"
    assert found["messages"][0]["recipients"][0]["status"] == "queued"

    guarding.join("Person").send_stored(ring[2].name, "news for another of them")
    assert ring[1].deliveries(1)[0]["payload"]["body"] == "hop 7"
    assert ring[2].deliveries(1)[0]["payload"]["body"] == "news for another of them"
    assert [shown(guarding, client) for client in ring] == [None, None, None]


def test_resume_lets_it_go_on(guarding: Relay) -> None:
    ring = a_ring(guarding)
    pass_on(ring, 1, 6)
    ring[0].send_stored(ring[1].name, "hop 7")
    ring[1].expect_none("DELIVER")
    answer = guarding.observer().request("CONTROL", {"command": "resume", "agent": ring[0].name})
    assert answer["stage"] == "controlled"
    assert ring[1].deliveries(1)[0]["payload"]["body"] == "hop 7"


def test_other_clients_are_never_held(guarding: Relay) -> None:
    pass_on([guarding.join("Alice"), guarding.join("Bob")], 1, 20)
    pass_on([guarding.join("Alice"), guarding.join("Bob", capabilities=GUARDED)], 1, 20)


def test_after_a_restart_of_the_daemon_the_count_begins_anew(guarding: Relay) -> None:
    ring = a_ring(guarding)
    pass_on(ring, 1, 6)
    ring[0].send_stored(ring[1].name, "hop 7")
    guarding.daemon.kill()
    guarding.daemon.start()
    again = guarding.rejoin(ring[1].name, token=ring[1].token, capabilities=GUARDED)
    assert again.deliveries(1)[0]["payload"]["body"] == "hop 7"
