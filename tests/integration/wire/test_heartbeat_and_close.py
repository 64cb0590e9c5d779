"""Wire contract, section 7: heartbeats, BYE, and how connections end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import DEADLINE_SECONDS, encode

from .conftest import StartRelay
from .relay import Relay, bodies, calm_flags

HEARTBEAT_SECONDS = 0.3


@pytest.fixture(scope="module")
def beating_daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(*calm_flags("--heartbeat-ms", str(int(HEARTBEAT_SECONDS * 1000)))) as daemon:
        yield daemon


@pytest.fixture
def beating(beating_daemon: DaemonProcess) -> Iterator[Relay]:
    relay = Relay(beating_daemon)
    yield relay
    relay.close()


# --- heartbeats ----------------------------------------------------------------------------------------------------


def test_a_silent_client_is_pinged_and_lives_while_it_answers(beating: Relay) -> None:
    client = beating.join()
    client.auto_pong = False
    nonces = []
    for _ in range(4):  # longer than twice the heartbeat
        ping = client.expect("PING")
        nonces.append(ping["payload"]["nonce"])
        client.say("PONG", {"nonce": nonces[-1]})
    assert None not in nonces
    client.flush()


def test_a_client_that_says_nothing_is_closed(beating: Relay) -> None:
    client = beating.join()
    client.auto_pong = False
    since = time.monotonic()
    client.wait_closed()
    assert time.monotonic() - since >= 2 * HEARTBEAT_SECONDS - 0.1
    assert any(frame["type"] == "PING" for frame in client.unclaimed)
    beating.wait_offline(client.name)


def test_messages_for_a_client_that_was_closed_so_wait_for_it(beating: Relay) -> None:
    bob = beating.join("Bob")
    bob.auto_pong = False
    beating.join("Alice").send_stored(bob.name, "unacknowledged")
    bob.wait_closed()
    beating.wait_offline(bob.name)
    assert beating.join("Carol").send_stored(bob.name, "later")["queued"] == 1
    again = beating.rejoin(bob.name, token=bob.token)
    assert bodies(again.deliveries(2)) == ["unacknowledged", "later"]


def test_any_frame_counts_as_life(beating: Relay) -> None:
    client = beating.join()
    client.auto_pong = False
    until = time.monotonic() + 4 * HEARTBEAT_SECONDS
    while time.monotonic() < until:
        client.say("ACK", {"ack_id": "d_none"})
        client.listen(0.05)
        assert not client.ended


def test_a_client_that_talks_is_not_pinged(start_relay: StartRelay) -> None:
    relay = start_relay("--heartbeat-ms", "1000")
    client = relay.join()
    client.auto_pong = False
    until = time.monotonic() + 1.3
    while time.monotonic() < until:
        client.say("ACK", {"ack_id": "d_none"})
        assert client.listen(0.05, "PING") == []


@pytest.mark.parametrize("nonce", ["text", 17, None, {"a": [1]}, "ü\u0000"])
def test_a_ping_is_answered_with_its_nonce(relay: Relay, nonce: object) -> None:
    client = relay.join()
    client.say("PING", {"nonce": nonce})
    assert client.expect("PONG")["payload"]["nonce"] == nonce


# --- going away ----------------------------------------------------------------------------------------------------


def test_bye_ends_the_connection_after_what_was_said_before(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    message = alice.message(bob.name, "last words")
    alice.write(encode(message) + encode({**message, "type": "BYE", "id": "bye", "payload": {"reason": "done"}}))
    alice.wait_closed()
    assert bodies(bob.deliveries(1)) == ["last words"]
    relay.wait_offline(alice.name)
    assert bob.send_stored(alice.name, "for later")["queued"] == 1


def test_nothing_after_bye_is_heard(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    message = alice.message(bob.name, "after the end")
    alice.write(encode({**message, "type": "BYE", "id": "bye", "payload": {}}) + encode(message))
    alice.wait_closed()
    relay.join().send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]


def test_a_message_that_arrived_whole_counts_although_its_sender_is_gone(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    alice.send(bob.name, "sent and gone")
    alice.close()
    assert bodies(bob.deliveries(1)) == ["sent and gone"]


def test_a_client_that_breaks_off_in_the_middle_of_a_frame_is_forgotten(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    alice.write(encode(alice.message(bob.name, "half"))[:-5])
    relay.cut(alice)
    relay.join().send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]


# --- the daemon goes -----------------------------------------------------------------------------------------------


def test_a_stopping_daemon_says_bye_to_everyone(start_relay: StartRelay) -> None:
    relay = start_relay()
    clients = [relay.join() for _ in range(5)]
    greeting = relay.connect()  # has not even said HELLO
    started_at = time.monotonic()
    assert relay.daemon.terminate() == 0
    assert time.monotonic() - started_at < DEADLINE_SECONDS
    for client in clients:
        assert client.expect("BYE")["payload"]["reason"] == "shutdown"
        client.wait_closed()
    greeting.wait_closed()
    assert not os.path.exists(relay.daemon.socket)


def test_what_a_stopping_daemon_accepted_is_kept(start_relay: StartRelay) -> None:
    relay = start_relay()
    alice, away = relay.join("Alice"), relay.offline("Away")
    messages = [alice.message(away, str(number)) for number in range(200)]
    alice.write(b"".join(map(encode, messages)))
    alice.expect("ACK")
    assert relay.daemon.terminate() == 0
    alice.wait_closed()
    acked = 1 + len(alice.listen(0, "ACK"))
    relay.daemon.start()
    found = relay.rejoin(away).deliveries(acked)
    assert bodies(found) == [str(number) for number in range(acked)]


def test_a_reader_that_does_not_read_cannot_keep_the_daemon_from_stopping(start_relay: StartRelay) -> None:
    relay = start_relay()
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for _ in range(12):
        alice.send_stored(bob.name, "x" * 500_000)
    assert relay.daemon.terminate() == 0  # drains for at most five seconds
    assert not relay.daemon.running
