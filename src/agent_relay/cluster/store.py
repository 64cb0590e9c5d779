"""The store of the seat: a batch is stored when the log has confirmed it, and then goes into the copy.

Everything that is read comes from the copy. What cannot be known yet is not said: `write` answers once the record is in the log
and in the copy, or never, because the seat is lost; then the whole core goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_relay.cluster.records import Erasure, Part, divide_batch, encode_erasure
from agent_relay.ports.cluster import Appended, LogWriter, NotNext, UnseatReason
from agent_relay.ports.log import Log
from agent_relay.ports.store import (
    Batch,
    ConversationsDone,
    DeadLetterQuery,
    DeadLettersDone,
    MessageQuery,
    MessageRow,
    MessageStore,
    OwedDone,
    OwedQuery,
    PageDone,
    PruneDone,
    SeenDone,
    Snapshot,
    StepsDone,
    StoreError,
    StoreStats,
    TrailDone,
    WriteDone,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SILENCE_MS = 15_000  # an election of NATS takes up to nine seconds
_UNCONFIRMED_MS = 10_000  # longer than an election: from here on new messages are refused, with the reason
_COPY_MS = 10_000  # our own disk has that long to take what the log has
_AGAIN_MS = 500
_TOO_LARGE = (
    "What is to be stored takes a record of {:,} KiB, and the NATS servers take {:,}. Raise max_payload in their configuration "
    "(8MB is good), and reload it."
)

Lose = Callable[[UnseatReason], None]


class ClusterStore:
    """Over a copy that is open, at `position`. `lose` is called at most once, and `write` answers nothing after it."""

    def __init__(
        self, copy: MessageStore, snapshot: Snapshot, log: LogWriter, lose: Lose, moved: Callable[[int], None],
        most_bytes: Callable[[], int], notes: Log, now: int, erased: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._copy = copy
        self._snapshot = snapshot
        self._log = log
        self._lose = lose
        self._moved = moved
        self._most_bytes = most_bytes
        self._notes = notes
        self._now = now
        self._erased = erased  # once the log says so
        self._position = snapshot.position
        self._waiting: list[tuple[Batch | Erasure, WriteDone]] = []
        self._parts: Iterator[Part] | None = None  # of the first that waits
        self._refusal: StoreError | None = None  # of the first that waits; told with the next tick, never from inside a call
        self._since: int | None = None  # when the record under way was handed over
        self._copy_failed: tuple[int, Callable[[], None], int] | None = None  # since when; what to do again, and when
        self._is_lost = False

    # --- writing --------------------------------------------------------------------------------------------------------

    def write(self, batch: Batch, done: WriteDone) -> None:
        self._queue(batch, done)

    def _queue(self, content: Batch | Erasure, done: WriteDone) -> None:
        self._waiting.append((content, done))
        if self._parts is None:
            self._begin()

    def _begin(self) -> None:
        content, _ = self._waiting[0]
        most_bytes = self._most_bytes()
        parts = [Part(Batch(), encode_erasure(content))] if isinstance(content, Erasure) else divide_batch(content, most_bytes)
        self._parts = iter(parts)
        largest = max(len(part.record) for part in parts)
        if largest > most_bytes:  # before any of it is stored: all of a batch is, or nothing
            self._refusal = StoreError(_TOO_LARGE.format(largest >> 10, most_bytes >> 10))
        else:
            self._append_next()

    def _append_next(self) -> None:
        assert self._parts is not None
        part = next(self._parts, None)
        if part is None:
            self._finish(None)
            return
        self._since = self._now
        self._log.append(part.record, self._position, lambda outcome: self._appended(part.batch, outcome))

    def _appended(self, part: Batch, outcome: Appended | NotNext) -> None:
        if self._is_lost:
            return
        if isinstance(outcome, NotNext):
            self._end(UnseatReason.SUPERSEDED)
            return
        self._since = None
        self._position = outcome.sequence
        self._moved(outcome.sequence)
        if isinstance(self._waiting[0][0], Erasure):
            self._erased()
        part.position = outcome.sequence
        self._put(part)

    def _put(self, part: Batch) -> None:
        def put(error: StoreError | None) -> None:
            if self._is_lost:
                return
            if error is None:
                self._copy_failed = None
                self._append_next()
                return
            since = self._copy_failed[0] if self._copy_failed is not None else self._now
            if self._copy_failed is None:
                self._notes.note("cluster_copy_failed", error=str(error))
            self._copy_failed = (since, lambda: self._put(part), self._now + _AGAIN_MS)

        self._copy.write(part, put)

    def _finish(self, error: StoreError | None) -> None:
        _, done = self._waiting.pop(0)
        if self._waiting:
            self._begin()
        else:
            self._parts = None
        done(error)

    def _end(self, reason: UnseatReason) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._waiting.clear()
            self._lose(reason)

    def clock_says(self, now: int) -> None:
        self._now = now
        if self._is_lost:
            return
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            self._notes.note("cluster_record_too_large", error=str(refusal))
            self._finish(refusal)
        elif self._since is not None and now - self._since >= SILENCE_MS:
            self._end(UnseatReason.LOG_SILENT)
        elif self._copy_failed is not None:
            since, again, at = self._copy_failed
            if now - since >= _COPY_MS:
                self._end(UnseatReason.COPY_FAILED)
            elif now >= at:
                self._copy_failed = (since, again, now + _AGAIN_MS)
                again()

    @property
    def trouble(self) -> str | None:
        if self._since is not None and self._now - self._since >= _UNCONFIRMED_MS:
            return (
                "The cluster's log does not confirm what was stored: NATS has no majority, or is choosing another leader. "
                "Nothing is accepted until it does"
            )
        if self._copy_failed is not None:
            return "This host's disk does not take what the cluster has stored; nothing is accepted until it does"
        return self._copy.trouble

    # --- everything else is the copy's ------------------------------------------------------------------------------------

    def open(self) -> Snapshot:
        return self._snapshot

    def find(self, query: MessageQuery, done: PageDone) -> None:
        self._copy.find(query, done)

    def fetch(self, numbers: list[int], done: PageDone) -> None:
        self._copy.fetch(numbers, done)

    def trail(self, message: MessageRow, done: TrailDone) -> None:
        self._copy.trail(message, done)

    def steps(self, messages: list[MessageRow], done: StepsDone) -> None:
        self._copy.steps(messages, done)

    def conversations(self, limit: int, done: ConversationsDone) -> None:
        self._copy.conversations(limit, done)

    def replay(self, recipient: str, after: dict[tuple[str, str], int], done: PageDone) -> None:
        self._copy.replay(recipient, after, done)

    def owed(self, query: OwedQuery, done: OwedDone) -> None:
        self._copy.owed(query, done)

    def seen(self, sender: str, since: int, limit: int, done: SeenDone) -> None:
        self._copy.seen(sender, since, limit, done)

    def dead_letters(self, query: DeadLetterQuery, done: DeadLettersDone) -> None:
        self._copy.dead_letters(query, done)

    def prune(self, before: int, limit: int, done: PruneDone) -> None:
        self._copy.prune(before, limit, done)

    def erase(self, agent: str, limit: int, done: PruneDone) -> None:
        """Here first, and then a record of the log tells every other copy. It is answered once that is confirmed: a seat that is
        lost before has erased what nobody waits for any more, and whoever asked hears nothing and asks again."""

        def told(outcome: int | StoreError) -> None:
            if isinstance(outcome, StoreError) or outcome >= limit or self._is_lost:
                done(outcome)
            else:
                self._queue(Erasure(agent), lambda error: done(outcome if error is None else error))

        self._copy.erase(agent, limit, told)

    def stats(self) -> StoreStats:
        return self._copy.stats()

    def close(self) -> None:
        self._is_lost = True
        self._log.give_up()
