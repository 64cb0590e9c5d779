"""The database file as a file: making it, locking it, connecting to it, telling whether it is ours and still there.

What SQLite's own errors mean is in `errors`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
import struct
import time
from itertools import count
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from agent_relay.ports.store import StoreUnusable
from agent_relay.storage.sqlite.errors import describe_access
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
_LOCKED_BYTE = 1 << 62  # SQLite locks bytes from 1 GiB on; a file does not come this far
_HELD = {errno.EAGAIN, errno.EACCES}
_SETTLED_NS = 100_000_000  # file systems date changes by a coarse clock: two within the same 10 ms may look like one

_Identity = tuple[int, int]


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
        raise StoreUnusable(describe_access(path, error.strerror)) from None


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


class DatabaseLock:
    """One daemon to a database: a lock on the file itself, whatever path leads to it and whatever lock files are removed.

    It is a lock of the open file and not of the process (OFD, Linux), on a byte that SQLite never looks at. SQLite's own locks
    belong to the process, and closing any descriptor of the file lets go of them all: so the one that holds this lock is opened
    before SQLite opens the file, and closed after SQLite has closed it. Where there are no such locks (macOS) a file beside it
    is locked, and that can be removed.
    """

    def __init__(self, path: Path) -> None:
        """Raises StoreUnusable if another daemon has the file."""
        command = getattr(fcntl, "F_OFD_SETLK", None)
        self._descriptor = os.open(path if command is not None else f"{path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if command is not None:
                fcntl.fcntl(self._descriptor, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _LOCKED_BYTE, 1, 0))
            else:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            if error.errno in _HELD:
                raise StoreUnusable(
                    f"{path} is in use by another daemon. Stop that one (`agent-relay down` in its project), or choose another "
                    "--storage-path."
                ) from None
            raise StoreUnusable(f"{path} cannot be locked ({error.strerror}). Choose a --storage-path on another disk.") from None

    def release(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


class FileWatch:
    """Whether the database and its WAL are still the files that were opened.

    A file that is deleted or replaced stays open, and everything written to it is gone with the process. Only the paths are
    looked at: opening the database here, and closing it again, would let go of SQLite's locks. It is asked after every commit,
    and each look costs a turn of waiting for the interpreter lock: so one look at the folder is all, as long as nothing in it
    came or went.
    """

    def __init__(self, path: Path) -> None:
        self._folder = str(path.parent)
        self._path = str(path)
        self._wal = f"{path}-wal"
        self._file = _identify(self._path)
        self._wal_file = _identify(self._wal)
        self._settled: tuple[int, int, int] | None = None  # the folder as it was when all was well, for a while already

    def opened(self) -> None:
        """A new connection was made, and may have made a new WAL."""
        self._wal_file = _identify(self._wal)
        self._settled = None

    def find_change(self) -> Literal["file", "wal"] | None:
        folder = _look_at(self._folder)
        if folder is not None and folder == self._settled:
            return None
        self._settled = None
        if _identify(self._path) != self._file:
            return "file"
        if _identify(self._wal) != self._wal_file:
            return "wal"
        if folder is not None and abs(time.time_ns() - folder[2]) > _SETTLED_NS:
            self._settled = folder
        return None


def _look_at(folder: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _identify(path: str) -> _Identity | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
