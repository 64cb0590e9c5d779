"""The store's files while no daemon runs, for `doctor` and `up`."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from agent_relay.storage.sqlite.backlog import count_owed
from agent_relay.storage.sqlite.files import find_obstacle
from agent_relay.storage.sqlite.loss import read_note
from agent_relay.storage.sqlite.rows import read_meta


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
