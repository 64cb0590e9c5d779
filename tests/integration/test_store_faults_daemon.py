"""A daemon whose disk is full, or whose database somebody else has locked: it says so, keeps its word, and recovers by itself."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import Frame, RawClient
from tests.faults import Faults

DEADLINE_S = 60.0


class DaemonOnSmallDisk(DaemonProcess):
    def __init__(self, *flags: str) -> None:
        super().__init__(*flags)
        self.faults = Faults(self.directory)
        self.environ = self.faults.environ

    def fill_disk(self) -> None:
        self.faults.set(f"pwrite ENOSPC {self.state_dir} *", f"write ENOSPC {self.state_dir} *")

    def free_disk(self) -> None:
        self.faults.clear()


@pytest.fixture
def daemon() -> Iterator[DaemonOnSmallDisk]:
    daemon = DaemonOnSmallDisk("--heartbeat-ms=60s")
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.remove()


class Conversation:
    """Alice writes to Bob and remembers what she was told."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self.alice, self.bob = RawClient(daemon.socket), RawClient(daemon.socket)
        self.alice.hello("Alice")
        self.bob.auto_ack = True
        self.bob.hello("Bob")
        self.stored: list[str] = []
        self.refused: list[str] = []
        self.count = 0

    def send(self) -> Frame:
        """One message, and the answer to it."""
        self.count += 1
        body = f"m{self.count}"
        answer = self.alice.answer(self.alice.send("Bob", body))
        if answer["type"] == "ACK":
            self.stored.append(body)
        else:
            self.refused.append(body)
            payload = answer["payload"]
            assert (payload["code"], payload["retryable"]) == ("SERVICE_UNAVAILABLE", True), payload
            assert payload["retry_after_ms"] > 0
        return answer

    def send_until(self, kind: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.send()["type"] != kind:
            assert time.monotonic() < deadline, f"no {kind} came"

    def check_arrived(self) -> None:
        """Bob has everything Alice was told is stored, in order and without a gap, and nothing she was refused."""
        frames = self.bob.deliveries(len(self.stored))
        assert [frame["payload"]["body"] for frame in frames] == self.stored
        assert [frame["delivery"]["seq"] for frame in frames] == list(range(1, len(frames) + 1))
        assert [frame for frame in frames if "prev_seq" in frame["delivery"]] == []
        self.bob.expect_none("DELIVER")

    def close(self) -> None:
        self.alice.close()
        self.bob.close()


@pytest.fixture
def conversation(daemon: DaemonOnSmallDisk) -> Iterator[Conversation]:
    conversation = Conversation(daemon)
    yield conversation
    conversation.close()


def history(client: RawClient) -> list[str]:
    messages: list[dict[str, Any]] = client.request("HISTORY", {"limit": 1_000})["messages"]
    return [message["payload"]["body"] for message in reversed(messages)]


def test_a_full_disk_refuses_and_the_same_daemon_goes_on_when_there_is_room(
    daemon: DaemonOnSmallDisk, conversation: Conversation
) -> None:
    alice, pid = conversation.alice, daemon.pid
    for _ in range(20):
        conversation.send()
    daemon.fill_disk()
    conversation.send_until("NACK")
    for _ in range(5):
        assert conversation.send()["type"] == "NACK"
    with RawClient(daemon.socket) as newcomer:  # whoever comes now is refused too, and may try again
        refusal = newcomer.greet("Carol")["payload"]
        assert (refusal["code"], refusal["fatal"]) == ("SERVICE_UNAVAILABLE", True)
        newcomer.wait_closed()
    refusal = alice.answer(alice.say("SUBSCRIBE", {"topic": "news"}))["payload"]
    assert refusal["code"] == "SERVICE_UNAVAILABLE"
    alice.flush()  # it is alive
    daemon.free_disk()
    conversation.send_until("ACK")
    for _ in range(20):
        assert conversation.send()["type"] == "ACK"
    conversation.check_arrived()
    with RawClient(daemon.socket) as newcomer:
        newcomer.hello("Carol")
    assert alice.request("SUBSCRIBE", {"topic": "news"})["stage"] == "subscribed"
    assert (daemon.pid, daemon.running) == (pid, True)
    assert history(alice) == conversation.stored
    assert conversation.refused


def test_what_was_refused_on_a_full_disk_is_not_there_after_a_crash(
    daemon: DaemonOnSmallDisk, conversation: Conversation
) -> None:
    for _ in range(10):
        conversation.send()
    daemon.fill_disk()
    conversation.send_until("NACK")
    conversation.send()
    daemon.kill()
    daemon.free_disk()
    daemon.start()
    with RawClient(daemon.socket) as watcher:
        watcher.hello("watcher", mode="observer")
        assert history(watcher) == conversation.stored


def test_acknowledgements_given_on_a_full_disk_are_written_when_there_is_room(daemon: DaemonOnSmallDisk) -> None:
    with RawClient(daemon.socket) as alice, RawClient(daemon.socket) as bob:
        alice.hello("Alice")
        bob.hello("Bob")
        bob.flush()
        token = bob.token
        for number in range(10):
            alice.send_stored("Bob", str(number), meta={"requires_ack": True})
        delivers = bob.deliveries(10, ack=False)
        daemon.fill_disk()
        while alice.answer(alice.say("SUBSCRIBE", {"topic": "probe"}))["type"] != "NACK":
            pass
        for deliver in delivers:
            bob.ack(deliver)
        bob.flush()
        alice.expect_none("ACK")  # nobody is told `delivered` of what a crash could undo
        daemon.free_disk()
        assert len([alice.expect("ACK", where=lambda f: f["payload"]["stage"] == "delivered") for _ in range(10)]) == 10
        deadline = time.monotonic() + DEADLINE_S
        while alice.answer(alice.say("SUBSCRIBE", {"topic": "probe"}))["type"] != "ACK":
            assert time.monotonic() < deadline
        # The acknowledgements go with the next write or one 100 ms later; this one is behind them all.
        message_id = alice.send_stored("Alice", "after")["message_id"]
        alice.request("HISTORY", {"view": "message", "id": message_id})
    daemon.restart()
    with RawClient(daemon.socket) as bob:
        bob.hello("Bob", token=token)
        bob.expect_none("DELIVER")


def test_a_database_locked_by_somebody_else_refuses_and_recovers(daemon: DaemonOnSmallDisk, conversation: Conversation) -> None:
    for _ in range(10):
        conversation.send()
    pid = daemon.pid
    intruder = sqlite3.connect(daemon.state_dir / "messages.sqlite", isolation_level=None)
    try:
        intruder.execute("BEGIN EXCLUSIVE")
        refusal = conversation.send()["payload"]
        assert "locked" in refusal["message"] or "busy" in refusal["message"]
        conversation.alice.flush()
        intruder.execute("ROLLBACK")
    finally:
        intruder.close()
    conversation.send_until("ACK")
    for _ in range(10):
        assert conversation.send()["type"] == "ACK"
    conversation.check_arrived()
    assert conversation.refused
    assert (daemon.pid, daemon.running) == (pid, True)


def test_a_lock_that_is_short_is_waited_for(daemon: DaemonOnSmallDisk, conversation: Conversation) -> None:
    conversation.send()
    intruder = sqlite3.connect(daemon.state_dir / "messages.sqlite", isolation_level=None)
    try:
        intruder.execute("BEGIN EXCLUSIVE")
        request = conversation.alice.send("Bob", "patience")
        conversation.alice.flush()  # it waits, and the daemon does not wait with it
        intruder.execute("ROLLBACK")
    finally:
        intruder.close()
    assert conversation.alice.stored(request)["recipients"] == 1


def test_it_stops_in_order_on_a_full_disk(daemon: DaemonOnSmallDisk, conversation: Conversation) -> None:
    for _ in range(5):
        conversation.send()
    daemon.fill_disk()
    conversation.send_until("NACK")
    assert daemon.terminate() == 0
    assert conversation.alice.expect("BYE")["payload"]["reason"] == "shutdown"
    daemon.free_disk()
    daemon.start()
    with RawClient(daemon.socket) as watcher:
        watcher.hello("watcher", mode="observer")
        assert history(watcher) == conversation.stored
