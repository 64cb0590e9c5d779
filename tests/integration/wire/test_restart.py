"""Wire contract, sections 4 and 5: what survives the death of the daemon (kill -9)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient, encode

from .conftest import StartRelay
from .relay import Relay, bodies, calm_flags, pass_time, seqs


@pytest.fixture(scope="module")
def mortal_daemon() -> Iterator[DaemonProcess]:
    """One state directory for all these tests: whatever they leave behind is there at every start as well."""
    with DaemonProcess(*calm_flags()) as daemon:
        yield daemon


@pytest.fixture
def relay(mortal_daemon: DaemonProcess) -> Iterator[Relay]:
    if not mortal_daemon.running:  # the test before failed while it was dead
        mortal_daemon.start()
    relay = Relay(mortal_daemon)
    yield relay
    relay.close()


def send_until_killed(relay: Relay, sender: RawClient, to: str, count: int, acks: int) -> tuple[list[str], list[str]]:
    """Pipelines so many, kills the daemon after the first few ACKs: (all ids, the acknowledged ones), in order."""
    messages = [sender.message(to, str(number)) for number in range(count)]
    sender.write(b"".join(map(encode, messages)))
    acked = [sender.expect("ACK")["payload"]["ack_id"] for _ in range(acks)]
    relay.daemon.kill()
    sender.wait_closed()
    acked += [frame["payload"]["ack_id"] for frame in sender.listen(0, "ACK")]
    return [message["id"] for message in messages], acked


def test_an_acknowledged_message_survives(relay: Relay) -> None:
    for round_number in range(2):
        sender, away = relay.join("Sender"), relay.offline(f"Away{round_number}")
        ids, acked = send_until_killed(relay, sender, away, 400, 30 + round_number)
        assert acked == ids[: len(acked)]
        relay.daemon.start()
        back = relay.rejoin(away)
        found = back.deliveries(len(acked))
        assert bodies(found) == [str(number) for number in range(len(acked))]
        assert seqs(found) == list(range(1, len(acked) + 1))
        rest = back.listen(0.3, "DELIVER")  # stored, but killed before the ACK left: allowed, in order and once
        assert seqs(rest) == list(range(len(acked) + 1, len(acked) + len(rest) + 1))


def test_a_sender_that_sends_everything_again_doubles_nothing(relay: Relay) -> None:
    sender, away = relay.join("Sender"), relay.offline()
    ids, acked = send_until_killed(relay, sender, away, 300, 50)
    relay.daemon.start()
    again = relay.rejoin(sender.name, token=sender.token)
    for number, request in enumerate(ids):
        again.send(away, str(number), id=request)
    answers = {request: again.stored(request) for request in ids}
    assert all(answers[request].get("duplicate") for request in acked)
    found = relay.rejoin(away).deliveries(300)
    assert bodies(found) == [str(number) for number in range(300)]
    assert seqs(found) == list(range(1, 301))


def test_the_answer_to_a_duplicate_is_the_same_after_a_restart(relay: Relay) -> None:
    alice, bob, away = relay.join("Alice"), relay.join("Bob"), relay.offline()
    first = alice.send_stored([bob.name, away], "x", id="before")
    bob.deliveries(1)
    relay.daemon.restart()
    again = relay.rejoin(alice.name)
    second = again.send_stored([bob.name, away], "x", id="before")
    assert second.pop("duplicate") is True
    assert second == first


def test_numbers_go_on_where_they_were(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    alice.send_stored(bob.name, "1")
    alice.send_stored(bob.name, "1 of work", topic="work")
    bob.deliveries(2)
    relay.daemon.restart()
    alice, bob = relay.rejoin(alice.name), relay.rejoin(bob.name)
    bob.listen(0.2, "DELIVER")  # an acknowledgement of the last moment may be lost: it comes again
    alice.send_stored(bob.name, "2")
    alice.send_stored(bob.name, "2 of work", topic="work")
    found = {frame["payload"]["body"]: frame["delivery"]["seq"] for frame in bob.deliveries(2)}
    assert found == {"2": 2, "2 of work": 2}


def test_what_was_on_the_wire_comes_again_as_the_same_delivery(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for number in range(5):
        alice.send_stored(bob.name, str(number))
    first = bob.deliveries(5, ack=False)
    relay.daemon.restart()
    again = relay.rejoin(bob.name, token=bob.token)
    second = again.deliveries(5)
    assert bodies(second) == bodies(first)
    assert seqs(second) == seqs(first)
    assert [f["delivery"]["message_id"] for f in second] == [f["delivery"]["message_id"] for f in first]
    assert [f["id"] for f in second] == [f["id"] for f in first]


def test_an_acknowledgement_is_durable_within_200_ms(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for number in range(6):
        alice.send_stored(bob.name, str(number))
    found = bob.deliveries(6, ack=False)
    for index in (0, 1, 2, 4):
        bob.ack(found[index])
    bob.flush()
    pass_time(0.5)  # more than promised, for a machine that is slow to write
    relay.daemon.restart()
    again = relay.rejoin(bob.name, token=bob.token)
    assert bodies(again.deliveries(2)) == ["3", "5"]
    again.expect_none("DELIVER")


def test_agents_subscriptions_and_channels_survive(relay: Relay) -> None:
    alice, bob = relay.rejoin("Alice"), relay.rejoin("Bob")
    bob.request("SUBSCRIBE", {"topic": "code.*"})
    bob.request("SUBSCRIBE", {"topic": "old.*"})
    bob.request("UNSUBSCRIBE", {"topic": "old.*"})
    bob.request("CHANNEL_JOIN", {"channel": "#dev"})
    alice.request("CHANNEL_JOIN", {"channel": "#dev"})
    alice.request("CHANNEL_LEAVE", {"channel": "#dev"})
    relay.daemon.restart()
    alice = relay.rejoin("ALICE")
    assert alice.send_stored("#dev", "to the channel")["queued"] == 1
    alice.send_stored("bob", "by name")
    bob = relay.rejoin("bob")
    assert alice.send_stored(None, "x", topic="old.news")["recipients"] == 0
    alice.send_stored(None, "to the topic", topic="code.review")
    found = bob.deliveries(3)
    assert sorted(bodies(found)) == ["by name", "to the channel", "to the topic"]
    assert {frame["from"] for frame in found} == {"Alice"}
    assert relay.join("Carol").send_stored("#dev", "who is here?")["recipients"] == 1
    assert alice.unclaimed == []


def test_a_channel_that_only_has_history_survives(relay: Relay) -> None:
    alice, bob = relay.rejoin("Alice"), relay.rejoin("Bob")
    bob.request("CHANNEL_JOIN", {"channel": "#past"})
    alice.send_stored("#past", "x")
    bob.deliveries(1)
    bob.request("CHANNEL_LEAVE", {"channel": "#past"})
    relay.daemon.restart()
    assert relay.rejoin("Alice").send_stored("#past", "anybody?")["recipients"] == 0


def test_time_goes_on_while_the_daemon_is_dead(relay: Relay) -> None:
    alice, away = relay.join("Alice"), relay.offline()
    request = alice.send(away, "short-lived", meta={"ttl_ms": 700})
    stored = alice.stored(request)
    alice.send_stored(away, "long-lived")
    relay.daemon.kill()
    pass_time(0.8)
    relay.daemon.start()
    found = relay.rejoin(away).deliveries(1)  # at once, before the daemon has looked at its clock twice
    alice = relay.rejoin(alice.name, token=alice.token)
    assert bodies(found) == ["long-lived"]
    assert found[0]["delivery"]["prev_seq"] == 0
    assert stored["message_id"] in str(relay.history(view="dead_letters"))
    refusal = alice.refused(request, "DELIVERY_TIMEOUT")
    assert (refusal["message_id"], refusal["to"]) == (stored["message_id"], away)


def test_a_requested_receipt_still_comes_after_a_restart(relay: Relay) -> None:
    alice, away = relay.join("Alice"), relay.offline()
    request = alice.send(away, "x", meta={"requires_ack": True})
    alice.stored(request)
    relay.daemon.restart()
    again = relay.rejoin(alice.name, token=alice.token)
    relay.rejoin(away).deliveries(1)
    assert again.delivered(request)["by"] == away


def test_a_full_queue_is_full_after_a_restart(start_relay: StartRelay) -> None:
    relay = start_relay("--queue-capacity", "5")
    alice, away = relay.join("Alice"), relay.offline()
    for _ in range(5):
        alice.send_stored(away, "x")
    relay.daemon.restart()
    again = relay.rejoin(alice.name)
    again.refused(again.send(away, "too many"), "QUEUE_FULL")


def test_the_daemon_dies_again_and_again_and_nothing_is_lost_or_out_of_order(relay: Relay) -> None:
    """Both sides reconnect after each death and go on; the recipient acknowledges what it sees."""
    sender, reader = relay.rejoin("Sender"), relay.rejoin("Reader")
    seen: list[int] = []
    pending = [(str(number), f"id-{number}") for number in range(600)]
    for death in range(3):
        sender.write(b"".join(encode(sender.message("Reader", body, id=id_)) for body, id_ in pending))
        last = pending[min(60 + 20 * death, len(pending) - 1)][1]
        sender.stored(last)
        for deliver in reader.deliveries(20):
            seen.append(deliver["delivery"]["seq"])
            assert deliver["payload"]["body"] == str(deliver["delivery"]["seq"] - 1)
        relay.daemon.restart()
        for client in (sender, reader):
            client.close()
        sender, reader = relay.rejoin("Sender"), relay.rejoin("Reader")
        pending = pending[20:]
    sender.write(b"".join(encode(sender.message("Reader", body, id=id_)) for body, id_ in pending))
    while not seen or max(seen) < 600:
        (deliver,) = reader.deliveries(1)
        assert deliver["payload"]["body"] == str(deliver["delivery"]["seq"] - 1)
        seen.append(deliver["delivery"]["seq"])
    assert set(seen) == set(range(1, 601))
