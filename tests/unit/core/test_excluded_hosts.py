"""Hosts that the cluster has excluded, over restarts too."""

from __future__ import annotations

import pytest

from agent_relay.core.excluded_hosts import DOCUMENT, read_excluded
from agent_relay.ports.callers import Caller
from tests.support.harness import HarnessClient, RelayHarness


def look_in(relay: RelayHarness, host: str = "") -> HarnessClient:
    client = relay.open(host=host)
    client.hello("x", mode="observer")
    client.take("WELCOME")
    return client


def order(client: HarnessClient, command: str, host: str | None) -> str:
    """Why it is refused; "": it is not."""
    client.say("CONTROL", {"command": command, "host": host})
    (frame,) = client.take("ERROR", "ACK")
    return "" if frame["type"] == "ACK" else str(frame["payload"]["message"])


def test_a_host_is_excluded_for_good_until_it_is_included() -> None:
    relay = RelayHarness(host="a")
    assert order(look_in(relay), "exclude_host", "b") == ""
    assert order(look_in(relay), "exclude_host", "b") == ""  # said again
    assert relay.relay.excluded.hosts == {"b"}
    relay.restart()
    assert relay.relay.excluded.hosts == {"b"}
    assert "is not excluded" in order(look_in(relay), "include_host", "c")
    assert order(look_in(relay), "include_host", "b") == ""
    assert relay.relay.excluded.hosts == frozenset()


def test_nobody_is_told_before_it_is_durable() -> None:
    relay = RelayHarness(host="a")
    person = look_in(relay)
    relay.store.hold()
    person.say("CONTROL", {"command": "exclude_host", "host": "b"})
    assert person.take("ACK", "ERROR") == []
    assert relay.relay.excluded.hosts == frozenset()
    relay.store.release()
    relay.tick()
    assert len(person.take("ACK")) == 1


def test_the_seat_itself_cannot_be_excluded() -> None:
    relay = RelayHarness(host="a")
    assert "has the seat now" in order(look_in(relay), "exclude_host", "a")


@pytest.mark.parametrize("host", [None, "", "B", "a.b", ">", "x" * 33])
def test_only_hosts_can_be(host: str | None) -> None:
    assert "not the name of a host" in order(look_in(RelayHarness(host="a")), "exclude_host", host)


def test_people_of_other_hosts_and_agents_may_not() -> None:
    relay = RelayHarness(host="a")
    assert "cluster_control" in order(look_in(relay, "c"), "exclude_host", "b")
    inside = look_in(relay)
    inside.connection.process = Caller("Bob")
    assert "inside Bob" in order(inside, "exclude_host", "b")
    allowed = RelayHarness(host="a", cluster_control=frozenset({"c"}))
    assert order(look_in(allowed, "c"), "exclude_host", "b") == ""


def test_a_daemon_alone_has_nobody_to_exclude() -> None:
    assert "not part of a cluster" in order(look_in(RelayHarness()), "exclude_host", "b")


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff"])
def test_a_document_that_cannot_be_read_excludes_nobody(content: bytes) -> None:
    assert read_excluded({DOCUMENT: content}) == frozenset()
