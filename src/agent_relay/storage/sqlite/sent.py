"""The ids that senders gave their messages, listed in blocks: a sender's are found without an index on every message.

The writer gathers them from what it has stored and writes them down from time to time, one row a sender, in a transaction
that is there anyway. What it has not listed yet is what came after `meta.listed_to`: little enough to look through.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from agent_relay.ports.store import MessageRow
from agent_relay.protocol.names import fold_name
from agent_relay.storage.sqlite.rows import read_meta, write_meta
from agent_relay.storage.times import first_number_since, fit

LISTED_EVERY = 4_096  # messages; what at most has to be looked through, and gathered again at the next start

SentId = tuple[str, str, int]  # sender, client id, number

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[tuple[str, int]]).decode

_UNLISTED = "SELECT sender, client_id, number FROM messages WHERE number > ? ORDER BY number LIMIT ?"
_NEWEST = """
    SELECT client_id, number FROM messages
    WHERE number > ? AND number >= ? AND sender = ? COLLATE NOCASE ORDER BY number DESC LIMIT ?
"""
_BLOCKS = "SELECT ids FROM sent_ids WHERE sender = ? AND last_number <= ? AND last_number >= ? ORDER BY last_number DESC"
_DOOMED = """
    SELECT DISTINCT (
        SELECT s.last_number FROM sent_ids AS s
        WHERE s.sender = m.sender AND s.last_number >= m.number ORDER BY s.last_number LIMIT 1
    ) FROM messages AS m WHERE m.number IN (SELECT number FROM temp.doomed)
"""
_PRUNE = "DELETE FROM sent_ids WHERE last_number IN (SELECT last_number FROM sent_ids WHERE last_number < ? LIMIT ?)"


def ids_of(messages: list[MessageRow]) -> list[SentId]:
    return [(row.sender, row.client_id, row.number) for row in messages]


def list_ids(connection: sqlite3.Connection, sent: list[SentId]) -> None:
    """Inside the caller's transaction: everything after `listed_to`, by ascending number."""
    if not sent:
        return
    blocks: dict[str, list[tuple[str, int]]] = {}
    as_written: dict[str, list[tuple[str, int]]] = {}  # the same lists: a name is folded once, not with each of its messages
    for sender, client_id, number in sent:
        block = as_written.get(sender)
        if block is None:
            block = as_written[sender] = blocks.setdefault(fold_name(sender), [])
        block.append((client_id, number))
    rows = [(block[-1][1], sender, _encode(block).decode()) for sender, block in blocks.items()]
    connection.executemany("INSERT INTO sent_ids VALUES (?,?,?)", rows)
    write_meta(connection, listed_to=sent[-1][2])


def read_unlisted(connection: sqlite3.Connection) -> list[SentId]:
    """At the start: what is not listed yet. More than usual, as a file of an earlier version has, is listed first."""
    while True:
        listed_to = read_meta(connection)["listed_to"]
        sent: list[SentId] = connection.execute(_UNLISTED, (listed_to, LISTED_EVERY)).fetchall()
        if len(sent) < LISTED_EVERY:
            return sent
        connection.execute("BEGIN IMMEDIATE")
        try:
            list_ids(connection, sent)
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.rollback()
            raise


def read_seen(connection: sqlite3.Connection, sender: str, since: int, limit: int) -> dict[str, int]:
    if limit <= 0:
        return {}
    listed_to, first = read_meta(connection)["listed_to"], first_number_since(since)
    newest: list[tuple[str, int]] = connection.execute(_NEWEST, (listed_to, first, sender, fit(limit))).fetchall()
    if len(newest) < limit:
        for (ids,) in connection.execute(_BLOCKS, (sender, listed_to, first)):
            block = _decode(ids)
            newest += reversed(block)
            if len(newest) >= limit or block[0][1] < first:
                break
    newest = [each for each in newest[:limit] if each[1] >= first]
    return dict(reversed(newest))


def prune_ids(connection: sqlite3.Connection, before: int, limit: int) -> None:
    """Inside the caller's transaction: those of messages from before that moment, a few blocks at a time."""
    connection.execute(_PRUNE, (first_number_since(before), max(limit, 1)))


def erase_doomed_ids(connection: sqlite3.Connection) -> None:
    """Inside the caller's transaction: those of the messages in temp.doomed, before they go themselves; all are listed."""
    doomed = {number for (number,) in connection.execute("SELECT number FROM temp.doomed")}
    blocks: Iterable[tuple[int | None]] = connection.execute(_DOOMED).fetchall()
    for (place,) in blocks:
        if place is None:  # its block was pruned
            continue
        (ids,) = connection.execute("SELECT ids FROM sent_ids WHERE last_number = ?", (place,)).fetchone()
        left = [each for each in _decode(ids) if each[1] not in doomed]
        if left:
            connection.execute("UPDATE sent_ids SET ids = ? WHERE last_number = ?", (_encode(left).decode(), place))
        else:
            connection.execute("DELETE FROM sent_ids WHERE last_number = ?", (place,))
