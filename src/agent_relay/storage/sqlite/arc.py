"""ARC registrations and invitations in a small SQLite file of their own, beside the messages.

They are few and change rarely, so a thread writes them one transaction after another; what arrived while the last one was being
written shares the next.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from pathlib import Path

from msgspec import Struct
from msgspec.structs import astuple

from agent_relay.ports.arc import ArcBook, ArcRow, InvitationRow
from agent_relay.ports.names import RowDone
from agent_relay.ports.store import StoreUnusable
from agent_relay.storage.posting import Post, post_answer
from agent_relay.storage.sqlite.errors import refuse, report
from agent_relay.storage.sqlite.files import make_file

APPLICATION_ID = 0x41524343  # "ARCC": what tells this file from the messages' and from other people's
_VERSION = 2  # 2: invitations
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS registrations (
    agent_id       TEXT PRIMARY KEY,
    token_hash     TEXT NOT NULL,
    registered_at  INTEGER NOT NULL,
    expires_at     INTEGER,
    old_token_hash TEXT,
    old_expires_at INTEGER,
    revoked_at     INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS invitations (
    id         TEXT PRIMARY KEY,
    code_hash  TEXT NOT NULL,
    agent_id   TEXT,
    uses_left  INTEGER NOT NULL,
    made_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {_VERSION};
COMMIT;
"""

_Row = ArcRow | InvitationRow


class _Table:
    """One kind of row, and its statements."""

    def __init__(self, name: str, row: type[_Row]) -> None:
        columns = row.__struct_fields__
        marks = ", ".join("?" * len(columns))
        # All of it is of our own names.
        self.select = f"SELECT {', '.join(columns)} FROM {name}"  # noqa: S608
        self.put = f"INSERT OR REPLACE INTO {name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
        self.remove = f"DELETE FROM {name} WHERE {columns[0]} = ?"  # noqa: S608


_TABLES: dict[type[_Row], _Table] = {
    ArcRow: _Table("registrations", ArcRow), InvitationRow: _Table("invitations", InvitationRow),
}  # fmt: skip


class _Job(Struct, frozen=True):
    row: _Row
    done: RowDone
    is_erased: bool = False

    def run(self, connection: sqlite3.Connection) -> None:
        table, values = _TABLES[type(self.row)], astuple(self.row)
        if self.is_erased:
            connection.execute(table.remove, values[:1])
        else:
            connection.execute(table.put, values)


class SqliteArc:
    def __init__(self, path: str | Path, post: Post) -> None:
        self._path = Path(path)
        self._post = post
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> ArcBook:
        make_file(self._path)
        try:
            connection = self._connect()
            registrations = connection.execute(_TABLES[ArcRow].select).fetchall()
            invitations = connection.execute(_TABLES[InvitationRow].select).fetchall()
        except sqlite3.Error as error:
            raise refuse(self._path, error) from None
        self._connection = connection
        self._thread = threading.Thread(target=self._work, name="arc-store", daemon=True)
        self._thread.start()
        return ArcBook([ArcRow(*row) for row in registrations], [InvitationRow(*row) for row in invitations])

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            identity = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if (identity != APPLICATION_ID and (identity or tables)) or version > _VERSION:
                raise StoreUnusable(
                    f"{self._path} belongs to another program, or to a newer version of agent-relay. Move it away."
                )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def write(self, row: _Row, done: RowDone) -> None:
        self._jobs.put(_Job(row, done))

    def erase(self, row: _Row, done: RowDone) -> None:
        self._jobs.put(_Job(row, done, is_erased=True))

    def close(self) -> None:
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- the thread -----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        is_over = False
        while not is_over:
            jobs, is_over = self._gather()
            if jobs:
                self._write_all(jobs)

    def _gather(self) -> tuple[list[_Job], bool]:
        """Waits for one, and takes what else is there; True: it was the last."""
        jobs: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            jobs.append(job)
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs, False
        return jobs, True

    def _write_all(self, jobs: list[_Job]) -> None:
        connection = self._connection
        assert connection is not None
        failure = None
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                job.run(connection)
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits is told
            if connection.in_transaction:
                connection.rollback()
            failure = report(self._path, error)

        def answer() -> None:
            for job in jobs:
                job.done(failure)

        post_answer(self._post, answer)
