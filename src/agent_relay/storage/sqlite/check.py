"""The search for damage: a small database is read whole at the start; of a large one the ends, and the rest beside the work."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from threading import Lock, Thread

from agent_relay.storage.sqlite.errors import describe_damage
from agent_relay.storage.sqlite.files import PAGE_BYTES, connect_reader

_log = logging.getLogger(__name__)


def check_pages(connection: sqlite3.Connection) -> str | None:
    """Reads the whole file; the first thing found wrong, or None."""
    verdict: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    return None if verdict == "ok" else " ".join(verdict.split())


def check_ends(connection: sqlite3.Connection, path: Path) -> str | None:
    """The cheap check of a large file: nothing is cut off, and its schema and newest message can be read."""
    connection.execute("SELECT sql FROM sqlite_master").fetchall()
    connection.execute("SELECT * FROM messages ORDER BY number DESC LIMIT 1").fetchall()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # else the end of the database may be in the WAL
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    missing = pages * PAGE_BYTES - path.stat().st_size
    return f"{missing} bytes are missing at its end" if missing > 0 else None


class BackgroundCheck:
    """A thread and a connection of its own: on the reader's, every question would wait for the whole file to be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._stopping = False
        self._connection: sqlite3.Connection | None = None
        self._thread = Thread(target=self._run, name="relay-store-check", daemon=True)
        self.damage: str | None = None
        self.finished = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Breaks the check off where it is."""
        with self._lock:
            self._stopping = True
            if self._connection is not None:
                self._connection.interrupt()
        self._thread.join()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by then."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            connection = connect_reader(self._path)
        except sqlite3.Error as error:
            _log.warning("%s could not be checked: %s", self._path, error)
            return
        with self._lock:
            self._connection = connection
        try:
            self._check(connection)
        finally:
            with self._lock:
                self._connection = None
            connection.close()

    def _check(self, connection: sqlite3.Connection) -> None:
        try:
            found = None if self._stopping else check_pages(connection)
        except sqlite3.OperationalError as error:  # interrupted, or the disk does not answer now
            if not self._stopping:
                _log.warning("%s could not be checked: %s", self._path, error)
            return
        except sqlite3.DatabaseError as error:
            found = str(error)
        self.finished = not self._stopping
        if found is not None:
            self.damage = describe_damage(self._path, found)
            _log.error("%s", self.damage)
        elif self.finished:
            _log.info("%s was checked and is intact.", self._path)
