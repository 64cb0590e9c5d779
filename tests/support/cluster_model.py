"""A model of NATS for simulations: one stream with compare-and-append, and subjects that lose, delay and cut off, by a seed."""

from __future__ import annotations

import base64
import heapq
import json
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from agent_relay.ports.cluster import NO_HEADERS, Answered, Headers, Heard, WireMessage

_ANSWER_MS = 500
_DUPLICATES_MS = 120_000


class Engine:
    """The servers, the network between them and the hosts, and the clock of all of it."""

    def __init__(self, seed: int, *, loss: float = 0.0, doubling: float = 0.0) -> None:
        self.random = Random(seed)
        self.loss = loss
        self.doubling = doubling  # of what is published: it comes once more, later
        self.now = 0
        self.records: list[tuple[str, bytes]] = []  # id, record; the sequence is the place, from 1
        self.gone = 0  # as many of the first are no longer kept
        self.cut: set[str] = set()  # hosts that reach nothing
        self.is_down = False  # no leader: the stream answers nobody
        self.takes_nothing = False  # no majority, and a leader that has not noticed: it answers questions alone
        self.checks_sequence = True  # False, the planted fault: takes any record, and says what its sender wants to hear
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._wires: list[ModelWire] = []
        self._consumers: list[_Consumer] = []

    def connect(self, host: str) -> ModelWire:
        wire = ModelWire(self, host)
        self._wires.append(wire)
        return wire

    def disconnect(self, wire: ModelWire) -> None:
        """Its host has died."""
        self._wires.remove(wire)
        wire.subscribed.clear()
        wire.is_dead = True

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (self.now + delay_ms, self._count, call))

    def run_until(self, moment: int) -> None:
        while self._due and self._due[0][0] <= moment:
            self.now, _, call = heapq.heappop(self._due)
            call()
        self.now = moment

    def passes(self, *hosts: str) -> bool:
        return not self.cut.intersection(hosts) and self.random.random() >= self.loss

    def delay(self) -> int:
        return self.random.choice((1, 1, 2, 5, 20))

    def publish(self, sender: str, message: WireMessage) -> None:
        """To whoever subscribes. Between two hosts the order stays, as over one connection."""
        for wire in self._wires:
            for subject, heard in list(wire.subscribed.values()):
                if subject == message.subject and self.passes(sender, wire.host):
                    self.later(1, partial(wire.hear, subject, heard, message))
                    if self.doubling and self.random.random() < self.doubling:
                        self.later(self.random.choice((1, 30, 400)), partial(wire.hear, subject, heard, message))

    def serve(self, wire: ModelWire, message: WireMessage, answer: Callable[[dict[str, Any]], None]) -> None:
        subject = message.subject
        if self.is_down:
            return
        if subject.endswith(".log"):
            if not self.takes_nothing:
                answer(self._append(message))
        elif ".STREAM.INFO." in subject:
            answer({"state": {"first_seq": self.gone + 1, "last_seq": len(self.records)}})
        elif ".STREAM.MSG.GET." in subject:
            sequence = json.loads(message.payload)["seq"]
            if sequence > len(self.records):
                answer({"error": {"code": 404, "err_code": 10037, "description": "no message found"}})
            else:
                headers = f"NATS/1.0\r\nNats-Msg-Id: {self.records[sequence - 1][0]}\r\n\r\n"
                data = base64.b64encode(self.records[sequence - 1][1]).decode()
                answer({"message": {"seq": sequence, "hdrs": base64.b64encode(headers.encode()).decode(), "data": data}})
        elif ".CONSUMER.CREATE." in subject:
            config = json.loads(message.payload)["config"]
            consumer = _Consumer(self, wire, config["deliver_subject"], config["opt_start_seq"])
            self._consumers.append(consumer)
            answer({"name": "reader"})
            consumer.deliver()

    def _append(self, message: WireMessage) -> dict[str, Any]:
        name = message.headers["Nats-Msg-Id"]
        for place, (known, _) in enumerate(self.records, 1):
            if known == name:
                return {"stream": "LOG", "seq": place, "duplicate": True}
        expected = int(message.headers["Nats-Expected-Last-Sequence"])
        if not self.checks_sequence and expected != len(self.records):
            return {"stream": "LOG", "seq": expected + 1}
        if expected != len(self.records):
            return {"error": {"code": 400, "err_code": 10071, "description": "wrong last sequence"}}
        self.records.append((name, message.payload))
        for consumer in self._consumers:
            consumer.deliver()
        return {"stream": "LOG", "seq": len(self.records)}


