"""The shared log over JetStream: compare-and-append, and following it.

Every record names the sequence it must follow (`Nats-Expected-Last-Sequence`), so the log refuses whoever has lost the seat.
An append without an answer is sent again, byte for byte, until it is known what became of it: the server recognises its
`Nats-Msg-Id`, or says that something else follows `after`; then that record is read, and it is ours or another's.

A follower reads through an ephemeral consumer without acknowledgements. Whatever looks wrong (silence, a gap, a reconnect) ends
it, and a new one is made from the last record that came.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial

import msgspec

from agent_relay.cluster.jetstream import (
    HEARTBEAT_MS,
    NO_MESSAGE,
    NO_STREAM,
    STREAM_IN_USE,
    WRONG_LAST_SEQUENCE,
    Answer,
    Names,
    read_answer,
    read_place,
    reader_settings,
    stream_settings,
)
from agent_relay.cluster.records import FORMAT, FORMAT_HEADER
from agent_relay.ports.cluster import AppendDone, Appended, FollowHeard, LastDone, NotNext, Wire, WireMessage
from agent_relay.ports.log import Log

_ASK_AGAIN_MS = 250  # after an answer that says nothing; one that does not come at all has taken its time already
_SILENCE_MS = 3 * HEARTBEAT_MS
_API = "$JS.API"


class _Append:
    """The record under way."""

    def __init__(self, record: bytes, after: int, message_id: str, done: AppendDone) -> None:
        self.record = record
        self.after = after
        self.message_id = message_id
        self.done = done
        self.headers = {
            "Nats-Msg-Id": message_id,
            "Nats-Expected-Last-Sequence": str(after),
            FORMAT_HEADER: FORMAT,
        }


class _Reading:
    """A consumer of ours, from its creation until something is wrong with it."""

    def __init__(self, inbox: str, number: int, now: int) -> None:
        self.inbox = inbox
        self.number = number  # of the subscription
        self.heard_at = now
        self.consumer_sequence = 0


class JetStreamLog:
    """`mark` names this life of the daemon: no two have the same. `trouble` says why the log does not answer as it should."""

    def __init__(self, wire: Wire, names: Names, mark: str, replicas: int, log: Log, now: int) -> None:
        self._wire = wire
        self._names = names
        self._mark = mark
        self._replicas = replicas
        self._log = log
        self._now = now
        self._later: list[tuple[int, Callable[[], None]]] = []
        self._appending: _Append | None = None
        self._reading: _Reading | None = None
        self._heard: FollowHeard | None = None
        self._position = 0
        self._is_making = False  # a consumer is asked for
        self.trouble = ""

    def clock_says(self, now: int) -> None:
        self._now = now
        due = [call for at, call in self._later if at <= now]
        self._later = [(at, call) for at, call in self._later if at > now]
        for call in due:
            call()
        if self._reading is not None and now - self._reading.heard_at >= _SILENCE_MS:
            self._log.note("cluster_log_silent", position=self._position)
            self._read_anew()

    def reconnected(self) -> None:
        """Another server, or the same one again: what was followed may have ended unheard."""
        if self._heard is not None:
            self._read_anew()

    # --- appending ------------------------------------------------------------------------------------------------------

    def append(self, record: bytes, after: int, done: AppendDone) -> None:
        assert self._appending is None, "one record at a time"
        self._appending = _Append(record, after, f"{self._mark}-{after}", done)
        self._send(self._appending)

    def give_up(self) -> None:
        self._appending = None

    def _send(self, append: _Append) -> None:
        if append is self._appending:
            self._wire.ask(self._names.log, append.record, partial(self._answered, append), append.headers)

    def _answered(self, append: _Append, message: WireMessage | None) -> None:
        if append is not self._appending:
            return
        answer = read_answer(message)
        if answer is None:
            self._after(0 if message is None else _ASK_AGAIN_MS, partial(self._send, append))
        elif answer.error is not None and answer.error.err_code == WRONG_LAST_SEQUENCE:
            self._look(append)
        elif answer.error is not None:
            self._complain(answer)
            self._after(_ASK_AGAIN_MS, partial(self._send, append))
        elif answer.seq == append.after + 1:
            self._settle(append, Appended(answer.seq))
        else:  # a duplicate of something else, which our ids do not allow, or a server that is not telling the truth
            self._look(append)

    def _look(self, append: _Append) -> None:
        """Whose record follows `after`?"""
        if append is self._appending:
            request = msgspec.json.encode({"seq": append.after + 1})
            self._wire.ask(f"{_API}.STREAM.MSG.GET.{self._names.stream}", request, partial(self._looked, append))

    def _looked(self, append: _Append, message: WireMessage | None) -> None:
        if append is not self._appending:
            return
        answer = read_answer(message)
        if answer is None:
            self._after(0 if message is None else _ASK_AGAIN_MS, partial(self._look, append))
        elif answer.message is not None:
            ours = f"Nats-Msg-Id: {append.message_id}\r\n".encode() in base64.b64decode(answer.message.get("hdrs") or "")
            self._settle(append, Appended(append.after + 1) if ours else NotNext(append.after + 1))
        else:
            # Nothing is there: the log ends before `after`, or that record is gone. It is asked again: a leader that is cut off
            # answers so for a while, and if records are really lost the follower finds out.
            if answer.error is not None and answer.error.err_code != NO_MESSAGE:
                self._complain(answer)
            self._after(_ASK_AGAIN_MS, partial(self._send, append))

    def _settle(self, append: _Append, outcome: Appended | NotNext) -> None:
        self._appending = None
        self.trouble = ""
        append.done(outcome)

    # --- following ------------------------------------------------------------------------------------------------------

    def follow(self, after: int, heard: FollowHeard) -> None:
        self._position = after
        self._heard = heard
        self._read_anew()

    def unfollow(self) -> None:
        self._heard = None
        self._drop_reading()

    def _drop_reading(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            self._wire.unsubscribe(reading.number)

    def _read_anew(self) -> None:
        self._drop_reading()
        if self._heard is None or self._is_making:
            return
        self._is_making = True
        inbox = self._wire.new_inbox()
        reading = _Reading(inbox, 0, self._now)
        reading.number = self._wire.subscribe(inbox, partial(self._delivered, reading))
        request = msgspec.json.encode(reader_settings(self._names, self._position, inbox))
        self._reading = reading
        self._wire.ask(f"{_API}.CONSUMER.CREATE.{self._names.stream}", request, partial(self._made, reading))

    def _made(self, reading: _Reading, message: WireMessage | None) -> None:
        self._is_making = False
        answer = read_answer(message)
        if answer is not None and answer.error is None and reading is self._reading:
            reading.heard_at = self._now
            self.trouble = ""
            return
        if answer is not None and answer.error is not None:
            if answer.error.err_code == NO_STREAM:
                self._make_stream()
            else:
                self._complain(answer)
        if self._reading is reading:
            self._drop_reading()
        if self._reading is None:
            self._after(_ASK_AGAIN_MS, self._read_if_not)

    def _read_if_not(self) -> None:
        if self._reading is None:
            self._read_anew()

    def _delivered(self, reading: _Reading, message: WireMessage) -> None:
        if reading is not self._reading or self._heard is None:
            return
        reading.heard_at = self._now
        if message.status == "100":
            if message.reply:  # flow control: the server goes on when it is answered
                self._wire.publish(message.reply, b"")
            elif (stalled := message.headers.get("Nats-Consumer-Stalled")) is not None:
                self._wire.publish(stalled, b"")
            last = message.headers.get("Nats-Last-Consumer")
            if last is not None and last.isdigit() and int(last) > reading.consumer_sequence:
                self._read_anew()  # what the heartbeat counts did not come
            return
        place = read_place(message.reply)
        if message.status or place is None:
            self._read_anew()
            return
        if place.consumer_sequence != reading.consumer_sequence + 1:
            self._read_anew()
            return
        reading.consumer_sequence = place.consumer_sequence
        if place.stream_sequence != self._position + 1:
            self.trouble = (
                f"The cluster's log no longer has the records {self._position + 1} to {place.stream_sequence - 1}, which this "
                "host needs. Start it with an empty state directory to copy everything again."
            )
            self._log.note("cluster_log_gap", position=self._position, next=place.stream_sequence)
            self.unfollow()
            return
        self._position = place.stream_sequence
        self._heard(place.stream_sequence, message.payload)

    # --- the stream -----------------------------------------------------------------------------------------------------

    def ask_last(self, done: LastDone) -> None:
        def answered(message: WireMessage | None) -> None:
            answer = read_answer(message)
            if answer is not None and answer.error is not None:
                if answer.error.err_code == NO_STREAM:
                    self._make_stream()
                else:
                    self._complain(answer)
            done(None if answer is None or answer.state is None else answer.state.last_seq)

        self._wire.ask(f"{_API}.STREAM.INFO.{self._names.stream}", b"", answered)

    def _make_stream(self) -> None:
        request = msgspec.json.encode(stream_settings(self._names, self._replicas))

        def made(message: WireMessage | None) -> None:
            answer = read_answer(message)
            if answer is not None and answer.error is not None and answer.error.err_code != STREAM_IN_USE:
                self._complain(answer)

        self._wire.ask(f"{_API}.STREAM.CREATE.{self._names.stream}", request, made)

    def _complain(self, answer: Answer) -> None:
        assert answer.error is not None
        text = f"The cluster's log {self._names.stream} refuses: {answer.error.description} ({answer.error.err_code})."
        if text != self.trouble:
            self.trouble = text
            self._log.note("cluster_log_refused", code=answer.error.err_code, description=answer.error.description)

    def _after(self, delay_ms: int, call: Callable[[], None]) -> None:
        self._later.append((self._now + delay_ms, call))
