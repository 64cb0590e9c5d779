"""Messages in one SQLite file: `SqliteStore`, put together from a writer, a reader and a check of the file.

Theory of operation. The loop never touches the file after `open`. `write` and `prune` go to the writer's thread, reads
to the reader's. A search for words first asks the writer to bring the index up to what is durable. The answers
come back through `post`. The file is in WAL mode, so readers and the writer do not wait for each other.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from agent_relay.ports.store import (
    Batch,
    ConversationsDone,
    DeadLetterQuery,
    DeadLettersDone,
    MessageQuery,
    MessageRow,
    OwedDone,
    OwedQuery,
    PageDone,
    PruneDone,
    SeenDone,
    Snapshot,
    StepsDone,
    StoreError,
    StoreStats,
    StoreUnusable,
    TrailDone,
    WriteDone,
)
from agent_relay.storage.posting import Post, post_answer
from agent_relay.storage.sqlite import files, reads
from agent_relay.storage.sqlite.backlog import read_owed
from agent_relay.storage.sqlite.backup import keep_copy, remove_copies
from agent_relay.storage.sqlite.check import BackgroundCheck, check_ends, check_pages
from agent_relay.storage.sqlite.errors import describe_damage, refuse
from agent_relay.storage.sqlite.loss import Mark, Reached, find_loss, find_reached, handle_loss, note_path, read_note
from agent_relay.storage.sqlite.migrate import apply_migrations, newest_version, version_of
from agent_relay.storage.sqlite.sent import read_seen
from agent_relay.storage.sqlite.snapshot import load_snapshot
from agent_relay.storage.sqlite.writer import Writer

CHECKED_AT_START_BYTES = 32 * 1024 * 1024  # reading this much takes some 60 ms; a larger file is checked in the background


class SqliteStore:
    """`is_copy`: of a log that is the truth. Then what a crash has taken is no loss, for the log brings it again."""

    def __init__(
        self, path: str | os.PathLike[str], post: Post, durability: files.Durability = "full", *, is_copy: bool = False
    ) -> None:
        # SQLite follows links and keeps the WAL beside the file itself; so do the mark and whatever else belongs to it.
        self._path = Path(path).resolve() if os.path.islink(path) else Path(path)
        self._post = post
        self._durability: files.Durability = durability
        self._is_copy = is_copy
        self._writer: Writer | None = None
        self._reader: reads.Reader | None = None
        self._check: BackgroundCheck | None = None
        self._lock: files.DatabaseLock | None = None
        self._mark: Mark | None = None
        self._lost = ""
        self._conversations = reads.Conversations()  # used by the reader's thread alone

    def open(self) -> Snapshot:
        files.make_file(self._path)
        self._lock = files.DatabaseLock(self._path)
        try:
            snapshot, self._writer, large = self._open()
        except BaseException:
            self._release()
            raise
        self._reader = reads.Reader(self._path, self._post)
        self._writer.start()
        self._reader.start()
        if large:
            self._check = BackgroundCheck(self._path)
            self._check.start()
        return snapshot

    def _open(self) -> tuple[Snapshot, Writer, bool]:
        try:
            files.rewrite_wal(self._path)  # nobody knows whether what a crash has left was flushed
            connection = files.connect_writer(self._path, self._durability)
        except (sqlite3.Error, OSError) as error:
            raise refuse(self._path, error) from error
        try:
            large = self._prepare(connection)
            self._mark = self._make_mark()
            if not self._is_copy:
                self._look_for_loss(connection, self._mark.read())
            snapshot = load_snapshot(connection, is_copy=self._is_copy)
            writer = Writer(self._path, self._durability, connection, self._post, self._mark)
        except sqlite3.Error as error:
            connection.close()
            raise refuse(self._path, error) from error
        except BaseException:
            connection.close()
            raise
        return snapshot, writer, large

    def _make_mark(self) -> Mark:
        try:
            return Mark(self._path)
        except OSError as error:
            raise StoreUnusable(
                f"{self._path}-mark cannot be written ({error.strerror}). Free some space or fix its permissions."
            ) from None

    def _look_for_loss(self, connection: sqlite3.Connection, mark: Reached | None) -> None:
        loss = find_loss(find_reached(connection), mark)
        if loss is not None and mark is not None:
            handle_loss(connection, self._path, loss, mark)
        self._lost = read_note(self._path)

    def _release(self) -> None:
        mark, self._mark = self._mark, None
        lock, self._lock = self._lock, None
        if mark is not None:
            mark.close()
        if lock is not None:
            lock.release()

    def _prepare(self, connection: sqlite3.Connection) -> bool:
        """Raises StoreUnusable or sqlite3.Error unless the file can be worked with; whether its full check is still to do."""
        large = self._path.stat().st_size >= CHECKED_AT_START_BYTES
        if not large:
            self._require_whole(check_pages(connection))
        if 0 < version_of(connection) < newest_version():
            keep_copy(connection, self._path, newest_version())
        apply_migrations(connection)
        remove_copies(self._path, at_once=False)
        if large:
            self._require_whole(check_ends(connection, self._path))
        return large

    def _require_whole(self, damage: str | None) -> None:
        if damage is not None:
            raise StoreUnusable(describe_damage(self._path, damage))

    @property
    def damage(self) -> str | None:
        """Damage that the background check of a large file found; None: nothing so far."""
        return self._check.damage if self._check else None

    @property
    def trouble(self) -> str | None:
        return self._writer.trouble if self._writer else None

    def write(self, batch: Batch, done: WriteDone) -> None:
        if self._writer is None:
            return self._refuse(done)
        return self._writer.write(batch, done)

    def find(self, query: MessageQuery, done: PageDone) -> None:
        self._read(partial(reads.find_messages, query=query), done, reads.needs_words(query))

    def fetch(self, numbers: list[int], done: PageDone) -> None:
        self._read(partial(reads.fetch_messages, numbers=numbers), done)

    def trail(self, message: MessageRow, done: TrailDone) -> None:
        self._read(partial(reads.read_trail, message=message), done)

    def steps(self, messages: list[MessageRow], done: StepsDone) -> None:
        self._read(partial(reads.read_steps, messages=messages), done)

    def conversations(self, limit: int, done: ConversationsDone) -> None:
        self._read(partial(self._conversations.read, limit=limit), done)

    def replay(self, recipient: str, after: dict[tuple[str, str], int], done: PageDone) -> None:
        self._read(partial(reads.replay_messages, recipient=recipient, after=after), done)

    def owed(self, query: OwedQuery, done: OwedDone) -> None:
        self._read(partial(read_owed, query=query), done)

    def seen(self, sender: str, since: int, limit: int, done: SeenDone) -> None:
        self._read(partial(read_seen, sender=sender, since=since, limit=limit), done)

    def dead_letters(self, query: DeadLetterQuery, done: DeadLettersDone) -> None:
        self._read(partial(reads.read_dead_letters, query=query), done)

    def prune(self, before: int, limit: int, done: PruneDone) -> None:
        if self._writer is None:
            return self._refuse(done)

        return self._writer.prune(before, limit, self._recounting(done))

    def erase(self, agent: str, limit: int, done: PruneDone) -> None:
        if self._writer is None:
            return self._refuse(done)
        return self._writer.erase(agent, limit, self._recounting(done))

    def _recounting(self, done: PruneDone) -> PruneDone:
        """Conversations are counted anew where messages have gone."""

        def told(outcome: int | StoreError) -> None:
            if outcome:
                self._conversations.forget()
            done(outcome)

        return told

    def stats(self) -> StoreStats:
        return StoreStats(
            kind="sqlite",
            messages=self._writer.count if self._writer else 0,
            size_bytes=files.size_of(self._path),
            wal_bytes=files.size_of(Path(f"{self._path}-wal")),
            location=str(self._path),
            problem=self.trouble or (self._writer.failure if self._writer else "") or self.damage or "",
            lost=self._lost if self._lost and note_path(self._path).exists() else "",
        )

    def close(self) -> None:
        """The WAL can only be folded in once nobody reads: the reader goes before the writer's connection."""
        writer, self._writer = self._writer, None
        reader, self._reader = self._reader, None
        if self._check:
            self._check.stop()
        if writer and reader:
            writer.stop()
            reader.stop()
            writer.finish()
        self._release()

    def _read(self, read: reads.Read, done: Callable[[Any], None], by_words: bool = False) -> None:
        writer, reader = self._writer, self._reader
        if writer is None or reader is None:
            return self._refuse(done)
        if not by_words or writer.caught_up or writer.trouble is not None:  # then what is indexed has to do
            return reader.submit(read, done)

        def go_on(failure: StoreError | None) -> None:
            if failure is None:
                reader.submit(read, done)
            else:
                post_answer(self._post, partial(done, failure))

        return writer.catch_up(go_on)

    def _refuse(self, done: Callable[[Any], None]) -> None:
        post_answer(self._post, partial(done, StoreError("The store is closed.")))
