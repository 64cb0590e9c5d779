"""Wire contract, section 6: the rate limit of a connection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient, encode

from .relay import Relay, bodies, calm_flags, pass_time


def burst(client: RawClient, to: str, count: int) -> tuple[list[str], list[dict[str, int]]]:
    """Sends so many at once: the bodies that were stored, and the refusals."""
    messages = {str(number): client.message(to, str(number)) for number in range(count)}
    client.write(b"".join(map(encode, messages.values())))
    stored, refused = [], []
    for body, message in messages.items():
        answer = client.answer(message["id"])
        if answer["type"] == "ACK":
            stored.append(body)
        else:
            assert answer["payload"]["code"] == "RATE_LIMITED"
            refused.append(answer["payload"])
    return stored, refused


def test_there_is_no_limit_by_default(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob", auto_ack=True)
    stored, _ = burst(alice, bob.name, 900)
    assert len(stored) == 900
    bob.deliveries(900)


@pytest.fixture(scope="module")
def limited_daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(*calm_flags("--rate-limit", "10")) as daemon:
        yield daemon


@pytest.fixture
def limited(limited_daemon: DaemonProcess) -> Iterator[Relay]:
    relay = Relay(limited_daemon)
    yield relay
    relay.close()


def test_messages_over_the_limit_are_refused_and_may_come_later(limited: Relay) -> None:
    alice, bob, carol = limited.join("Alice"), limited.join("Bob", auto_ack=True), limited.join("Carol")
    stored, refused = burst(alice, bob.name, 100)
    assert 1 <= len(stored) <= 40
    assert refused
    for refusal in refused:
        assert refusal["retryable"] is True
        assert refusal["retry_after_ms"] >= 1
    assert carol.send_stored(bob.name, "another connection")["recipients"] == 1
    assert sorted(bodies(bob.deliveries(len(stored) + 1))) == sorted([*stored, "another connection"])
    pass_time(max(refusal["retry_after_ms"] for refusal in refused) / 1000 + 0.05)
    alice.send_stored(bob.name, "patience")
    assert bodies(bob.deliveries(1)) == ["patience"]


def test_a_refused_message_may_come_again_under_its_id(limited: Relay) -> None:
    alice, bob = limited.join("Alice"), limited.join("Bob", auto_ack=True)
    messages = [alice.message(bob.name, str(number)) for number in range(100)]
    alice.write(b"".join(map(encode, messages)))
    answers = [alice.answer(message["id"]) for message in messages]
    message, refusal = next((m, a["payload"]) for m, a in zip(messages, answers, strict=True) if a["type"] == "NACK")
    pass_time(refusal["retry_after_ms"] / 1000 + 0.1)
    alice.write_frame(message)
    assert not alice.stored(message["id"]).get("duplicate")


def test_acknowledgements_and_pings_are_not_counted(limited: Relay) -> None:
    client = limited.join()
    for _ in range(60):
        client.flush()
    client.send_stored(client.name, "x")
    client.deliveries(1)
