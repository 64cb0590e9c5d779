"""A database on its way to another host: a compressed copy of one that is in use, and one that comes in pieces.

Everything here blocks and belongs into a thread. What an earlier life has left half done is removed when the next one begins.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import zlib
from pathlib import Path

from msgspec import Struct

from agent_relay.ports.store import StoreUnusable
from agent_relay.storage.sqlite.files import check_identity, size_of
from agent_relay.storage.sqlite.rows import read_meta

_AT_ONCE_BYTES = 1024 * 1024
_SPARE_BYTES = 64 * 1024 * 1024  # that a disk keeps for everything else
_GZIP = 31  # zlib's word for a gzip header and checksum
_FAST = 1


class CopyRefused(Exception):  # noqa: N818 - named by the condition
    """It cannot be made or taken; the text says why."""


class PreparedCopy(Struct, frozen=True):
    path: Path
    size: int  # compressed
    raw_bytes: int
    sha256: str  # of the compressed file
    position: int  # in the log


def prepare_copy(database: Path, folder: Path) -> PreparedCopy:
    """The database as it is at one moment, while it is in use. Raises CopyRefused."""
    remove_prepared(folder)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        size = size_of(database) + size_of(Path(f"{database}-wal"))
        _check_space(folder, 2 * size)
        plain, packed = folder / "database", folder / "database.gz"
        position = _back_up(database, plain)
        raw_bytes, sha256 = size_of(plain), hashlib.sha256()
        pack = zlib.compressobj(_FAST, zlib.DEFLATED, _GZIP)
        with plain.open("rb") as source, open(_create(packed), "wb") as target:
            while piece := source.read(_AT_ONCE_BYTES):
                _put(target, sha256, pack.compress(piece))
            _put(target, sha256, pack.flush())
        plain.unlink()
        return PreparedCopy(packed, size_of(packed), raw_bytes, sha256.hexdigest(), position)
    except (OSError, sqlite3.Error) as error:
        remove_prepared(folder)
        raise CopyRefused(f"no copy of the database could be made: {error}") from None


def read_piece(copy: PreparedCopy, offset: int, length: int) -> bytes:
    """Raises OSError."""
    with copy.path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def remove_prepared(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


class IncomingCopy:
    """Of a database of another host, beside ours until it is whole."""

    def __init__(self, database: Path, size: int, raw_bytes: int, sha256: str, position: int) -> None:
        """Raises CopyRefused where there is no room for it."""
        self._database = database
        self._raw_bytes = raw_bytes
        self._sha256 = sha256
        self._position = position
        self._is_open = False
        self._packed = Path(f"{database}.incoming.gz")
        self._plain = Path(f"{database}.incoming")
        remove_incoming(database)
        _check_space(database.parent, size + raw_bytes)
        try:
            self._descriptor = _create(self._packed)
            self._is_open = True
        except OSError as error:
            raise CopyRefused(f"{self._packed} cannot be written: {error.strerror}") from None

    def write(self, piece: bytes) -> None:
        """Raises CopyRefused."""
        try:
            if os.write(self._descriptor, piece) != len(piece):
                raise OSError("the disk is full")
        except OSError as error:
            raise CopyRefused(f"{self._packed} cannot be written: {error}") from None

    def check(self) -> None:
        """All pieces are there: unpacks it, and sees that it is what was promised. Raises CopyRefused."""
        self._close()
        try:
            if (found := self._unpack()) != self._sha256:
                raise CopyRefused(f"the copy arrived damaged: its checksum is {found}, not {self._sha256}")
            self._look_into()
        except (OSError, sqlite3.Error, zlib.error, StoreUnusable) as error:
            raise CopyRefused(f"the copy cannot be used: {error}") from None

    def _unpack(self) -> str:
        unpack, sha256, written = zlib.decompressobj(_GZIP), hashlib.sha256(), 0
        with self._packed.open("rb") as source, open(_create(self._plain), "wb") as target:
            while piece := source.read(_AT_ONCE_BYTES):
                sha256.update(piece)
                while piece:  # a small piece may be a lot: never more at a time than this
                    part = unpack.decompress(piece, _AT_ONCE_BYTES)
                    piece = unpack.unconsumed_tail
                    written += target.write(part)
                    if written > self._raw_bytes:
                        raise CopyRefused("the copy is larger than was announced")
            target.flush()
            os.fsync(target.fileno())
        if written != self._raw_bytes or not unpack.eof:
            raise CopyRefused("the copy is not whole")
        self._packed.unlink()
        return sha256.hexdigest()

    def _look_into(self) -> None:
        with contextlib.closing(sqlite3.connect(f"{self._plain.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            check_identity(connection, self._plain)
            if (found := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise CopyRefused(f"the copy is damaged: {found}")
            if read_meta(connection).get("position") != self._position:
                raise CopyRefused("the copy is of another moment than was announced")

    def put_in_place(self) -> None:
        """Instead of our database, which is closed. Raises OSError. What was there is older, and nothing of it is kept."""
        for end in ("-wal", "-shm"):
            Path(f"{self._database}{end}").unlink(missing_ok=True)
        os.replace(self._plain, self._database)
        folder = os.open(self._database.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def discard(self) -> None:
        self._close()
        remove_incoming(self._database)

    def _close(self) -> None:
        """Once: the number may be another file's by the next time."""
        if self._is_open:
            self._is_open = False
            os.close(self._descriptor)


def read_position(database: Path) -> int:
    """The position at which a copy ends in its log, also while it is in use; 0 where there is none."""
    try:
        with contextlib.closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return int(read_meta(connection).get("position", 0))
    except sqlite3.Error:
        return 0


def leave_log(database: Path) -> None:
    """A copy that follows no log from here on: what is in it stays, and a daemon alone may write to it."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("DELETE FROM meta WHERE key IN ('position', 'term')")


def remove_incoming(database: Path) -> None:
    for end in (".incoming.gz", ".incoming"):
        with contextlib.suppress(OSError):
            Path(f"{database}{end}").unlink(missing_ok=True)


def _back_up(database: Path, target: Path) -> int:
    """Page by page in one read transaction: writers do not wait."""
    os.close(_create(target))
    with (
        contextlib.closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as source,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()  # one file, without a WAL beside it
        return int(read_meta(copy).get("position", 0))


def _put(target: object, sha256: object, piece: bytes) -> None:
    target.write(piece)  # type: ignore[attr-defined]
    sha256.update(piece)  # type: ignore[attr-defined]


def _create(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE_BYTES:
        raise CopyRefused(
            f"a copy of the database needs {(needed + _SPARE_BYTES) >> 20:,} MiB at {folder}, and {free >> 20:,} MiB are free"
        )
