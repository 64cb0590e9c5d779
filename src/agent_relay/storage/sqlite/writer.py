"""The thread that owns the only writing connection: group commits, the search index, pruning.

It takes everything that is queued and writes it in one transaction, so the busier it is the fewer fsyncs a message costs. A
few messages and nothing else are one statement, and that is a transaction by itself.
When such a transaction fails, each batch is tried on its own, and each `done` hears the truth about its own batch. How that
truth is found after an error of the disk is in `commits`.
Between writes it fills the index: for a read that waits for it at once, otherwise after a quarter of a second of silence.
Between writes, too, it clears the files of what was deleted (`clearing`).
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from msgspec import Struct

from agent_relay.ports.store import Batch, MessageRow, PruneDone, StoreError, WriteDone
from agent_relay.storage.posting import Post, post_answer
from agent_relay.storage.sqlite.backlog import adopt_within, write_backlog
from agent_relay.storage.sqlite.backup import remove_copies
from agent_relay.storage.sqlite.clearing import Clearing
from agent_relay.storage.sqlite.commits import Commits, GivenUp, NotBegun
from agent_relay.storage.sqlite.files import Durability
from agent_relay.storage.sqlite.index import index_chunk
from agent_relay.storage.sqlite.insert import Statement, write_alone, write_messages
from agent_relay.storage.sqlite.loss import Mark
from agent_relay.storage.sqlite.removal import erase_agent, prune_messages
from agent_relay.storage.sqlite.rows import read_meta, write_meta, write_place, write_rest
from agent_relay.storage.sqlite.sent import LISTED_EVERY, SentId, ids_of, list_ids, read_unlisted
from agent_relay.storage.sqlite.snapshot import count_messages, has_message, last_number
from agent_relay.storage.times import lag_of

_IDLE_SECONDS = 0.25

_log = logging.getLogger(__name__)


class _Write(Struct):
    batch: Batch
    done: WriteDone


class _Prune(Struct):
    before: int
    limit: int
    done: PruneDone


class _CatchUp(Struct):
    then: Callable[[StoreError | None], None]  # called in the writer's thread
    to: int = 0


class _Change(Struct):
    """The change of a transaction to the numbers the writer keeps, once it is committed."""

    sent: list[SentId]  # of its messages
    newest: int
    lag_ms: int


_Item = _Write | _Prune | _CatchUp | None  # None: stop


class Writer:
    def __init__(self, path: Path, durability: Durability, connection: sqlite3.Connection, post: Post, mark: Mark) -> None:
        self._path = path
        self._commits = Commits(path, durability, connection)
        self._post = post
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._readers: list[_CatchUp] = []  # reads that wait for the index
        self._index_failed = False  # then it waits for a write that works, instead of failing four times a second
        self._idle = False
        self._stopping = False
        self._clearing = Clearing(path, self._commits)
        self.last_number = last_number(connection)
        self.count = count_messages(connection)
        meta = read_meta(connection)
        self.indexed_to = meta["indexed_to"]
        self._lag_ms = meta["lag_ms"]
        self._removed = meta["removed"]
        self._mark = mark
        self._leave_mark()
        self._uncounted = 0
        self._unlisted = read_unlisted(connection)  # of the messages after `listed_to`
        self._thread = Thread(target=self._run, name="relay-store-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def write(self, batch: Batch, done: WriteDone) -> None:
        self._queue.put(_Write(batch, done))

    def prune(self, before: int, limit: int, done: PruneDone) -> None:
        self._queue.put(_Prune(before, limit, done))

    def catch_up(self, then: Callable[[StoreError | None], None]) -> None:
        """Calls `then`, in the writer's thread, once everything written before is in the index."""
        self._queue.put(_CatchUp(then))

    def erase(self, agent: str, limit: int, done: PruneDone) -> None:
        def go_on(failure: StoreError | None) -> None:
            if failure is None:
                self._erase(agent, limit, done)
            else:
                post_answer(self._post, partial(done, failure))

        self.catch_up(go_on)

    @property
    def caught_up(self) -> bool:
        return self.indexed_to >= self.last_number

    @property
    def trouble(self) -> str | None:
        """Why nothing is stored until it is mended."""
        return self._commits.trouble

    @property
    def failure(self) -> str:
        """Why the last write failed; "" since one worked."""
        return self._commits.failure

    def stop(self) -> None:
        """Returns when everything given before is written, or in doubt; the connection stays open for `finish`."""
        self._commits.give_up()
        self._queue.put(None)
        self._thread.join()

    def finish(self) -> None:
        """After every reader is gone: saves the count, folds the WAL into the file, closes."""
        if self._uncounted and self.trouble is None:
            with suppress(GivenUp):
                self._commits.transact(self._save_count)
        self._commits.close()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._handle(self._take())
                self._commits.hold_if_severed()
                if self._readers or (self._idle and self._behind):
                    self._advance_index()
                self._clearing.step()
        except GivenUp:
            _log.error("%s is closed; it is not known whether the last messages were stored: %s.", self._path, self.trouble)
        self._clearing.end()
        for reader in self._readers:
            reader.then(StoreError("The store is closing."))

    @property
    def _behind(self) -> bool:
        return not self.caught_up and not self._index_failed

    @property
    def _patience_s(self) -> float | None:
        """The time until there is something to do, unless somebody asks; None: there is nothing."""
        return _IDLE_SECONDS if self._behind else self._clearing.due_in_s

    def _take(self) -> list[_Item]:
        """Waits for something to do; everything that is queued by then, or nothing: then there is time for the index."""
        busy = self._readers or self._clearing.is_under_way or (self._idle and self._behind)
        try:
            items = [self._queue.get_nowait() if busy else self._queue.get(timeout=self._patience_s)]
        except Empty:
            self._idle = True
            return []
        while not self._queue.empty():  # nobody else takes from it
            items.append(self._queue.get_nowait())
        self._idle = False
        return items

    def _handle(self, items: list[_Item]) -> None:
        writes: list[_Write] = []
        for item in items:
            if isinstance(item, _Write):
                writes.append(item)
                continue
            self._commit(writes)
            writes = []
            if isinstance(item, _Prune):
                self._prune(item)
            elif isinstance(item, _CatchUp):
                item.to = self.last_number
                self._readers.append(item)
            else:
                self._stopping = True
        self._commit(writes)

    def _commit(self, writes: list[_Write]) -> None:
        if not writes:
            return
        batches = [write.batch for write in writes]
        messages = batches[0].messages if len(batches) == 1 else [row for batch in batches for row in batch.messages]
        change = self._foresee(batches, messages)
        alone = self._in_one_statement(batches, messages, change)
        if alone is not None:
            outcome = self._commits.execute(*alone, partial(has_message, number=messages[0].number)) or change
        else:
            outcome = self._commits.transact(partial(self._write_all, batches, messages, change))
        if not isinstance(outcome, StoreError):
            self._note(outcome)
        elif len(writes) > 1 and not isinstance(outcome, NotBegun):
            for write in writes:
                self._commit([write])
            return
        failure = outcome if isinstance(outcome, StoreError) else None
        for write in writes:
            post_answer(self._post, partial(write.done, failure))

    def _foresee(self, batches: list[Batch], messages: list[MessageRow]) -> _Change:
        newest, lag_ms = self.last_number, self._lag_ms
        if messages:
            newest = max(newest, messages[-1].number)
        for batch in batches:
            if batch.messages:  # a batch is one turn, and one moment: its last message speaks for all of them
                last = batch.messages[-1]
                lag_ms = max(lag_ms, lag_of(last.number, last.ts))
        return _Change(ids_of(messages), newest, lag_ms)

    def _is_listing_due(self, change: _Change) -> bool:
        """Together with the count: neither is worth a transaction of its own."""
        return len(self._unlisted) + len(change.sent) >= LISTED_EVERY

    def _in_one_statement(self, batches: list[Batch], messages: list[MessageRow], change: _Change) -> Statement | None:
        if (
            not messages
            or self._is_listing_due(change)
            or change.lag_ms > self._lag_ms
            or any(batch.has_more for batch in batches)
        ):
            return None
        try:
            return write_alone(messages)
        except Exception:  # noqa: BLE001 - whatever is wrong with a row comes out, and is told, in the transaction
            return None

    def _write_all(
        self, batches: list[Batch], messages: list[MessageRow], change: _Change, connection: sqlite3.Connection
    ) -> _Change:
        write_messages(connection, messages)
        if change.lag_ms > self._lag_ms:
            write_meta(connection, lag_ms=change.lag_ms)
        for batch in batches:
            if batch.term is not None:
                adopt_within(connection, read_meta(connection)["checkpoint"], change.newest)
                write_place(connection, term=batch.term)
            write_rest(connection, batch)
            write_backlog(connection, batch)
        if batches[-1].position is not None:
            write_place(connection, position=batches[-1].position)
        if self._is_listing_due(change):
            write_meta(connection, counted=self.count + len(change.sent), counted_to=change.newest)
            list_ids(connection, self._unlisted + change.sent)
        return change

    def _note(self, change: _Change) -> None:
        """Notes what is on the disk now."""
        self._index_failed = False
        self.count += len(change.sent)
        self.last_number = change.newest
        self._lag_ms = change.lag_ms
        if self._is_listing_due(change):
            self._uncounted = 0
            self._unlisted = []
        else:
            self._uncounted += len(change.sent)
            self._unlisted += change.sent
        self._leave_mark()

    def _leave_mark(self) -> None:
        self._mark.write(self.last_number, self.count + self._removed, self._commits.batch)

    def _save_count(self, connection: sqlite3.Connection) -> None:
        write_meta(connection, counted=self.count, counted_to=self.last_number)

    def _save_removal(self, connection: sqlite3.Connection, gone: int) -> None:
        write_meta(connection, counted=self.count - gone, counted_to=self.last_number, removed=self._removed + gone)

    def _note_removal(self, gone: int) -> None:
        self.count -= gone
        self._removed += gone
        self._uncounted = 0
        self._leave_mark()

    def _prune(self, order: _Prune) -> None:
        def remove(connection: sqlite3.Connection) -> int:
            removed = prune_messages(connection, order.before, order.limit)
            self._save_removal(connection, removed)
            return removed

        outcome = self._commits.transact(remove)
        if not isinstance(outcome, StoreError):
            self._note_removal(outcome)
            self._clearing.shrink()
            if outcome:
                self._clearing.note_deleted()
        post_answer(self._post, partial(order.done, outcome))

    def _erase(self, agent: str, limit: int, done: PruneDone) -> None:
        """The last slice is answered when the files are clear of it, too."""

        def remove(connection: sqlite3.Connection) -> tuple[int, int]:
            list_ids(connection, self._unlisted)  # so that they can be taken out of one place
            looked_at, gone = erase_agent(connection, agent, limit)
            self._save_removal(connection, gone)
            return looked_at, gone

        outcome = self._commits.transact(remove)
        if isinstance(outcome, StoreError):
            post_answer(self._post, partial(done, outcome))
            return
        remove_copies(self._path, at_once=True)
        looked_at, gone = outcome
        self._note_removal(gone)
        self._unlisted = []
        if looked_at >= limit:
            post_answer(self._post, partial(done, looked_at))
            return
        self._clearing.begin(partial(post_answer, self._post, partial(done, looked_at)))

    def _advance_index(self) -> None:
        outcome = self._commits.transact(lambda connection: index_chunk(connection, self.indexed_to))
        if isinstance(outcome, StoreError):
            self._index_failed = True
            waiting, self._readers = self._readers, []
            for reader in waiting:
                reader.then(outcome)
            return
        # Nothing left after the watermark also happens when the newest messages were pruned before they were indexed.
        self.indexed_to = outcome if outcome > self.indexed_to else self.last_number
        ready = [reader for reader in self._readers if reader.to <= self.indexed_to]
        self._readers = [reader for reader in self._readers if reader.to > self.indexed_to]
        for reader in ready:
            reader.then(None)
