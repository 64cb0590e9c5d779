"""A copy of the database as it was, before its schema is changed.

The change itself is one transaction and survives a crash; the copy is for whoever wants to go back to the version before. It
holds messages as the database does, so it goes after a week, and at once when an agent is erased.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from pathlib import Path

from agent_relay.storage.sqlite.files import copy_database, size_of

_LARGEST_BYTES = 256 * 1024 * 1024  # copying this much delays the start by some two seconds
_KEPT_S = 7 * 24 * 3_600
_NAME = "before-schema"

_log = logging.getLogger(__name__)


def keep_copy(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Beside the database, named by the schema it is changed to. That there is none is noted, and no reason not to start."""
    size = size_of(path) + size_of(Path(f"{path}-wal"))
    if size > _LARGEST_BYTES:
        _log.warning("%s is upgraded without a backup: it is larger than %d MiB.", path, _LARGEST_BYTES >> 20)
        return
    try:
        disk = os.statvfs(path.parent)
        if disk.f_bavail * disk.f_frsize < 2 * size:
            raise OSError("there is not enough space")
        copy = copy_database(connection, path, f"{_NAME}-{version}")
    except (sqlite3.Error, OSError) as error:
        _log.warning("%s is upgraded without a backup: %s", path, error)
        return
    _log.info("%s is upgraded; a copy of the old file is kept in %s for a week.", path, copy)


def remove_copies(path: Path, *, at_once: bool) -> None:
    for copy in path.parent.glob(f"{path.name}.{_NAME}-*"):
        try:
            if at_once or time.time() - copy.stat().st_mtime > _KEPT_S:
                copy.unlink()
        except OSError as error:
            _log.warning("%s could not be removed: %s", copy, error.strerror)
