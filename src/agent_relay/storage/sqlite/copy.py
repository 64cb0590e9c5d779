"""A SQLite file as an end of a copy. A target is written beside its place, and moved there when it is whole."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from agent_relay.ports.store import MessageStore, Snapshot, StoreUnusable, TrailRow
from agent_relay.storage.posting import Post
from agent_relay.storage.sqlite.store import SqliteStore

_COLUMNS = ", ".join(TrailRow.__struct_fields__)


class SqliteCopyEnd:
    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._open = self._path  # the file that is read and written
        self.location = str(path)

    def open_source(self, post: Post) -> tuple[MessageStore, Snapshot]:
        if not self._path.is_file():
            raise StoreUnusable(f"{self._path} does not exist: there is nothing to copy.")
        return self._start(post)

    def open_target(self, post: Post, source: str) -> tuple[MessageStore, Snapshot]:
        if self._path.exists():
            raise StoreUnusable(f"{self._path} exists already. Move it away, with its -wal and -mark, to copy into a new one.")
        note = Path(f"{self._path}.copying-from")
        self._open = Path(f"{self._path}.copying")
        if note.exists() and note.read_text("utf-8") != source:
            raise StoreUnusable(f"{self._open} is a copy from {note.read_text('utf-8')}. Finish that one, or remove it first.")
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        note.write_text(source, "utf-8")
        return self._start(post)

    def _start(self, post: Post) -> tuple[MessageStore, Snapshot]:
        store = SqliteStore(self._open, post)
        return store, store.open()

    def count_trail(self) -> int:
        with self._connect() as connection:
            return int(connection.execute("SELECT count(*) FROM trail").fetchone()[0])

    def read_trail(self, after: int, limit: int) -> list[tuple[int, TrailRow]]:
        statement = f"SELECT place, {_COLUMNS} FROM trail WHERE place > ? ORDER BY place LIMIT ?"  # noqa: S608 - names of ours
        with self._connect() as connection:
            return [(place, TrailRow(*row)) for place, *row in connection.execute(statement, (after, limit))]

    def place_of_trail(self, count: int) -> int:
        if count == 0:
            return 0
        statement = "SELECT place FROM trail ORDER BY place LIMIT 1 OFFSET ?"
        with self._connect() as connection:
            found = connection.execute(statement, (count - 1,)).fetchone()
            return int(found[0]) if found else 2**62

    @contextlib.contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(self._open)) as connection:
            yield connection

    def finish(self, snapshot: Snapshot) -> None:
        with self._connect() as connection, connection:
            count = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
            values = {"first_seq": snapshot.first_seq, "counted": count, "counted_to": snapshot.last_number}
            for key, value in values.items():
                connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
        mark = Path(f"{self._open}-mark")
        if mark.exists():
            os.replace(mark, f"{self._path}-mark")
        os.replace(self._open, self._path)
        for name in (f"{self._path}.copying-from", f"{self._open}-wal", f"{self._open}-shm", f"{self._open}-lock"):
            Path(name).unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing is left open: each question has a connection of its own."""
