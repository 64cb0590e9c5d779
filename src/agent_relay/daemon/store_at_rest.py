"""What can be said about the store's files while no daemon runs, for `doctor` and `up`."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from agent_relay.storage.sqlite_backlog import read_waiting
from agent_relay.storage.sqlite_files import find_obstacle
from agent_relay.storage.sqlite_loss import read_note


def find_store_troubles(path: str) -> list[str]:
    """Why a daemon would not start with it, and what an earlier start found missing."""
    return [trouble for trouble in (find_obstacle(Path(path)), read_note(Path(path))) if trouble]


def count_waiting(path: str) -> dict[str, int]:
    """How many messages wait for whom; nobody, where that cannot be read. Nothing is changed."""
    if not Path(path).is_file():
        return {}
    try:
        with contextlib.closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)) as connection:
            return {waiting.recipient: waiting.count for waiting in read_waiting(connection) if waiting.count}
    except sqlite3.Error:
        return {}