class _Consumer:
    def __init__(self, engine: Engine, wire: ModelWire, inbox: str, start: int) -> None:
        self._engine, self._wire, self._inbox = engine, wire, inbox
        self._next = max(start, engine.gone + 1)
        self._count = 0
        engine.later(1_000, self._beat)

    def deliver(self) -> None:
        while self._next <= len(self._engine.records):
            self._count += 1
            reply = f"$JS.ACK.LOG.reader.1.{self._next}.{self._count}.0.0"
            self._send(WireMessage(self._inbox, self._engine.records[self._next - 1][1], reply=reply))
            self._next += 1

    def _send(self, message: WireMessage) -> None:
        heard = next((heard for subject, heard in self._wire.subscribed.values() if subject == self._inbox), None)
        if heard is not None and self._engine.passes(self._wire.host):
            self._engine.later(1, partial(self._wire.hear, self._inbox, heard, message))

    def _beat(self) -> None:
        if self._wire.is_dead or not any(subject == self._inbox for subject, _ in self._wire.subscribed.values()):
            return
        if not self._engine.is_down:
            self._send(WireMessage(self._inbox, b"", {"Nats-Last-Consumer": str(self._count)}, status="100"))
        self._engine.later(1_000, self._beat)


class ModelWire:
    """Implements `ports.cluster.Wire`."""

    def __init__(self, engine: Engine, host: str) -> None:
        self._engine = engine
        self.host = host
        self.subscribed: dict[int, tuple[str, Heard]] = {}
        self.is_dead = False
        self._last = 0
        self._held: list[Callable[[], None]] | None = None  # what comes while the host is stopped

    def publish(self, subject: str, payload: bytes, headers: Headers = NO_HEADERS) -> bool:
        if not self.is_dead:
            self._engine.publish(self.host, WireMessage(subject, payload, headers))
        return self.host not in self._engine.cut

    def ask(self, subject: str, payload: bytes, done: Answered, headers: Headers = NO_HEADERS) -> None:
        engine = self._engine
        pending = [done]

        def answered(message: WireMessage | None) -> None:
            if self._held is not None:
                self._held.append(partial(answered, message))
            elif pending and not self.is_dead:
                pending.pop()(message)

        def answer(content: dict[str, Any]) -> None:
            if engine.passes(self.host):
                engine.later(engine.delay(), partial(answered, WireMessage("answer", json.dumps(content).encode())))

        engine.later(_ANSWER_MS, partial(answered, None))
        if engine.passes(self.host):
            engine.later(engine.delay(), partial(engine.serve, self, WireMessage(subject, payload, headers), answer))

    def subscribe(self, subject: str, heard: Heard) -> int:
        self._last += 1
        self.subscribed[self._last] = (subject, heard)
        return self._last

    def unsubscribe(self, number: int) -> None:
        self.subscribed.pop(number, None)

    def new_inbox(self) -> str:
        self._last += 1
        return f"_INBOX.{self.host}.{id(self)}.{self._last}"

    def hold(self) -> None:
        """The host is stopped: what comes waits in its sockets."""
        self._held = []

    def let_go(self) -> None:
        held, self._held = self._held, None
        for call in held or ():
            call()

    def hear(self, subject: str, heard: Heard, message: WireMessage) -> None:
        if self._held is not None:
            self._held.append(partial(self.hear, subject, heard, message))
            return
        if (subject, heard) in self.subscribed.values():
            heard(message)
