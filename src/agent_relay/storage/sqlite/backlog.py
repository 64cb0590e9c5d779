"""Messages that wait for somebody: the rows of the backlog, brought up to date at the start and read a page at a time."""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec.structs import astuple

from agent_relay.ports.store import Batch, Owed, OwedQuery, Waiting
from agent_relay.storage.sqlite.rows import MESSAGE_COLUMNS, read_message, write_meta
from agent_relay.storage.times import fit

_FEW_EXPIRED = 1_000  # are sorted; where there are more, those are soon met that are next in order

_LATER = """
    CREATE TEMP TABLE later AS
    SELECT m.number, m.topic, m.sender, m.expires_at, length(m.tail) AS size,
           json_extract(each.value, '$[0]') AS recipient, json_extract(each.value, '$[1]') AS seq
    FROM messages AS m, json_each(m.recipients) AS each WHERE m.number > ?
"""
_DONE_ABOVE = """
    CREATE TEMP TABLE done_above (recipient, sender, topic, seq, PRIMARY KEY (recipient, sender, topic, seq)) WITHOUT ROWID
"""
_FILL_DONE_ABOVE = """
    INSERT OR IGNORE INTO temp.done_above
    SELECT s.recipient, s.sender, s.topic, each.value FROM streams AS s, json_each(nullif(s.done_above, '')) AS each
"""
_LATER_OWED = """
    SELECT l.recipient, l.number, l.seq, l.expires_at, l.size
    FROM temp.later AS l LEFT JOIN streams AS s ON s.recipient = l.recipient AND s.sender = l.sender AND s.topic = l.topic
    WHERE (s.done_seq IS NULL OR l.seq > s.done_seq) AND NOT EXISTS (
        SELECT 1 FROM temp.done_above AS d
        WHERE d.recipient = s.recipient AND d.sender = s.sender AND d.topic = s.topic AND d.seq = l.seq
    )
"""
_ADOPT = f"INSERT OR IGNORE INTO backlog {_LATER_OWED}"
_RAISE = """
    INSERT INTO streams
    SELECT topic, sender, recipient, max(seq), 0, 0, 0, '' FROM temp.later
    WHERE TRUE GROUP BY recipient, sender, topic
    ON CONFLICT DO UPDATE SET last_seq = max(last_seq, excluded.last_seq)
"""
_COUNT_ALL = f"""
    SELECT recipient, count(*) FROM (SELECT recipient, number FROM backlog UNION SELECT recipient, number FROM ({_LATER_OWED}))
    GROUP BY recipient
"""  # noqa: S608 - constants of this file
_WAITING = "SELECT recipient, count(*), sum(size) FROM backlog GROUP BY recipient"
_RESENT = (
    "SELECT count(*) FROM trail AS t WHERE t.recipient = b.recipient AND t.sender = m.sender AND t.topic = m.topic "
    "AND t.first_seq = b.seq AND t.last_seq = b.seq AND t.event = 'resent'"
)
_PAGE = (
    f"SELECT b.recipient, b.seq, ({_RESENT}), {MESSAGE_COLUMNS} "  # noqa: S608 - constants of this file
    "FROM backlog AS b {way} CROSS JOIN messages AS m ON m.number = b.number "
    "WHERE (b.number, b.recipient) > (?, ?) AND {conditions} ORDER BY b.number, b.recipient LIMIT ?"
)
_COUNT_EXPIRED = "SELECT count(*) FROM (SELECT 1 FROM backlog WHERE expires_at <= ? LIMIT ?)"


def adopt_later(connection: sqlite3.Connection, checkpoint: int, last_number: int) -> None:
    """In a transaction of its own: what came after the checkpoint is in the backlog afterwards, unless it is done, and the
    streams cover its numbers. Nothing of it goes through Python: it is all that came in the last seconds before a crash."""
    if checkpoint >= last_number:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        adopt_within(connection, checkpoint, last_number)
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.rollback()
        raise


def adopt_within(connection: sqlite3.Connection, checkpoint: int, last_number: int) -> None:
    """The same in the transaction that is under way."""
    connection.execute(_LATER, (checkpoint,))
    for statement in (_DONE_ABOVE, _FILL_DONE_ABOVE, _ADOPT, _RAISE, "DROP TABLE temp.later", "DROP TABLE temp.done_above"):
        connection.execute(statement)
    write_meta(connection, checkpoint=last_number)


def count_owed(connection: sqlite3.Connection, checkpoint: int) -> dict[str, int]:
    """Counts the messages that wait for each recipient, in a database that nobody has opened since, and that is only read."""
    connection.execute(_LATER, (checkpoint,))
    for statement in (_DONE_ABOVE, _FILL_DONE_ABOVE):
        connection.execute(statement)
    return dict(connection.execute(_COUNT_ALL).fetchall())


def read_waiting(connection: sqlite3.Connection) -> list[Waiting]:
    return [Waiting(*row) for row in connection.execute(_WAITING)]


def write_backlog(connection: sqlite3.Connection, batch: Batch) -> None:
    if batch.backlog_removed:
        connection.executemany("DELETE FROM backlog WHERE recipient = ? AND number = ?", batch.backlog_removed)
    if batch.backlog_added:
        connection.executemany("INSERT OR IGNORE INTO backlog VALUES (?,?,?,?,?)", map(astuple, batch.backlog_added))
    if batch.checkpoint is not None:
        write_meta(connection, checkpoint=batch.checkpoint)


def read_owed(connection: sqlite3.Connection, query: OwedQuery) -> list[Owed]:
    found = connection.execute(*build_page(query, _choose_way(connection, query)))
    return [Owed(read_message(message), recipient, seq, resent) for recipient, seq, resent, *message in found]


def _choose_way(connection: sqlite3.Connection, query: OwedQuery) -> str:
    """The table itself for one recipient, else an index: said here, as SQLite cannot know how many have expired."""
    if query.recipient is not None:
        return "NOT INDEXED"
    if query.expired_at is not None:
        (count,) = connection.execute(_COUNT_EXPIRED, (fit(query.expired_at), _FEW_EXPIRED)).fetchone()
        if count < _FEW_EXPIRED:
            return "INDEXED BY backlog_by_expiry"
    return "INDEXED BY backlog_by_number"


def build_page(query: OwedQuery, way: str) -> tuple[str, list[Any]]:
    number, recipient = query.after
    conditions, values = ["TRUE"], [fit(number), recipient]
    if query.recipient is not None:
        conditions.append("b.recipient = ?")
        values.append(query.recipient)
    if query.sender is not None:
        conditions.append("m.sender = ? COLLATE NOCASE")
        values.append(query.sender)
    if query.expired_at is not None:
        conditions.append("b.expires_at <= ?")
        values.append(fit(query.expired_at))
    return _PAGE.format(way=way, conditions=" AND ".join(conditions)), [*values, fit(max(query.limit, 0))]
