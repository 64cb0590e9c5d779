"""An agent of the simulated hosts: it talks, moves with its token, and now and then is at two hosts at once.

It speaks frames of its own (`tests.chaos.wire`) and writes what it sees into the history that the rules of chaos judge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.chaos.agent import Reading, Sent
from tests.chaos.wire import Decoder, Frame, encode_frame, make_frame
from tests.simulation.cluster_hosts import Wire

if TYPE_CHECKING:
    from tests.simulation.cluster_world import ClusterWorld

_LONG_TTL_MS = 3_600_000
_MOST_UNANSWERED = 20
_GREETED_WITHIN_MS = 4_000  # then it tries another host


@dataclass
class Session:
    """One connection."""

    number: int
    wire: Wire
    host: str
    began_at: int
    decoder: Decoder = field(default_factory=Decoder)
    is_welcomed: bool = False
    unacked: list[Frame] = field(default_factory=list)


class ClusterAgent:
    def __init__(self, world: ClusterWorld, name: str, home: str) -> None:
        self.world, self.name, self.home = world, name, home
        self.random, self.history = world.engine.random, world.history
        self.session: Session | None = None
        self.left: list[Session] = []  # those that it did not close when it went elsewhere
        self.sent: dict[str, Sent] = {}
        self.unanswered: dict[str, Sent] = {}
        self.given_up: set[str] = set()
        self._token = self._session_id = ""
        self._links = self._count = 0
        self._readings: dict[tuple[str, str], Reading] = {}
        self._read: set[str] = set()

    @property
    def is_connected(self) -> bool:
        return self.session is not None and self.session.is_welcomed

    # --- coming and going -------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        host = self.world.hosts[self.home]
        self._links += 1
        number = self._links
        wire = Wire(host, lambda data: self._heard(number, data), lambda: self._ended(number))
        self.session = Session(number, wire, self.home, self.world.engine.now)
        self.history.connected(self.name, number)
        wire.connect()
        self._say(self.session, self._resume() if self._token and self.random.random() < 0.6 else self._hello())

    def move(self, *, closes: bool = True) -> None:
        """To another host. What it has not acknowledged it may still acknowledge where it was."""
        if closes:
            self.leave()
        elif self.session is not None:
            self.left.append(self.session)
            self.session = None
        self.home = self.random.choice([host for host in self.world.hosts if host != self.home])

    def leave(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            session.wire.hang_up()

    def _ended(self, number: int) -> None:
        if self.session is not None and self.session.number == number:
            self.session = None
        self.left = [session for session in self.left if session.number != number]

    def _hello(self) -> Frame:
        capabilities = {"ack": True, "resume": True, "backpressure": True, "max_inflight": 8}
        payload: dict[str, Any] = {"agent": self.name, "version": 2, "capabilities": capabilities}
        if self._token:
            payload["session"] = {"resume_token": self._token}
        return make_frame("HELLO", payload)

    def _resume(self) -> Frame:
        points = []
        for (topic, sender), reading in self._readings.items():
            points.append({"topic": topic, "peer": sender, "last_seq": reading.claim})
            self.history.claimed(self.name, sender, topic, reading.claim)
        return make_frame(
            "RESUME", {"agent": self.name, "session_id": self._session_id, "resume_token": self._token, "streams": points}
        )

    # --- speaking -------------------------------------------------------------------------------------------------------

    def _say(self, session: Session, frame: Frame) -> None:
        session.wire.say(encode_frame(frame))

    def act(self, *, is_calm: bool) -> None:
        """One thing that it does now."""
        session, dice = self.session, self.random.random()
        if self.left and dice < 0.3:
            self._answer_where_it_was()
        elif session is None:
            if is_calm or dice < 0.5:
                self.connect()
        elif not session.is_welcomed:
            if self.world.engine.now - session.began_at > _GREETED_WITHIN_MS:
                self.move()
        elif session.unacked and (is_calm or dice < 0.5):
            self._answer(session)
        elif not is_calm and len(self.unanswered) < _MOST_UNANSWERED:
            self._send()

    def _send(self) -> None:
        self._count += 1
        ref = f"{self.name}-{self._count}"
        others = [name for name in self.world.agents if name != self.name]
        targets = ("*",) if self.random.random() < 0.2 else tuple(self.random.sample(others, self.random.choice((1, 1, 2))))
        ttl_ms = self.random.randrange(200, 4_000) if self.random.random() < 0.2 else _LONG_TTL_MS
        to = targets[0] if len(targets) == 1 else list(targets)
        meta = {"ttl_ms": ttl_ms, "requires_ack": self.random.random() < 0.95}
        sent = Sent(make_frame("SEND", {"body": f"{ref}|"}, ref, payload_meta=meta, to=to), targets, ttl_ms)
        self.sent[ref] = self.unanswered[ref] = sent
        self._write(sent, sent.frame)

    def _write(self, sent: Sent, frame: Frame) -> None:
        assert self.session is not None
        self.history.sent(self.name, frame["id"], sent.targets, ttl_ms=sent.ttl_ms)
        self._say(self.session, frame)

    def ask_again(self) -> None:
        """What became of what it sent?"""
        for sent in self.open:
            meta = sent.frame["payload_meta"] | {"requires_ack": True}
            self._write(sent, sent.frame | {"payload_meta": meta})

    @property
    def open(self) -> list[Sent]:
        return [sent for ref, sent in self.sent.items() if ref not in self.given_up and not sent.is_over]

    def _answer(self, session: Session) -> None:
        frame = session.unacked.pop(0)
        self.history.answered(self.name, frame["id"], "ack")
        self._say(session, make_frame("ACK", {"ack_id": frame["id"], "seq": frame["delivery"]["seq"]}))
        self._readings[(frame.get("topic", ""), frame["from"])].open.discard(frame["delivery"]["seq"])

    def _answer_where_it_was(self) -> None:
        """An acknowledgement that comes after the move."""
        session = self.left[0]
        if session.unacked:
            self.world.late_answers += 1
            self._answer(session)
        else:
            self.left.pop(0)
            session.wire.hang_up()

    # --- listening ------------------------------------------------------------------------------------------------------

    def _heard(self, number: int, data: bytes) -> None:
        session = self.session
        if session is not None and session.number == number:
            for frame in session.decoder.feed(data):
                if self.session is session:
                    self._hear(session, frame)

    def _hear(self, session: Session, frame: Frame) -> None:
        payload = frame["payload"]
        match frame["type"]:
            case "WELCOME" | "SYNC":
                self._welcomed(session, payload)
            case "PING":
                self._say(session, make_frame("PONG", payload))
            case "DELIVER":
                self._take(session, frame)
            case "ACK" if payload.get("stage") == "stored":
                ref = payload["ack_id"]
                self.history.stored(self.name, ref, payload["message_id"], payload["recipients"])
                self.sent[ref].recipients = payload["recipients"]
                self.unanswered.pop(ref, None)
            case "ACK" if payload.get("stage") == "delivered":
                self._told(payload["ack_id"], payload, payload["by"], "delivered")
            case "NACK" if "message_id" in payload:
                self._told(payload["nack_id"], payload, payload["to"], payload["code"])
            case "NACK" if not session.is_welcomed:  # its session is over: a fresh one is expected
                self.history.locked_out(self.name, payload["code"])
            case "NACK":
                self.history.refused(self.name, payload["nack_id"], payload["code"])
                self.unanswered.pop(payload["nack_id"], None)
                if self.sent[payload["nack_id"]].recipients is None:
                    self.given_up.add(payload["nack_id"])
            case "ERROR":
                reason = payload.get("details", {}).get("reason", "")
                if reason in {"bad_token", "token_reused"}:
                    self.history.locked_out(self.name, reason)
                    self._token = ""

    def _welcomed(self, session: Session, payload: dict[str, Any]) -> None:
        session.is_welcomed = True
        self.history.welcomed(self.name, session.number)
        self._token, self._session_id = payload["resume_token"], payload["session_id"]
        for sent in list(self.unanswered.values()):
            self._write(sent, sent.frame)

    def _told(self, ref: str, payload: dict[str, Any], recipient: str, told: str) -> None:
        self.history.outcome(self.name, ref, payload["message_id"], recipient, told)
        self.sent[ref].outcomes.add(recipient)

    def _take(self, session: Session, frame: Frame) -> None:
        delivery = frame["delivery"]
        seq, topic, sender = delivery["seq"], frame.get("topic", ""), frame["from"]
        self.history.arrived(
            self.name, frame["payload"]["body"].partition("|")[0], sender, link=session.number,
            message_id=delivery["message_id"], delivery_id=frame["id"], topic=topic, seq=seq,
            prev_seq=delivery.get("prev_seq"), attempt=delivery["attempt"], shared=frame.get("to") == "*",
        )  # fmt: skip
        reading = self._readings.setdefault((topic, sender), Reading())
        if frame["id"] not in self._read:
            self._read.add(frame["id"])
            reading.last = max(reading.last, seq)
            reading.open.add(seq)
        session.unacked = [each for each in session.unacked if each["id"] != frame["id"]] + [frame]
