"""The database file as a file: making it, connecting to it, telling whether it is ours and whole, and saying what is wrong.

Every sentence here is read by a person whose relay does not start or does not store: it names the file and the way out.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from itertools import count
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from agent_relay.ports.store import StoreError, StoreUnusable
from agent_relay.storage.sqlite.migrate import APPLICATION_ID, newest_version, version_of

Durability = Literal["full", "normal"]

PAGE_BYTES = 8192
_BUSY_MS = 2_000
_WAL_PAGES = 4 * 1024 * 1024 // PAGE_BYTES  # beyond it the WAL is copied into the database; without a bound it grew to 330 MB
_WAL_KEPT_BYTES = 16 * 1024 * 1024  # after one huge transaction the WAL file shrinks back to this
_REWRITTEN_BYTES = 1024 * 1024  # at a time
_HEADER_BYTES = 100
_CACHE_KIB = 8 * 1024
_STATEMENTS = 256  # kept prepared: those that store messages come in some 180 shapes (see `insert`), and Python keeps 128


def make_file(path: Path) -> None:
    """Creates the file for its owner alone, before SQLite would with a wider mode; -wal and -shm take the mode from it."""
    if (found := find_obstacle(path)) is not None:
        raise StoreUnusable(found)
    try:
        if path.exists() and not path.is_file():
            raise StoreUnusable(f"{path} is not a file. Move it away, or choose another storage path.")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except FileNotFoundError:
        raise StoreUnusable(f"The directory of {path} does not exist. Create it, or choose another storage path.") from None
    except OSError as error:
        raise StoreUnusable(_describe_access(path, error.strerror)) from None


def find_obstacle(path: Path) -> str | None:
    """Why no daemon will start with this file, as far as can be told without opening it as a database."""
    wal = Path(f"{path}-wal")
    if size_of(wal) > 0 and size_of(path) == 0:  # SQLite would remove the WAL without a word
        return (
            f"{path} is missing or empty, and the latest changes are in {wal}. Restore the file from a copy, or move {wal} "
            "away to start with an empty one."
        )
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError:
        return None
    version, application_id = (int.from_bytes(header[start : start + 4], "big") for start in (60, 68))
    return _describe_newer(path, version) if application_id == APPLICATION_ID and version > newest_version() else None


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def connect_writer(path: Path, durability: Durability) -> sqlite3.Connection:
    """`mode=rw`: a file that vanished while we ran is an error to report, never an empty one to go on with."""
    connection = _connect(path, "rw")
    try:
        check_identity(connection, path)  # before the first pragma that changes anything: it may be someone else's file
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # these two only matter while the file is empty
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten, and not only let go
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    connection = _connect(path, "ro")
    try:
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Each connection is used by one thread at a time; it is opened in one and handed to another."""
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=_BUSY_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def rewrite_wal(path: Path) -> None:
    """Writes what is in the WAL once more and flushes it; raises OSError. After a flush that failed the system may count pages as
    written that are not, and a checkpoint that relies on them would leave a database of old and new pages after a power cut.
    To be called while nobody writes. (No lock is on the WAL that closing it could let go of.)"""
    try:
        descriptor = os.open(f"{path}-wal", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        place = 0
        while content := os.pread(descriptor, _REWRITTEN_BYTES, place):
            place += os.pwrite(descriptor, content, place)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def copy_database(connection: sqlite3.Connection | None, path: Path, name: str) -> Path:
    """All that the connection sees, as one file beside the database: `messages.sqlite.NAME`. Raises sqlite3.Error or OSError."""
    if connection is None:
        raise OSError("it is not open any more")
    copy = _choose_free(path, name)
    os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        connection.execute("VACUUM INTO ?", (str(copy.absolute()),))
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    return copy


def _choose_free(path: Path, name: str) -> Path:
    copies = (Path(f"{path}.{name}{f'-{number}' if number > 1 else ''}") for number in count(1))
    return next(copy for copy in copies if not copy.exists())


def check_identity(connection: sqlite3.Connection, path: Path) -> None:
    """Raises unless the file is empty, or ours and not newer than this program."""
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    if application_id != APPLICATION_ID:
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application_id or tables:
            raise StoreUnusable(
                f"{path} is a database of another program. Move the file away, or choose another storage path for agent-relay."
            )
    version = version_of(connection)
    if version > newest_version():
        raise StoreUnusable(_describe_newer(path, version))


def _describe_newer(path: Path, version: int) -> str:
    return (
        f"{path} was written by a newer version of agent-relay (its schema is {version}, this version knows "
        f"{newest_version()}). Upgrade agent-relay, or move the file away."
    )


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


def describe_damage(path: Path, found: object) -> str:
    return (
        f"{path} is damaged ({found}). Restore it from a copy, or move it away together with its -wal and -shm files to start "
        "with an empty one; `sqlite3 FILE .recover` saves most of what is in it."
    )


def _describe_access(path: Path, reason: object) -> str:
    return (
        f"{path} cannot be opened for writing ({reason}). Give this user read and write permission to the file and its "
        "directory, or choose another storage path."
    )


def refuse(path: Path, error: sqlite3.Error | OSError) -> StoreUnusable:
    """Why the file could not be opened, from SQLite's own error, or the system's."""
    code = _primary_code(error)
    if code == sqlite3.SQLITE_FULL or getattr(error, "errno", None) == errno.ENOSPC:
        text = f"The disk that holds {path} is full. Free some space and start again."
    elif code == sqlite3.SQLITE_NOTADB:
        text = f"{path} is not a database of agent-relay. Move the file away, or choose another storage path."
    elif code == sqlite3.SQLITE_CORRUPT:
        text = describe_damage(path, error)
    elif code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        text = f"{path} is locked by another program. Close that program and start again."
    elif code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        text = _describe_access(path, error)
    elif "fts5" in str(error):
        text = "This Python's SQLite has no full-text search (FTS5). Use a Python whose SQLite includes it."
    else:
        text = f"{path} cannot be used ({error}). Check the disk it is on, or choose another storage path."
    return StoreUnusable(text)


def report(path: Path, error: Exception) -> StoreError:
    """Why something could not be written or read now. Never repeats what was to be stored."""
    code = _primary_code(error)
    if code == sqlite3.SQLITE_FULL:
        text = f"The disk that holds {path} is full. Free some space; the relay then continues by itself."
    elif is_locked(error):
        text = f"{path} is locked by another program. The relay continues by itself once it is released."
    elif code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        text = f"{path} cannot be written ({error}). Check the permissions of the file and its directory."
    elif code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        text = describe_damage(path, error)
    elif isinstance(error, StoreUnusable):
        text = str(error)
    elif isinstance(error, sqlite3.Error):
        text = f"{path} could not be used ({error})."
    else:
        text = f"Something in the rows cannot be stored in {path} ({type(error).__name__})."
    return StoreError(text)


def is_locked(error: Exception) -> bool:
    return _primary_code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def may_have_written(error: Exception) -> bool:
    """At a commit: whether all of it may be in the file although it failed. What a full disk or a lock kept from being written,
    or a rule of the schema, surely is not: a transaction counts from its last frame on, and that is written last."""
    return _primary_code(error) in {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERNAL,
    }


def needs_new_connection(error: Exception) -> bool:
    """After these SQLite's view of the file may be stale or half-broken; a fresh connection is sure to see it as it is."""
    return _primary_code(error) in {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERNAL,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PROTOCOL,
    }


def _primary_code(error: Exception) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF
