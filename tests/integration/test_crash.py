"""The promise under kill -9: several clients talk as fast as they may, and the daemon dies at random moments.

Clients keep to the contract: they come back with their token, and send again, under the same id, what was not answered.
In the end everything that was acknowledged as stored has arrived, exactly once after de-duplication by delivery id, and
every stream in order without a gap. A failure names its seed; `AGENT_RELAY_CRASH_SEED` runs it again.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient, Unexpected

NAMES = ("Ann", "Bob", "Cyd", "Dan")
ROUNDS = 8
ENOUGH = 500  # arrivals, for the check to mean something
WINDOW = 40  # unanswered SENDs a client has at most
SETTLE_S = 40.0
TTL_MS = 3_600_000


@dataclass
class Arrived:
    """One stream as its recipient saw it."""

    seqs: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


class Agent(threading.Thread):
    def __init__(self, name: str, socket: str, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.socket = socket
        self.random = random.Random(f"{seed}-{name}")
        self.token: str | None = None
        self.count = 0
        self.unanswered: dict[str, dict[str, Any]] = {}
        self.stored: dict[str, dict[str, Any]] = {}  # client id → receipt
        self.targets: dict[str, str] = {}
        self.deliveries: dict[str, tuple[str, str]] = {}  # delivery id → (message id, client id)
        self.streams: dict[str, Arrived] = {}
        self.again = 0
        self.connections = 0
        self.refused: list[dict[str, Any]] = []
        self.sending = False
        self.ending = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.ending.is_set():
                with contextlib.suppress(OSError, Unexpected):  # the daemon is away, or went while it was spoken to
                    self._talk()
                self.ending.wait(0.005)
        except Exception as failure:  # noqa: BLE001 - whatever it is, the test reports it
            self.failure = failure

    def _talk(self) -> None:
        with RawClient(self.socket) as client:
            greeting = client.greet(self.name, token=self.token, capabilities={"max_inflight": 32})
            if greeting["type"] != "WELCOME":
                assert greeting["payload"].get("retryable") or greeting["payload"]["details"]["reason"] == "name_in_use", greeting
                return
            self.token = client.token
            self.connections += 1
            for frame in list(self.unanswered.values()):
                client.write_frame(frame)
            while not client.ended and not self.ending.is_set():
                if self.sending:
                    self._send_some(client)
                for frame in client.listen(self.random.choice((0.0, 0.002, 0.01))):
                    self._hear(client, frame)

    def _send_some(self, client: RawClient) -> None:
        for _ in range(self.random.randrange(6)):
            if len(self.unanswered) >= WINDOW:
                return
            self.count += 1
            to = self.random.choice([name for name in NAMES if name != self.name] * 2 + ["*"])
            client_id = f"{self.name}-{self.count}"
            body = f"{client_id}|" + "x" * self.random.choice((0, 10, 300, 5_000))
            meta = {"ttl_ms": TTL_MS, "priority": self.random.choice((5, 5, 0, 9))}
            frame = client.message(to, body, meta=meta, id=client_id)
            self.targets[client_id] = to
            self.unanswered[client_id] = frame
            client.write_frame(frame)

    def _hear(self, client: RawClient, frame: dict[str, Any]) -> None:
        payload = frame["payload"]
        match frame["type"]:
            case "ACK" if payload.get("stage") == "stored":
                self.unanswered.pop(payload["ack_id"], None)
                before = self.stored.setdefault(payload["ack_id"], payload)
                assert before["message_id"] == payload["message_id"], f"{payload['ack_id']} became two messages"
            case "NACK":
                self.refused.append(payload)  # nothing here gives a reason to
            case "DELIVER":
                self._take(frame)
                if self.random.random() < 0.95:  # a forgotten one comes again
                    client.ack(frame)

    def _take(self, frame: dict[str, Any]) -> None:
        client_id = frame["payload"]["body"].partition("|")[0]
        known = (frame["delivery"]["message_id"], client_id)
        if frame["id"] in self.deliveries:
            assert self.deliveries[frame["id"]] == known, f"{frame['id']} was {self.deliveries[frame['id']]} and is {known}"
            self.again += 1
            return
        self.deliveries[frame["id"]] = known
        stream = self.streams.setdefault(frame["from"], Arrived())
        stream.seqs.append(frame["delivery"]["seq"])
        stream.counts.append(int(client_id.partition("-")[2]))


def expected_arrivals(agents: list[Agent]) -> int:
    return sum(receipt["recipients"] for agent in agents for receipt in list(agent.stored.values()))


def wait_until_all_are_known(agents: list[Agent]) -> None:
    deadline = time.monotonic() + SETTLE_S
    while not all(agent.connections for agent in agents):
        assert time.monotonic() < deadline, describe(agents)
        time.sleep(0.01)
    for agent in agents:
        agent.sending = True


def wait_until_much_was_said(agents: list[Agent]) -> None:
    """A busy machine needs longer than the kills leave it."""
    deadline = time.monotonic() + SETTLE_S
    while expected_arrivals(agents) < ENOUGH or min(agent.connections for agent in agents) < 2:
        assert time.monotonic() < deadline, describe(agents)
        time.sleep(0.02)


def wait_until_calm(agents: list[Agent]) -> None:
    """Nobody waits for an answer, and as much has arrived as was promised."""
    for agent in agents:
        agent.sending = False
    deadline = time.monotonic() + SETTLE_S
    while any(agent.unanswered for agent in agents) or sum(len(agent.deliveries) for agent in agents) < expected_arrivals(agents):
        assert all(agent.failure is None for agent in agents), next(agent.failure for agent in agents if agent.failure)
        assert time.monotonic() < deadline, describe(agents)
        time.sleep(0.02)


def describe(agents: list[Agent]) -> str:
    lines = [
        f"{agent.name}: {len(agent.stored)} stored, {len(agent.unanswered)} unanswered, {len(agent.deliveries)} arrived, "
        f"{agent.again} again, {agent.connections} connections, {agent.refused[:2]}"
        for agent in agents
    ]
    return f"{expected_arrivals(agents)} were promised; " + "; ".join(lines)


def check(agents: list[Agent]) -> None:
    became: dict[str, str] = {}  # message id → client id
    arrived: dict[str, list[str]] = {}  # message id → who got it
    for agent in agents:
        assert not agent.refused, agent.refused
        for message_id, client_id in agent.deliveries.values():
            assert became.setdefault(message_id, client_id) == client_id, f"{message_id} is two messages"
            arrived.setdefault(message_id, []).append(agent.name)
        for sender, stream in agent.streams.items():
            assert stream.seqs == list(range(1, len(stream.seqs) + 1)), f"{sender} → {agent.name}: {stream.seqs[:50]}"
            assert stream.counts == sorted(set(stream.counts)), f"{sender} → {agent.name} changed its order"
    assert len(set(became.values())) == len(became), "one SEND became two messages"
    for agent in agents:
        for client_id, receipt in agent.stored.items():
            got, to = arrived.get(receipt["message_id"], []), agent.targets[client_id]
            assert len(got) == len(set(got)) == receipt["recipients"], f"{client_id}: promised {receipt}, arrived at {got}"
            assert to == "*" or got == [to], f"{client_id} to {to} arrived at {got}"
            assert became.get(receipt["message_id"], client_id) == client_id


def test_what_was_acknowledged_arrives_exactly_once_and_in_order_however_often_the_daemon_dies() -> None:
    seed = int(os.environ.get("AGENT_RELAY_CRASH_SEED", random.SystemRandom().randrange(10**6)))
    rng = random.Random(seed)
    with DaemonProcess("--queue-capacity=100000", "--ack-timeout-ms=400", "--durability=full") as daemon:
        agents = [Agent(name, daemon.socket, seed) for name in NAMES]
        try:
            for agent in agents:
                agent.start()
            wait_until_all_are_known(agents)
            for _ in range(ROUNDS):
                time.sleep(rng.choice((0.0, 0.02, 0.1, 0.4, 0.8, 1.2)))  # the moment of death is what this test is about
                daemon.restart()
            wait_until_much_was_said(agents)
            wait_until_calm(agents)
            check(agents)
        except BaseException as failure:
            failure.add_note(f"AGENT_RELAY_CRASH_SEED={seed}; the daemon printed: {daemon.output[-2_000:]}")
            raise
        finally:
            for agent in agents:
                agent.ending.set()
            for agent in agents:
                agent.join(30)
