"""The store's files while no daemon runs, for `doctor`, `up` and `cluster leave`."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

from agent_relay.daemon.config import Config
from agent_relay.daemon.directories import DirectoryLock, Lock
from agent_relay.protocol import places
from agent_relay.storage.sqlite.backlog import count_owed
from agent_relay.storage.sqlite.files import find_obstacle
from agent_relay.storage.sqlite.loss import read_note
from agent_relay.storage.sqlite.rows import read_meta
from agent_relay.storage.sqlite.transfer import leave_log, read_position


def find_store_troubles(path: str) -> list[str]:
    """Reasons why a daemon would not start with it, and what an earlier start found missing."""
    return [trouble for trouble in (find_obstacle(Path(path)), read_note(Path(path))) if trouble]


def count_waiting(path: str) -> dict[str, int]:
    """The number of messages that wait, by recipient; empty where that cannot be read. Nothing is changed."""
    if not Path(path).is_file():
        return {}
    try:
        with contextlib.closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)) as connection:
            return count_owed(connection, read_meta(connection)["checkpoint"])
    except (sqlite3.Error, KeyError):
        return {}


def find_copied(path: str) -> int:
    """The last record of its cluster's log that is in it; 0 for a store that is no copy."""
    return read_position(Path(path))


def leave_cluster(config: Config) -> None:
    """Makes this host's copy a store of its own. Raises PlaceUnusable while a daemon runs, and OSError or sqlite3.Error."""
    with contextlib.ExitStack() as held:
        held.callback(DirectoryLock(config.state_dir).release)
        held.callback(Lock(config.file(places.LOCK_FILE)).release)
        leave_log(Path(config.storage_path))
        shutil.rmtree(config.file(places.CLUSTER_RECORDS_FOLDER), ignore_errors=True)
        shutil.rmtree(config.file(places.CLUSTER_COPY_FOLDER), ignore_errors=True)
