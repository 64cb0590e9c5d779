"""Removing old messages: a few at a time, with everything that points at them, so that no write waits long for it."""

from __future__ import annotations

import sqlite3

from agent_relay.storage.sqlite.index import remove_from_index
from agent_relay.storage.sqlite.rows import read_meta
from agent_relay.storage.sqlite.sent import prune_ids
from agent_relay.storage.times import last_number_before

_TRAIL_ROWS_A_MESSAGE = 4  # the trail shrinks at least as fast as it grew
_PAGES_RETURNED = 256  # 2 MiB of file a round: enough to keep up, too little to be noticed

_CHOOSE = """
    INSERT INTO temp.doomed
    SELECT number FROM messages
    WHERE number <= ? AND ts < ? AND number NOT IN (SELECT number FROM backlog)
      AND number NOT IN (SELECT number FROM dead_letters)
    ORDER BY number LIMIT ?
"""
_PRUNE_TRAIL = """
    DELETE FROM trail WHERE place IN (
        SELECT place FROM (SELECT place, at FROM trail ORDER BY place LIMIT ?) WHERE at < ?
    )
"""


def prune_messages(connection: sqlite3.Connection, before: int, limit: int) -> int:
    """Inside the caller's transaction; how many messages went. What came after the checkpoint may still be owed: it stays."""
    meta = read_meta(connection)
    empty_doomed(connection)
    newest = min(meta["checkpoint"], last_number_before(before, meta["lag_ms"]))
    chosen = connection.execute(_CHOOSE, (newest, before, max(limit, 0))).rowcount
    if chosen:
        remove_from_index(connection, meta["indexed_to"])
        connection.execute("DELETE FROM messages WHERE number IN (SELECT number FROM temp.doomed)")
    connection.execute(_PRUNE_TRAIL, (max(limit, 1) * _TRAIL_ROWS_A_MESSAGE, before))
    connection.execute("DELETE FROM spent_tokens WHERE spent_at < ?", (before,))
    prune_ids(connection, before, limit)
    return chosen


def empty_doomed(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS doomed (number INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM temp.doomed")


def return_pages(connection: sqlite3.Connection) -> None:
    """Gives free pages at the end of the file back to the file system; outside of any transaction."""
    # Not execute(): the pragma answers a row without columns for each page, and Python stops at the first of them.
    connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_RETURNED})")
