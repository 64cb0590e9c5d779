"""The shared log over JetStream: compare-and-append (`log_appender`), and following it.

A follower reads through an ephemeral consumer without acknowledgements. Whatever looks wrong (silence, a gap, a reconnect) ends
it, and a new one is made from the last record that came, once `continuity` has found that the log still goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from agent_relay.cluster.continuity import Continuity, Found, Standing
from agent_relay.cluster.figures import Figures
from agent_relay.cluster.jetstream import (
    API,
    HEARTBEAT_MS,
    LOG_RETENTION,
    NO_STREAM,
    NOT_AVAILABLE,
    STREAM_IN_USE,
    Answer,
    Names,
    Retention,
    StreamNames,
    read_answer,
    read_place,
    reader_settings,
    stream_settings,
)
from agent_relay.cluster.log_appender import ASK_AGAIN_MS, LogAppender
from agent_relay.cluster.records import FORMAT, FORMAT_HEADER
from agent_relay.ports.cluster import (
    NOTHING_KEPT,
    AppendDone,
    Appended,
    FollowHeard,
    Kept,
    LastDone,
    NotNext,
    Wire,
    WireMessage,
)
from agent_relay.ports.log import Log

_SILENCE_MS = 3 * HEARTBEAT_MS
_REGRESSED_MS = 30_000  # a leader that is cut off answers with old values for ten seconds
_REPAIR = (
    "No host takes the seat until they are back: run `agent-relay cluster repair` at the host that has copied most, or restore "
    "the newest backup of NATS."
)
_NO_ANSWER = "NATS does not answer."
_NO_MAJORITY = "NATS has no majority of its servers, or is choosing a leader; start those that are down."
_UNCONFIRMED = "NATS does not confirm a record of the cluster's log: it has no majority, or is choosing another leader."
_UNCONFIRMED_MS = 3_000


class _Reading:
    """A consumer of ours, from its creation until something is wrong with it."""

    def __init__(self, inbox: str, number: int, now: int) -> None:
        self.inbox = inbox
        self.number = number  # of the subscription
        self.heard_at = now
        self.consumer_sequence = 0


class JetStreamLog:
    """`mark` names this life of the daemon: no two have the same. `trouble` says why the log does not answer as it should.
    `kept` is given every record, before anybody hears of it. `may_skip`: records may be missing. Then a follower goes on with
    the oldest there is, and a stream that is not there is made."""

    def __init__(
        self, wire: Wire, names: Names | StreamNames, mark: str, replicas: int, log: Log, now: int, kept: Kept = NOTHING_KEPT,
        figures: Figures | None = None, retention: Retention = LOG_RETENTION, *, may_skip: bool = False,
    ) -> None:  # fmt: skip
        self._wire = wire
        self._figures = figures or Figures()
        self._names = names
        self._replicas = replicas
        self._log = log
        self._now = now
        self._retention = retention
        self._may_skip = may_skip
        self._later: list[tuple[int, Callable[[], None]]] = []
        self._appender = LogAppender(wire, names, mark, self._figures, self._after, self._complain)
        self._reading: _Reading | None = None
        self._heard: FollowHeard | None = None
        self._position = 0
        self._is_making = False  # a consumer is asked for
        self._appending_since: int | None = None
        self._appended_to = 0  # the last record of ours, since nothing is followed
        self._kept = kept
        self._continuity = Continuity(wire, names, kept.find)
        self.standing = Standing.UNKNOWN
        self.first = 0  # sequence of the log, when it was last looked at
        self._regressed_since: int | None = None
        self.trouble = ""

    @property
    def is_regressed(self) -> bool:
        """The log ends before what this host has copied of it."""
        return self.standing is Standing.REGRESSED or (
            self.standing is Standing.ABSENT and max(self._position, self._appended_to) > 0
        )

    @property
    def is_behind(self) -> bool:
        """The records that are needed next are not in the log any more: only another host's copy has them."""
        return self.standing is Standing.BEHIND

    def clock_says(self, now: int) -> None:
        self._now = now
        due = [call for at, call in self._later if at <= now]
        self._later = [(at, call) for at, call in self._later if at > now]
        for call in due:
            call()
        if self._reading is not None and now - self._reading.heard_at >= _SILENCE_MS:
            self._log.note("cluster_log_silent", position=self._position)
            self._read_anew()
        if self._appending_since is not None and now - self._appending_since >= _UNCONFIRMED_MS:
            self.trouble = self.trouble or _UNCONFIRMED

    def reconnected(self) -> None:
        """Another server, or the same one again: what was followed may have ended unheard, and the log may be another."""
        if self._heard is not None:
            self._read_anew()
        elif self._appended_to:
            self._look_at_end()

    def _look_at_end(self) -> None:
        """Of the seat, which does not follow: is what it has appended still there?"""
        appended_to = self._appended_to

        def checked(found: Found) -> None:
            if self._heard is not None or not self._appended_to:
                return
            self.standing = found.standing
            if self.is_regressed or found.standing is Standing.UNKNOWN:
                self._after(ASK_AGAIN_MS, self._look_at_end)

        self._continuity.check(appended_to, checked)

    # --- appending ------------------------------------------------------------------------------------------------------

    def append(self, record: bytes, after: int, done: AppendDone) -> None:
        def settled(outcome: Appended | NotNext) -> None:
            self._appending_since = None
            self.trouble = ""
            if isinstance(outcome, Appended):
                self._kept.keep(outcome.sequence, record)
                self._appended_to = outcome.sequence
            done(outcome)

        self._appending_since = self._now
        self._appender.append(record, after, settled)

    def give_up(self) -> None:
        self._appender.give_up()
        self._appending_since = None
        if self.trouble == _UNCONFIRMED:
            self.trouble = ""

    # --- following ------------------------------------------------------------------------------------------------------

    def follow(self, after: int, heard: FollowHeard) -> None:
        self._position = after
        self._appended_to = 0
        self._heard = heard
        self.standing = Standing.UNKNOWN
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
        if self._may_skip:
            self._make_reader()
            return
        self._is_making = True
        self._continuity.check(self._position, partial(self._checked, self._position))

    def _checked(self, position: int, found: Found) -> None:
        self._is_making = False
        if position != self._position:
            self._read_if_not()
            return
        if found.standing is not self.standing:
            self._log.note("cluster_log_standing", standing=found.standing.name.lower(), position=position, first=found.first,
                           last=found.last)  # fmt: skip
        self.standing, self.first = found.standing, found.first
        self._regressed_since = (self._regressed_since or self._now) if found.standing is Standing.REGRESSED else None
        if found.standing is Standing.CONTINUES:
            self._make_reader()
            return
        if found.refusal is not None:
            self._complain(found.refusal)
        elif found.standing is not Standing.UNKNOWN:
            self.trouble = self._explain(found)
        self._after(ASK_AGAIN_MS, self._read_if_not)

    def _explain(self, found: Found) -> str:
        """Why the copy cannot follow; "" while it may come right by itself."""
        has = f"this host has copied {self._position:,} records"
        match found.standing:
            case Standing.ABSENT if self._position:
                return f"log_regressed: the cluster's log {self._names.stream} is gone, and {has} of it. {_REPAIR}"
            case Standing.REGRESSED if self._regressed_since is not None and self._now - self._regressed_since >= _REGRESSED_MS:
                return (
                    f"log_regressed: the cluster's log ends at record {found.last:,}, and {has}: NATS has lost records that it "
                    f"had confirmed. {_REPAIR}"
                )
            case Standing.DIVERGED:
                return (
                    f"log_diverged: record {self._position:,} of the cluster's log is not the one that this host has copied: "
                    "NATS has lost records, and the others went on without them. Run `agent-relay cluster repair` here to see "
                    "what can be done."
                )
            case Standing.BEHIND:
                return (
                    f"The cluster's log begins at record {found.first:,}, and {has}: it needs a copy of another host's database, "
                    "and asks the host that has the seat."
                )
            case _:
                return ""

    def _make_reader(self) -> None:
        if self._heard is None:
            return
        self._is_making = True
        self._figures.log_readings += 1
        inbox = self._wire.new_inbox()
        reading = _Reading(inbox, 0, self._now)
        reading.number = self._wire.subscribe(inbox, partial(self._delivered, reading))
        request = msgspec.json.encode(reader_settings(self._names, self._position, inbox))
        self._reading = reading
        self._wire.ask(f"{API}.CONSUMER.CREATE.{self._names.stream}", request, partial(self._made, reading))

    def _made(self, reading: _Reading, message: WireMessage | None) -> None:
        self._is_making = False
        answer = read_answer(message)
        if answer is not None and answer.error is None and reading is self._reading:
            reading.heard_at = self._now
            self.trouble = ""
            return
        if answer is not None and answer.error is not None:
            if answer.error.err_code == NO_STREAM and self._may_skip:
                self._make_stream()
            else:
                self._complain(answer)
        if self._reading is reading:
            self._drop_reading()
        if self._reading is None:
            self._after(ASK_AGAIN_MS, self._read_if_not)

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
        if place.stream_sequence != self._position + 1 and not self._may_skip:
            self._log.note("cluster_log_gap", position=self._position, next=place.stream_sequence)
            self._drop_reading()
            self._checked(self._position, Found(Standing.BEHIND, place.stream_sequence, place.stream_sequence))
            return
        if message.headers.get(FORMAT_HEADER, FORMAT) != FORMAT:
            self.trouble = "The cluster's log is written in a format of a later version; update this host's agent-relay."
            self._log.note("cluster_format_unknown", sequence=place.stream_sequence)
            self.unfollow()
            return
        self._position = place.stream_sequence
        self._kept.keep(place.stream_sequence, message.payload)
        self._heard(place.stream_sequence, message.payload)

    # --- the stream -----------------------------------------------------------------------------------------------------

    def ask_last(self, done: LastDone) -> None:
        """A log that is not there is made, but never in the place of one that this host has copied."""

        def told(answer: Answer | None, is_absent: bool) -> None:
            if is_absent and self._position:
                done(0)
                return
            if is_absent:
                self._make_stream()
            is_ours = self.standing in {Standing.CONTINUES, Standing.REGRESSED}
            done(answer.state.last_seq if answer is not None and answer.state is not None and is_ours else None)

        self._ask_state(told)

    def ask_ends(self, done: Callable[[tuple[int, int] | None], None]) -> None:
        """The first and the last sequence; the first is the next one where no record is left. None: not known now. A stream that
        is not there is made."""

        def told(answer: Answer | None, is_absent: bool) -> None:
            if is_absent:
                self._make_stream()
            state = None if answer is None else answer.state
            done(None if state is None else (state.first_seq, state.last_seq))

        self._ask_state(told)

    def _ask_state(self, told: Callable[[Answer | None, bool], None]) -> None:
        """`told` hears the answer, and whether it says that there is no such stream."""

        def answered(message: WireMessage | None) -> None:
            answer = read_answer(message)
            if answer is None:  # a connection that is cut off can take seconds to notice it
                self.trouble = self.trouble or _NO_ANSWER
            elif self.trouble == _NO_ANSWER:
                self.trouble = ""
            is_absent = answer is not None and answer.error is not None and answer.error.err_code == NO_STREAM
            if answer is not None and answer.error is not None and not is_absent:
                self._complain(answer)
            told(answer, is_absent)

        self._wire.ask(f"{API}.STREAM.INFO.{self._names.stream}", b"", answered)

    def _make_stream(self) -> None:
        request = msgspec.json.encode(stream_settings(self._names, self._replicas, self._retention))

        def made(message: WireMessage | None) -> None:
            answer = read_answer(message)
            if answer is not None and answer.error is not None and answer.error.err_code != STREAM_IN_USE:
                self._complain(answer)

        self._wire.ask(f"{API}.STREAM.CREATE.{self._names.stream}", request, made)

    def _complain(self, answer: Answer) -> None:
        assert answer.error is not None
        text = f"The cluster's log {self._names.stream} refuses: {answer.error.description} ({answer.error.err_code})."
        if answer.error.err_code == NOT_AVAILABLE:
            text = _NO_MAJORITY
        if text != self.trouble:
            self.trouble = text
            self._log.note("cluster_log_refused", code=answer.error.err_code, description=answer.error.description)

    def _after(self, delay_ms: int, call: Callable[[], None]) -> None:
        self._later.append((self._now + delay_ms, call))
