"""SQLite's errors: what they mean for a person, and what they leave open.

Every sentence here is read by a person whose relay does not start or does not store: it names the file and the way out.
"""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from agent_relay.ports.store import StoreError, StoreUnusable


def describe_damage(path: Path, found: object) -> str:
    return (
        f"{path} is damaged ({found}). Restore it from a copy, or move it away together with its -wal and -shm files to start "
        "with an empty one; `sqlite3 FILE .recover` saves most of what is in it."
    )


def describe_access(path: Path, reason: object) -> str:
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
        text = describe_access(path, error)
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
