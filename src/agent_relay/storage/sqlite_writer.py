"""The thread that owns the only writing connection: group commits, the search index, pruning.

It takes everything that is queued and writes it in one transaction, so the busier it is the fewer fsyncs a message costs. A
few messages and nothing else are one statement, and that is a transaction by itself.
When such a transaction fails, each batch is tried on its own, and each `done` hears the truth about its own batch.
Between writes it fills the index: for a read that waits for it at once, otherwise after a quarter of a second of silence.
Between writes, too, it clears the files of what was deleted: at once for an agent that is erased, else once an hour.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from msgspec import Struct

from agent_relay.ports.store import Batch, MessageRow, PruneDone, StoreError, StoreUnusable, WriteDone
from agent_relay.storage.posting import Post, post_answer
from agent_relay.storage.sqlite_backlog import write_backlog
from agent_relay.storage.sqlite_erase import empty_wal, erase_agent, merge_index
from agent_relay.storage.sqlite_files import Durability, connect_writer, is_locked, needs_new_connection, report
from agent_relay.storage.sqlite_index import index_chunk
from agent_relay.storage.sqlite_insert import Statement, write_alone, write_messages
from agent_relay.storage.sqlite_prune import prune_messages, return_pages
from agent_relay.storage.sqlite_rows import read_meta, write_meta, write_rest
from agent_relay.storage.sqlite_sent import LISTED_EVERY, SentId, ids_of, list_ids, read_unlisted
from agent_relay.storage.sqlite_snapshot import count_messages, last_number
from agent_relay.storage.times import lag_of

_IDLE_SECONDS = 0.25
_CLEARED_EVERY_S = 3_600.0  # after pruning: it reads the whole index
_WAL_TRIES = 20  # somebody else may be reading for long: then the next clearing empties the WAL

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class _Write(Struct):
    batch: Batch
    done: WriteDone


class _Prune(Struct):
    before: int
    limit: int
    done: PruneDone


class _Clearing(Struct):
    """The files are being cleared of what was deleted. `done` are told when nothing of it is left."""

    done: list[Callable[[], None]]
    is_merging: bool = True
    begins: bool = True
    tries: int = 0


class _CatchUp(Struct):
    then: Callable[[StoreError | None], None]  # called in the writer's thread
    to: int = 0


class _Change(Struct):
    """What a transaction does to the numbers the writer keeps, once it is committed."""

    sent: list[SentId]  # of its messages
    newest: int
    lag_ms: int


_Item = _Write | _Prune | _CatchUp | None  # None: stop


class _NotBegun(StoreError):  # noqa: N818 - named by the condition, as its siblings are
    """The file could not even be locked: no batch is to blame, and trying each on its own would only take longer."""


class Writer:
    def __init__(self, path: Path, durability: Durability, connection: sqlite3.Connection, post: Post) -> None:
        self._path = path
        self._durability: Durability = durability
        self._connection: sqlite3.Connection | None = connection
        self._post = post
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._readers: list[_CatchUp] = []  # reads that wait for the index
        self._index_failed = False  # then it waits for a write that works, instead of failing four times a second
        self._last_failure = ""  # what the log was told since the last transaction that worked
        self._idle = False
        self._stopping = False
        self._clearing: _Clearing | None = None
        self._uncleared_since: float | None = None
        self.last_number = last_number(connection)
        self.count = count_messages(connection)
        meta = read_meta(connection)
        self.indexed_to = meta["indexed_to"]
        self._lag_ms = meta["lag_ms"]
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

    def stop(self) -> None:
        """Returns when everything given before is written; the connection stays open for `finish`."""
        self._queue.put(None)
        self._thread.join()

    def finish(self) -> None:
        """After every reader is gone: saves the count, folds the WAL into the file, closes."""
        if self._uncounted:
            self._transact(self._save_count)
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            _log.warning("The WAL of %s stays beside it: %s", self._path, error)
        connection.close()

    def _run(self) -> None:
        while not self._stopping:
            items = self._take()
            self._handle(items)
            if self._readers or (self._idle and self._behind):
                self._advance_index()
            self._clear()
        self._end_clearing()
        for reader in self._readers:
            reader.then(StoreError("The store is closing."))

    @property
    def _behind(self) -> bool:
        return not self.caught_up and not self._index_failed

    def _take(self) -> list[_Item]:
        """Waits for something to do; everything that is queued by then, or nothing: then there is time for the index."""
        busy = self._readers or self._clearing or (self._idle and self._behind)
        try:
            items = [self._queue.get_nowait() if busy else self._queue.get(timeout=_IDLE_SECONDS if self._behind else None)]
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
            outcome = self._execute(*alone, change)
        else:
            outcome = self._transact(partial(self._write_all, batches, messages, change))
        if not isinstance(outcome, StoreError):
            self._note(outcome)
        elif len(writes) > 1 and not isinstance(outcome, _NotBegun):
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
            write_rest(connection, batch)
            write_backlog(connection, batch)
        if self._is_listing_due(change):
            write_meta(connection, counted=self.count + len(change.sent), counted_to=change.newest)
            list_ids(connection, self._unlisted + change.sent)
        return change

    def _note(self, change: _Change) -> None:
        """What is on the disk now."""
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

    def _save_count(self, connection: sqlite3.Connection) -> None:
        write_meta(connection, counted=self.count, counted_to=self.last_number)

    def _prune(self, order: _Prune) -> None:
        def remove(connection: sqlite3.Connection) -> int:
            removed = prune_messages(connection, order.before, order.limit)
            write_meta(connection, counted=self.count - removed, counted_to=self.last_number)
            return removed

        outcome = self._transact(remove)
        if not isinstance(outcome, StoreError):
            self.count -= outcome
            self._uncounted = 0
            self._shrink()
            if outcome and self._uncleared_since is None:
                self._uncleared_since = time.monotonic()
        post_answer(self._post, partial(order.done, outcome))

    # --- erasing --------------------------------------------------------------------------------------------------------

    def _erase(self, agent: str, limit: int, done: PruneDone) -> None:
        """The last slice is answered when the files are clear of it, too."""

        def remove(connection: sqlite3.Connection) -> tuple[int, int]:
            list_ids(connection, self._unlisted)  # so that they can be taken out of one place
            looked_at, gone = erase_agent(connection, agent, limit)
            write_meta(connection, counted=self.count - gone, counted_to=self.last_number)
            return looked_at, gone

        outcome = self._transact(remove)
        if isinstance(outcome, StoreError):
            post_answer(self._post, partial(done, outcome))
            return
        looked_at, gone = outcome
        self.count -= gone
        self._uncounted = 0
        self._unlisted = []
        if looked_at >= limit:
            post_answer(self._post, partial(done, looked_at))
            return
        told = [] if self._clearing is None else self._clearing.done
        self._clearing = _Clearing([*told, partial(post_answer, self._post, partial(done, looked_at))])

    def _clear(self) -> None:
        """One step, if there is one to do."""
        since = self._uncleared_since
        if self._clearing is None and since is not None and time.monotonic() - since >= _CLEARED_EVERY_S:
            self._clearing = _Clearing([])
        clearing = self._clearing
        if clearing is None:
            return
        self._uncleared_since = None
        if clearing.is_merging:
            more = self._transact(partial(merge_index, begins=clearing.begins))
            clearing.begins = False
            clearing.is_merging = more is True  # where it failed, the next clearing tries again
            return
        clearing.tries += 1
        if self._empty_wal() or clearing.tries >= _WAL_TRIES:
            self._shrink()
            self._end_clearing()

    def _empty_wal(self) -> bool:
        try:
            return self._connection is not None and empty_wal(self._connection)
        except sqlite3.Error as error:
            _log.info("The WAL of %s was not emptied this time: %s", self._path, error)
            return False

    def _end_clearing(self) -> None:
        clearing, self._clearing = self._clearing, None
        for tell in clearing.done if clearing is not None else ():
            tell()

    def _shrink(self) -> None:
        try:
            if self._connection is not None:
                return_pages(self._connection)
        except sqlite3.Error as error:
            _log.info("%s was not made smaller this time: %s", self._path, error)

    def _advance_index(self) -> None:
        outcome = self._transact(lambda connection: index_chunk(connection, self.indexed_to))
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

    def _transact(self, action: Callable[[sqlite3.Connection], _T]) -> _T | StoreError:
        """Runs the action as one transaction: all of it is on the disk afterwards, or nothing and the reason."""
        try:
            if self._connection is None:
                self._connection = connect_writer(self._path, self._durability)
            self._connection.execute("BEGIN IMMEDIATE")
        except (sqlite3.Error, StoreUnusable) as error:
            self._abandon(error)
            return _NotBegun(str(report(self._path, error)))
        try:
            result = action(self._connection)
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - rows that cannot be stored fail their own batch, never the thread
            self._abandon(error)
            return report(self._path, error)
        self._last_failure = ""
        return result

    def _execute(self, statement: str, values: list[Any], change: _Change) -> _Change | StoreError:
        """As `_transact`, for one statement."""
        try:
            if self._connection is None:
                self._connection = connect_writer(self._path, self._durability)
            self._connection.execute(statement, values)
        except Exception as error:  # noqa: BLE001 - as there
            self._abandon(error)
            text = str(report(self._path, error))
            return _NotBegun(text) if self._connection is None or is_locked(error) else StoreError(text)
        self._last_failure = ""
        return change

    def _abandon(self, error: Exception) -> None:
        """Back to where the transaction began; with a new connection where the old one cannot be trusted."""
        text = str(report(self._path, error))
        if text != self._last_failure:  # a full disk fails every write, and would fill the log too
            self._last_failure = text
            _log.warning("Nothing can be stored now: %s", text)
        connection = self._connection
        if connection is None:
            return
        try:
            if connection.in_transaction:
                connection.rollback()
        except sqlite3.Error:
            self._connection = None
        if self._connection is None or needs_new_connection(error):
            self._connection = None
            connection.close()
