"""Events on every host: the seat numbers them, one record of a stream for each flush, and every host appends the same lines.

The stream is another one than the log, so that events never delay messages; it is appended to in the same way. A host that gets
the seat first copies all that is there and then claims the numbering with a record: from then on nobody else's is accepted. An
event is published when the stream has confirmed it and this host's own copy has it, so no number that anybody has seen is given
out again. What the seat before could not append any more is lost: a `stream.gap` stands for it, unless it said goodbye.

The stream lets go of what is old, perhaps before a host has copied it, and then with its numbers. So numbers are reserved, a lot
at a time, in a document of the log: whoever does not know how far they have come goes on after the last that was reserved.

    FOLLOWING  somebody else numbers; what comes is copied
    CLAIMING   the numbering is to be ours: copy what is there, then claim
    WRITING    it is ours
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_relay.cluster.event_queue import EventQueue
from agent_relay.cluster.event_records import EventClaim, EventRecord, decode_event_record, encode_event_record
from agent_relay.cluster.jetstream import Retention
from agent_relay.cluster.log import JetStreamLog
from agent_relay.cluster.records import BadRecord
from agent_relay.events.drafts import Draft, Lost
from agent_relay.events.pages import EventQuery
from agent_relay.ports.cluster import Appended, NotNext
from agent_relay.ports.documents import Documents
from agent_relay.ports.events import CountDone, EventCopy, EventStats, NumberedEvents, OnAppended, PageDone
from agent_relay.ports.log import Log

_ASK_AGAIN_MS = 500
_LOOKED_AT_EVERY_MS = 30_000  # whether the stream ends before what we have copied: then it was lost, and begins anew
_COPY_BEHIND = 64  # records that our own disk has not taken; no more are asked for until it has
_PRUNED_EVERY_MS = 60_000
_RESERVED = 100_000  # numbers at a time; so many are passed over where it is not known how many were given out
_LARGEST_SHARE = 8  # of what the stream keeps: a record beyond that drives out too much at once
DOCUMENT = "events"


class _Reserved(Struct, frozen=True):
    numbering: str = ""
    last_seq: int = 0  # nobody gives out more before more are reserved


class _State(Enum):
    FOLLOWING = auto()
    CLAIMING = auto()
    WRITING = auto()


class ClusterEvents:
    """Implements `ports.EventStore` for the daemon that has the seat, from `open` to `close`, and copies in between.
    `new_numbering` is the name of one that begins here."""

    def __init__(
        self, log: JetStreamLog, copy: EventCopy, host: str, mark: str, new_numbering: str, retention: Retention,
        most_bytes: Callable[[], int], notes: Log, now: int,
    ) -> None:  # fmt: skip
        self._log = log
        self._copy = copy
        self._host = host
        self._mark = mark
        self._new_numbering = new_numbering
        self._retention = retention
        self._most_bytes = most_bytes
        self._notes = notes
        self._now = now
        self._state = _State.FOLLOWING
        self._on_appended: OnAppended | None = None
        # What is known of the stream, as far as it was heard.
        self._position = 0
        self._known_at = 0  # the last record that was read; where it is the stream's last, the numbers are known
        self._numbering = ""
        self._last_seq = 0  # given out
        self._last_ts = 0
        self._message: int | None = None
        self._is_over = False  # the last record was a goodbye
        self._highest_term = 0
        self._wall_ms = 0
        # Our own part in it.
        self._term = 0
        self._claimed: Callable[[], None] | None = None
        self._is_appending = False  # the claim, or events
        self._claimed_seq = 0  # the claim says that numbers go on after this
        self._target: int | None = None  # how far to copy before we claim
        self._due_at = 0
        self._pruned_at = now
        self._is_paused = False
        self._is_first_claim = True
        self._documents: Documents | None = None
        self._reserved = _Reserved()
        self._is_reserving = False
        self._queue = EventQueue(notes)
        self._goodbye: Callable[[], None] | None = None

    def start(self) -> None:
        self._copy.open(self._copied)
        self._position, self._numbering = self._copy.position, self._copy.numbering
        self._last_seq, self._last_ts, self._message = self._copy.last_seq, self._copy.last_ts, self._copy.last_message
        self._known_at = self._position
        # The last one once more, where it is still there: it says whether something is missing after it.
        self._position = max(0, self._position - 1)
        self._follow()

    def stop(self) -> None:
        """Blocks until what was copied is on the disk."""
        self._log.give_up()
        self._log.unfollow()
        self._copy.close()

    def reconnected(self) -> None:
        self._log.reconnected()

    def clock_says(self, now: int, wall_ms: int) -> None:
        self._now, self._wall_ms = now, wall_ms
        self._log.clock_says(now)
        if self._is_paused and not self._is_copy_behind:
            self._is_paused = False
            self._follow()
        if now >= self._due_at and self._state is not _State.WRITING:
            self._look()
        if self._state is _State.WRITING:
            self._write_next()
        if now - self._pruned_at >= _PRUNED_EVERY_MS:
            self._pruned_at = now
            self._copy.prune(wall_ms - self._retention.age_ms)

    # --- copying --------------------------------------------------------------------------------------------------------

    @property
    def _is_writing(self) -> bool:
        return self._state is _State.WRITING

    @property
    def _is_copy_behind(self) -> bool:
        return self._copy.waiting >= _COPY_BEHIND

    def _follow(self) -> None:
        self._log.follow(self._position, self._heard)

    def _look(self) -> None:
        self._due_at = self._now + (_ASK_AGAIN_MS if self._state is _State.CLAIMING else _LOOKED_AT_EVERY_MS)
        self._log.ask_ends(self._looked)

    def _looked(self, ends: tuple[int, int] | None) -> None:
        if ends is None or self._state is _State.WRITING or self._is_appending:
            return
        first, last = ends
        if last < first:  # nothing is kept any more
            self._position = max(self._position, last)
        if last < self._position:  # or a leader that is cut off says so: then we copy again what we have, and nothing is doubled
            self._notes.note("cluster_events_regressed", position=self._position, last=last)
            self._position = last
            self._follow()
        self._target = last
        self._claim_if_there()

    def _heard(self, sequence: int, data: bytes) -> None:
        if sequence <= self._position or self._is_writing:
            return
        self._position = sequence
        try:
            record = decode_event_record(data)
        except BadRecord as error:
            self._notes.note("cluster_events_unreadable", sequence=sequence, error=str(error))
        else:
            self._take(sequence, record)
            self._known_at = sequence
        if self._is_copy_behind and not self._is_writing:
            self._is_paused = True
            self._log.unfollow()
        self._claim_if_there()

    def _take(self, sequence: int, record: EventRecord | EventClaim) -> None:
        if isinstance(record, EventClaim) and (record.mark, record.term) == (self._mark, self._term) and self._is_appending:
            self._log.give_up()  # it came with the stream before the answer did
            self._begin_writing(sequence)
            return
        if record.numbering != self._numbering:
            self._numbering, self._message, self._last_seq = record.numbering, None, 0
        self._highest_term = max(self._highest_term, record.term)
        if isinstance(record, EventClaim):
            self._is_over = False
            self._last_seq = max(self._last_seq, record.last_seq)
            self._put_nothing(sequence)
            return
        self._is_over = record.is_last
        self._last_ts = max(self._last_ts, record.ts)
        self._note_message(record.message)
        self._last_seq = max(self._last_seq, record.first_seq + record.count - 1)
        self._put(record, sequence)

    def _put_nothing(self, sequence: int) -> None:
        """The copy is to know the numbering, and how far it has come."""
        self._copy.put(NumberedEvents(self._numbering, self._last_seq + 1, 0, self._last_ts, b"", sequence))

    def _put(self, record: EventRecord, sequence: int) -> None:
        self._copy.put(NumberedEvents(record.numbering, record.first_seq, record.count, record.ts, record.data, sequence))
        if record.message and not record.count:
            self._copy.cover(record.message)

    def _note_message(self, number: int) -> None:
        if number:
            self._message = max(self._message or 0, number)

    def _copied(self, first_seq: int, count: int, data: bytes) -> None:
        if self._on_appended is not None:
            self._on_appended(first_seq, count, data)

    # --- claiming -------------------------------------------------------------------------------------------------------

    def claim(self, term: int, document: bytes, claimed: Callable[[], None]) -> None:
        """The seat is ours: so is the numbering, as soon as we have all there is; `claimed` is called then. `document` is what
        the log has under our name."""
        self._term = term
        self._reserved = _read_reserved(document)
        self._claimed = claimed
        self._is_first_claim = True
        self._begin_claiming()

    def _begin_claiming(self) -> None:
        self._state = _State.CLAIMING
        self._target = None
        self._look()

    def _claim_if_there(self) -> None:
        if self._state is not _State.CLAIMING or self._target is None or self._position < self._target or self._is_appending:
            return
        if self._highest_term > self._term:  # the seat is another's by now
            self._state = _State.FOLLOWING
            return
        self._is_appending = True
        numbering = self._numbering or self._new_numbering
        if self._reserved.numbering != numbering:
            self._reserved = _Reserved(numbering)
        self._claimed_seq = self._last_seq
        if self._known_at != self._position:
            self._is_over = False
            self._claimed_seq = max(self._last_seq, self._reserved.last_seq)
        record = encode_event_record(EventClaim(numbering, self._term, self._host, self._mark, self._claimed_seq))
        self._log.append(record, self._position, self._claim_answered)

    def _claim_answered(self, outcome: Appended | NotNext) -> None:
        if self._state is not _State.CLAIMING:
            return
        if isinstance(outcome, Appended):
            self._begin_writing(outcome.sequence)
        else:
            self._is_appending = False
            self._begin_claiming()

    def _begin_writing(self, sequence: int) -> None:
        self._log.unfollow()
        self._is_appending = self._is_paused = False
        self._state = _State.WRITING
        self._position = self._known_at = sequence
        self._last_seq = self._claimed_seq
        if not self._numbering:
            self._numbering = self._new_numbering
            self._copy.adopt(self._numbering)
            self._is_over = self._copy.is_whole
        self._put_nothing(sequence)
        if self._is_first_claim and not self._is_over:
            self._queue.add_first(Lost(self._last_ts or self._wall_ms, reason="killed"))
        self._is_first_claim = False
        claimed, self._claimed = self._claimed, None
        if claimed is not None:
            claimed()
        self._write_next()

    # --- writing --------------------------------------------------------------------------------------------------------

    def keep_in(self, documents: Documents) -> None:
        """Numbers are reserved there; none is given out before."""
        self._documents = documents
        self._write_next()

    def _reserve_if_due(self) -> None:
        wanted = self._last_seq + _RESERVED
        if self._documents is None or self._is_reserving or self._reserved.last_seq >= wanted - _RESERVED // 2:
            return
        self._is_reserving = True
        reserved, documents = _Reserved(self._numbering, wanted), self._documents

        def kept() -> None:
            if documents is self._documents:
                self._is_reserving = False
                self._reserved = reserved
                self._write_next()

        documents.put(DOCUMENT, msgspec.json.encode(reserved), kept)

    def _write_next(self) -> None:
        if not self._is_writing or self._is_appending or self._is_copy_behind:
            return
        self._reserve_if_due()
        most_bytes = self._most_bytes()
        usual_bytes = min(most_bytes, self._retention.size_bytes // _LARGEST_SHARE)
        most = max(0, self._reserved.last_seq - self._last_seq)
        taken = self._queue.take(self._last_seq + 1, self._last_ts, most, usual_bytes, most_bytes)
        is_last = self._goodbye is not None and self._queue.is_empty
        if not taken.count and not taken.message and not is_last:
            return
        record = EventRecord(
            self._numbering, self._term, self._last_seq + 1, taken.count, taken.ts, taken.message, is_last, taken.data
        )  # fmt: skip
        self._is_appending = True
        self._log.append(encode_event_record(record), self._position, partial(self._written, record))

    def _written(self, record: EventRecord, outcome: Appended | NotNext) -> None:
        self._is_appending = False
        if self._state is not _State.WRITING:
            return
        if isinstance(outcome, NotNext):  # the seat is lost, as a rule; the log finds that out
            self._queue.put_back()
            self._notes.note("cluster_events_refused", sequence=outcome.sequence)
            self._begin_claiming()
            self._follow()
            return
        self._queue.settle()
        self._position = self._known_at = outcome.sequence
        self._last_seq += record.count
        self._last_ts = record.ts
        self._note_message(record.message)
        self._put(record, outcome.sequence)
        if record.is_last:
            self._is_over = True
            goodbye, self._goodbye = self._goodbye, None
            if goodbye is not None:
                goodbye()
        self._write_next()

    # --- ports.EventStore, while this host has the seat -------------------------------------------------------------------

    def open(self, on_appended: OnAppended) -> int:
        self._on_appended = on_appended
        return self._copy.last_seq

    @property
    def last_seq(self) -> int:
        return self._copy.last_seq

    @property
    def last_message(self) -> int | None:
        """Not known before the numbering is ours: others may have told more."""
        return self._message if self._state is _State.WRITING else None

    def cover(self, message: int) -> None:
        self._queue.cover(message)
        self._write_next()

    def append(self, drafts: list[Draft]) -> None:
        self._queue.add(drafts)
        self._write_next()

    def say_goodbye(self, said: Callable[[], None]) -> None:
        """Everything was told: whoever has the seat next need not say that something may be missing."""
        self._goodbye = said
        self._write_next()

    def read(self, query: EventQuery, done: PageDone) -> None:
        self._copy.read(query, done)

    def prune(self, before_ms: int) -> None:
        self._copy.prune(before_ms)

    def erase(self, agent: str, done: CountDone) -> None:
        """Out of this host's copy; the stream keeps them until they are old, as the log keeps messages."""
        self._copy.erase(agent, done)

    def stats(self) -> EventStats:
        found = self._copy.stats()
        confirmed = max(0, self._last_seq - self._copy.last_seq) if self._is_writing else 0  # and not in our own copy yet
        waiting = confirmed + self._queue.waiting
        return replace(found, waiting=waiting, lost=self._queue.lost, last_error=found.last_error or self._log.trouble)

    def close(self) -> None:
        """The seat is gone: what was not written is for whoever has it next to tell as missing."""
        self._on_appended = self._claimed = self._goodbye = self._documents = None
        self._is_reserving = False
        self._queue.clear()
        self._log.give_up()
        self._is_appending = False
        self._state = _State.FOLLOWING
        self._follow()


def _read_reserved(document: bytes) -> _Reserved:
    try:
        return msgspec.json.decode(document, type=_Reserved) if document else _Reserved()
    except msgspec.MsgspecError:
        return _Reserved()
