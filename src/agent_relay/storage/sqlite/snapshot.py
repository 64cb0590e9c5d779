"""The snapshot for the core at start. Of messages only what came in the last seconds is read, however many are stored."""

from __future__ import annotations

import sqlite3

from agent_relay.ports.store import Snapshot
from agent_relay.storage.sqlite.backlog import adopt_later, read_waiting
from agent_relay.storage.sqlite.rows import read_agents, read_documents, read_meta, read_plain_tables, read_streams


def load_snapshot(connection: sqlite3.Connection, *, is_copy: bool = False) -> Snapshot:
    """A copy adopts nothing by itself: only where the log says so, so that all copies are the same."""
    meta, last = read_meta(connection), last_number(connection)
    if not is_copy:
        adopt_later(connection, meta["checkpoint"], last)
    return Snapshot(
        agents=read_agents(connection),
        streams=read_streams(connection),
        waiting=read_waiting(connection),
        documents=read_documents(connection),
        last_number=last,
        first_seq=meta["first_seq"],
        position=meta.get("position", 0),
        term=meta.get("term", 0),
        **read_plain_tables(connection),
    )


def last_number(connection: sqlite3.Connection) -> int:
    """Also when every message was pruned: the count is saved with the number it reaches to."""
    newest = connection.execute("SELECT max(number) FROM messages").fetchone()[0]
    return max(newest or 0, read_meta(connection)["counted_to"])


def has_message(connection: sqlite3.Connection, number: int) -> bool:
    return connection.execute("SELECT 1 FROM messages WHERE number = ?", (number,)).fetchone() is not None


def count_messages(connection: sqlite3.Connection) -> int:
    """From the count that was saved last; only what came after it is counted."""
    meta = read_meta(connection)
    later = connection.execute("SELECT count(*) FROM messages WHERE number > ?", (meta["counted_to"],)).fetchone()[0]
    return meta["counted"] + int(later)
