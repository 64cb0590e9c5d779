"""What the core is given at start. Never reads more than what is still open and the window of de-duplication."""

from __future__ import annotations

import sqlite3
from collections import Counter

from agent_relay.ports.store import MessageRow, SeenId, Snapshot
from agent_relay.protocol.names import fold_name
from agent_relay.storage.sqlite_rows import (
    MESSAGE_COLUMNS,
    read_agents,
    read_messages,
    read_meta,
    read_plain_tables,
    read_streams,
)
from agent_relay.storage.times import first_number_since, fit

_BACKLOG = f"SELECT {MESSAGE_COLUMNS} FROM backlog AS b JOIN messages AS m ON m.number = b.number ORDER BY b.number"  # noqa: S608
_AFTER = f"SELECT {MESSAGE_COLUMNS} FROM messages AS m WHERE m.number > ? ORDER BY m.number"  # noqa: S608
_SEEN = "SELECT sender, client_id, number FROM messages WHERE number >= ? AND ts >= ? ORDER BY number DESC"


def load_snapshot(connection: sqlite3.Connection, dedup_ids: int, dedup_since: int) -> Snapshot:
    meta = read_meta(connection)
    backlog = read_messages(connection.execute(_BACKLOG))
    return Snapshot(
        agents=read_agents(connection),
        streams=read_streams(connection),
        open_messages=_load_open(connection, backlog, meta["checkpoint"]),
        backlog=[row.number for row in backlog],
        seen_ids=_load_seen(connection, dedup_ids, dedup_since),
        checkpoint=meta["checkpoint"],
        last_number=last_number(connection),
        first_seq=meta["first_seq"],
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


def _load_open(connection: sqlite3.Connection, backlog: list[MessageRow], checkpoint: int) -> list[MessageRow]:
    return [row for row in backlog if row.number <= checkpoint] + read_messages(connection.execute(_AFTER, (checkpoint,)))


def _load_seen(connection: sqlite3.Connection, dedup_ids: int, dedup_since: int) -> list[SeenId]:
    """Backwards from the newest, so that a sender's newest ids are the ones that are kept."""
    found: list[SeenId] = []
    taken: Counter[str] = Counter()
    for sender, client_id, number in connection.execute(_SEEN, (first_number_since(dedup_since), fit(dedup_since))):
        folded = fold_name(sender)
        if taken[folded] < dedup_ids:
            taken[folded] += 1
            found.append(SeenId(sender, client_id, number))
    found.reverse()
    return found
