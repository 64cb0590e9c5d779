"""One agent: it comes back whenever it is cut off, sends, answers as its habits say, and writes down all it sees.

It keeps to the contract: unanswered messages are sent again under the same id, and a RESUME claims no more than was read.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field, replace
from typing import Any

from tests.chaos.habits import Habits
from tests.chaos.history import History
from tests.chaos.wire import Decoder, Frame, encode_frame, make_frame

CHANNEL = "#crew"
TOPIC = "news.today"
MOST_UNANSWERED = 40
_CHUNK_BYTES = 262_144
_ANSWER_S = 15.0
_LONG_TTL_MS = 3_600_000


@dataclass
class Reading:
    """How far it has come in one stream."""

    last: int = 0
    open: set[int] = field(default_factory=set)  # read, and neither acknowledged nor refused for good

    @property
    def claim(self) -> int:
        return min(self.open) - 1 if self.open else self.last


@dataclass
class Sent:
    frame: Frame
    targets: tuple[str, ...]
    ttl_ms: int
    recipients: int | None = None  # once it is stored
    outcomes: set[str] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return self.recipients is not None and len(self.outcomes) >= self.recipients


class Agent:
    def __init__(self, name: str, socket: str, history: History, seed: object, everybody: list[str], habits: Habits) -> None:
        self.name = name
        self.socket = socket
        self.homes = [socket]  # the sockets of all hosts, where there are several
        self.history = history
        self.everybody = everybody
        self.habits = habits
        self.random = random.Random(f"{seed}-{name}")
        self.count = 0
        self.link = 0
        self.connected = False
        self.leaving: asyncio.Event | None = None
        self.sent: dict[str, Sent] = {}
        self.unanswered: dict[str, Sent] = {}  # in order
        self.given_up: set[str] = set()
        self.wishes: dict[str, Frame] = {}  # CHANNEL_JOIN and SUBSCRIBE, until they are answered
        self.asked: dict[str, asyncio.Future[Frame]] = {}
        self.token = self.session = ""
        self.window = 0  # of the session
        self.readings: dict[tuple[str, str], Reading] = {}
        self.read: set[str] = set()  # delivery ids
        self.rejected: set[str] = set()
        self.is_suspended = False  # the daemon is
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def wish(self, kind: str, payload: dict[str, Any]) -> None:
        frame = make_frame(kind, payload)
        self.wishes[frame["id"]] = frame

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                if self.habits.moves and self.random.random() < self.habits.moves:
                    self.socket = self.random.choice(self.homes)
                with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                    await self._talk()
                await asyncio.sleep(self._absence())
        finally:
            self._hang_up()

    def _absence(self) -> float:
        if self.leaving is None or not self.leaving.is_set():
            return self.random.uniform(0.0, self.habits.longest_retry_s)
        return self.random.choice((0.01, self.random.uniform(0.0, self.habits.longest_absence_s)))

    async def _talk(self) -> None:
        reader, self._writer = await asyncio.open_unix_connection(self.socket)
        decoder, self.leaving = Decoder(), asyncio.Event()
        try:
            backlog = await asyncio.wait_for(self._open(reader, decoder), self.habits.patience_s)
            if backlog is None:
                return
            self.connected = True
            self.history.welcomed(self.name, self.link)
            for frame in self.wishes.values():
                self._write(frame)
            for sent in list(self.unanswered.values()):
                self._write_message(sent)
            for frame in backlog:
                self._hear(frame)
            leaver = asyncio.create_task(self._leave_some_time())
            talker = asyncio.create_task(self._send_now_and_then())
            try:
                await self._listen(reader, decoder)
            finally:
                leaver.cancel()
                talker.cancel()
        finally:
            self._hang_up()

    def _hang_up(self) -> None:
        self.connected = False
        for task in self._tasks:
            task.cancel()
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None
        for future in self.asked.values():
            if not future.done():
                future.set_exception(ConnectionResetError())
        self.asked.clear()

    # --- the handshake ----------------------------------------------------------------------------------------------------

    async def _open(self, reader: asyncio.StreamReader, decoder: Decoder) -> list[Frame] | None:
        """What came right after the greeting; None: there is none this time."""
        self.link += 1
        is_fresh = not self.token or self.random.random() < self.habits.fresh
        resumes = not is_fresh and self.random.random() < self.habits.resumes
        if is_fresh:
            self.token = ""  # from here on it may be worth nothing, whether the answer comes or not
        self.history.connected(self.name, self.link)
        window = self.habits.window  # they may change meanwhile
        self._write(self._resume() if resumes else self._hello(with_token=not is_fresh))
        while True:
            frames = await self._read(reader, decoder)
            for place, frame in enumerate(frames):
                payload = frame["payload"]
                if frame["type"] in {"WELCOME", "SYNC"}:
                    if not is_fresh and payload["session_id"] != self.session:
                        self._forget()
                    self.token, self.session, self.window = payload["resume_token"], payload["session_id"], window
                    return frames[place + 1 :]
                if frame["type"] == "NACK":  # it is too old: a fresh one is expected
                    self.history.turned_away(self.name, payload["code"], payload["message"], self.socket)
                    self.token = ""  # from here on it is worth nothing, whether the answer comes or not
                    self._write(self._hello(with_token=False))
                elif frame["type"] == "ERROR":
                    reason = payload.get("details", {}).get("reason", payload["code"])
                    self.history.turned_away(self.name, payload["code"], payload["message"], self.socket)
                    if reason in {"bad_token", "token_reused"}:
                        self.history.locked_out(self.name, reason)
                        self.token = ""
                        self._forget()
                    return None

    def _forget(self) -> None:
        """The daemon does not know it any more: numbers begin anew."""
        self.readings.clear()
        self.read.clear()

    def _hello(self, *, with_token: bool) -> Frame:
        payload: dict[str, Any] = {"agent": self.name, "version": 2, "capabilities": self._capabilities()}
        if with_token:
            payload["session"] = {"resume_token": self.token}
        return make_frame("HELLO", payload)

    def _resume(self) -> Frame:
        points = []
        for (topic, sender), reading in self.readings.items():
            last_seq = reading.claim
            if self.random.random() < self.habits.forgets:
                last_seq = max(0, last_seq - self.random.randrange(3))
            points.append({"topic": topic, "peer": sender, "last_seq": last_seq})
            self.history.claimed(self.name, sender, topic, last_seq)
        payload = {"agent": self.name, "session_id": self.session, "resume_token": self.token, "streams": points}
        if self.window != self.habits.window:  # else the session keeps what it has
            payload["capabilities"] = self._capabilities()
        return make_frame("RESUME", payload)

    def _capabilities(self) -> dict[str, Any]:
        return {"ack": True, "resume": True, "backpressure": True, "events": True, "max_inflight": self.habits.window}

    # --- speaking ---------------------------------------------------------------------------------------------------------

    @property
    def _can_write(self) -> bool:
        return self._writer is not None and not self._writer.transport.is_closing()

    def _write(self, frame: Frame) -> None:
        if self._writer is None or not self._can_write:
            return
        self._writer.write(encode_frame(frame))
        if self.is_suspended:
            self.history.wrote(self.name, self.link)

    def _write_message(self, sent: Sent) -> None:
        if not self._can_write:
            return
        self.history.sent(self.name, sent.frame["id"], sent.targets, ttl_ms=sent.ttl_ms)
        self._write(sent.frame)

    async def _send_now_and_then(self) -> None:
        while True:
            rate = self.habits.rate
            await asyncio.sleep(self.random.expovariate(rate) if rate else 0.05)
            if rate and self.connected:
                targets = self._choose_targets()
                for _ in range(self.random.choice((1, 1, 1, 2, 5))):
                    if len(self.unanswered) < MOST_UNANSWERED and self._can_write:
                        self.send(targets)
                    if self.random.random() < 0.3:
                        targets = self._choose_targets()

    def _choose_targets(self) -> tuple[str, ...]:
        others = [name for name in self.everybody if name != self.name]
        if self.random.random() < self.habits.groups:
            return (self.random.choice(("*", CHANNEL, f".{TOPIC}")),)
        return tuple(self.random.sample(others, self.random.choice((1, 1, 1, 1, 1, 2))))

    def send(self, targets: tuple[str, ...], ttl_ms: int | None = None) -> str:
        """A message to names, `*`, a channel, or a topic (behind a dot)."""
        self.count += 1
        ref = f"{self.name}-{self.count}"
        if ttl_ms is None:
            is_short = self.random.random() < self.habits.short_lived
            ttl_ms = self.random.randrange(100, self.habits.longest_life_ms) if is_short else _LONG_TTL_MS
        body = f"{ref}|" + "x" * self.random.choice((0, 20, 300, 3_000))
        meta = {"ttl_ms": ttl_ms, "requires_ack": self.random.random() < 0.6}
        to: dict[str, Any] = {"topic": targets[0][1:]} if targets[0][:1] == "." else {"to": targets[0]}
        if len(targets) > 1:
            to = {"to": list(targets)}
        sent = Sent(make_frame("SEND", {"body": body}, ref, payload_meta=meta, **to), targets, ttl_ms)
        self.sent[ref] = self.unanswered[ref] = sent
        self._write_message(sent)
        return ref

    def drop_all(self) -> None:
        """What it sent so far is gone, with the files it was in."""
        self.sent.clear()
        self.unanswered.clear()

    def ask_again(self, sent: Sent) -> None:
        """What became of it? The same SEND once more, with `requires_ack`."""
        again = dict(sent.frame)
        again["payload_meta"] = sent.frame["payload_meta"] | {"requires_ack": True}
        self._write_message(replace(sent, frame=again))

    async def ask(self, frame: Frame) -> Frame:
        """A request with one answer."""
        if not self._can_write or not self.connected:
            raise ConnectionResetError
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self.asked[frame["id"]] = future
        self._write(frame)
        return await asyncio.wait_for(future, _ANSWER_S)

    async def _leave_some_time(self) -> None:
        if self.habits.leaves:
            await asyncio.sleep(self.random.expovariate(self.habits.leaves))
            if self.habits.leaves:  # still
                self.drop_connection()

    def drop_connection(self) -> None:
        """As if its process had died."""
        if self.leaving is not None and self._writer is not None:
            self.connected = False  # from now on, not once it notices: whoever waits for it waits for the next connection
            self.leaving.set()
            self._writer.transport.abort()

    # --- listening --------------------------------------------------------------------------------------------------------

    async def _listen(self, reader: asyncio.StreamReader, decoder: Decoder) -> None:
        while True:
            for frame in await self._read(reader, decoder):
                self._hear(frame)

    async def _read(self, reader: asyncio.StreamReader, decoder: Decoder) -> list[Frame]:
        assert self.leaving is not None
        try:
            chunk = await reader.read(_CHUNK_BYTES)
        except OSError:
            chunk = b""
        if not chunk:
            if not self.leaving.is_set():
                self.history.cut(self.name, self.link, "")
            raise ConnectionResetError
        return decoder.feed(chunk)

    def _hear(self, frame: Frame) -> None:
        payload = frame["payload"]
        match frame["type"]:
            case "PING":
                self._write(make_frame("PONG", payload))
            case "DELIVER":
                self._take(frame)
            case "ACK" if payload["ack_id"] in self.wishes:
                del self.wishes[payload["ack_id"]]
            case "ACK" if payload.get("stage") == "stored":
                self._note_stored(payload)
            case "ACK" if payload.get("stage") == "delivered":
                self._note_outcome(payload["ack_id"], payload, payload["by"], "delivered")
            case "NACK" if "message_id" in payload:
                self._note_outcome(payload["nack_id"], payload, payload["to"], payload["code"])
            case "NACK":
                self._note_refused(payload["nack_id"], payload)
            case _:
                waiting = self.asked.pop(payload.get("reply_to", ""), None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(frame)

    def _note_stored(self, payload: dict[str, Any]) -> None:
        ref = payload["ack_id"]
        self.history.stored(self.name, ref, payload["message_id"], payload["recipients"])
        if ref in self.sent:
            self.sent[ref].recipients = payload["recipients"]
        self.unanswered.pop(ref, None)
        self.given_up.discard(ref)

    def _note_outcome(self, ref: str, payload: dict[str, Any], recipient: str, told: str) -> None:
        self.history.outcome(self.name, ref, payload["message_id"], recipient, told)
        if ref in self.sent:
            self.sent[ref].outcomes.add(recipient)

    def _note_refused(self, ref: str, payload: dict[str, Any]) -> None:
        self.history.refused(self.name, ref, payload["code"])
        sent = self.unanswered.pop(ref, None)
        if sent is None:  # it was only asked about, and is not known any more: the rules will say what that is
            if not payload["retryable"]:
                self.given_up.add(ref)
            return
        if payload["retryable"] and self.random.random() < 0.5:
            self._later(payload.get("retry_after_ms", 200) / 1000, self._try_again, sent)
        else:
            self.given_up.add(ref)

    def _try_again(self, sent: Sent) -> None:
        self.unanswered[sent.frame["id"]] = sent
        if self.connected:
            self._write_message(sent)

    def _later(self, seconds: float, action: Any, *arguments: Any) -> None:
        """Survives the connection only for what is to be sent again; an answer to a DELIVER is for this connection."""
        link = self.link

        async def wait() -> None:
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                if action == self._try_again:
                    action(*arguments)
                raise
            if self.link == link:
                action(*arguments)

        task = asyncio.create_task(wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _take(self, frame: Frame) -> None:
        delivery = frame["delivery"]
        seq, topic, sender = delivery["seq"], frame.get("topic", ""), frame["from"]
        self.history.arrived(
            self.name, frame["payload"]["body"].partition("|")[0], sender, link=self.link, message_id=delivery["message_id"],
            delivery_id=frame["id"], topic=topic, seq=seq, prev_seq=delivery.get("prev_seq"), attempt=delivery["attempt"],
            shared=frame.get("to") == "*",
        )  # fmt: skip
        reading = self.readings.setdefault((topic, sender), Reading())
        if frame["id"] not in self.read:
            self.read.add(frame["id"])
            reading.last = max(reading.last, seq)
            reading.open.add(seq)
        habits, luck = self.habits, self.random.random()
        if luck < habits.ignores:
            return
        if frame["id"] in self.rejected:
            self._answer(frame, "reject")
            return
        if luck < habits.ignores + habits.is_busy:
            self._answer(frame, "busy")
        elif luck < habits.ignores + habits.is_busy + habits.rejects and seq in reading.open:
            self.rejected.add(frame["id"])
            self._answer(frame, "reject")
        elif luck > 1 - habits.is_slow:
            self._later(self.random.uniform(0.0, 0.3), self._answer, frame, "ack")
        else:
            self._answer(frame, "ack")

    def _answer(self, frame: Frame, answer: str) -> None:
        if not self._can_write:
            return
        self.history.answered(self.name, frame["id"], answer)
        if answer == "ack":
            self._write(make_frame("ACK", {"ack_id": frame["id"], "seq": frame["delivery"]["seq"]}))
        else:
            code, wait = ("AGENT_BUSY", {"retry_after_ms": 50}) if answer == "busy" else ("REJECTED", {})
            self._write(make_frame("NACK", {"nack_id": frame["id"], "code": code, "message": answer, **wait}))
        if answer != "busy":
            reading = self.readings[(frame.get("topic", ""), frame["from"])]
            reading.open.discard(frame["delivery"]["seq"])
