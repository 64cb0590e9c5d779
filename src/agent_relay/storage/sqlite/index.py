"""The tables that make messages findable by word and by agent, filled behind the messages in small transactions.

Filling them costs several times what storing a message does, so it is done while nobody waits, or when a read needs it.
`meta.indexed_to` says how far they reach and is written in the same transaction.
"""

from __future__ import annotations

import sqlite3

from agent_relay.storage.sqlite.rows import write_meta

CHUNK_ROWS = 250  # a write that arrives meanwhile waits for one chunk: some 10 ms
CHUNK_BYTES = 1024 * 1024  # and large bodies do not make that a second

_NEXT = "SELECT number, length(tail) FROM messages WHERE number > ? ORDER BY number LIMIT ?"

_ADD_WORDS = """
    INSERT INTO message_words (rowid, body)
    SELECT number, body FROM message_bodies WHERE number > ?1 AND number <= ?2 AND body IS NOT NULL
"""
_ADD_AGENTS = """
    INSERT OR IGNORE INTO message_agents (agent, number)
    SELECT sender, number FROM messages WHERE number > ?1 AND number <= ?2
    UNION ALL
    SELECT json_extract(each.value, '$[0]'), m.number
    FROM messages AS m, json_each(m.recipients) AS each WHERE m.number > ?1 AND m.number <= ?2
"""
_REMOVE_WORDS = """
    INSERT INTO message_words (message_words, rowid, body)
    SELECT 'delete', number, body FROM message_bodies
    WHERE number IN (SELECT number FROM temp.doomed) AND number <= ?1 AND body IS NOT NULL
"""
_DOOMED_AGENTS = """
    SELECT sender, number FROM messages WHERE number IN (SELECT number FROM temp.doomed)
    UNION ALL
    SELECT json_extract(each.value, '$[0]'), m.number
    FROM messages AS m, json_each(m.recipients) AS each WHERE m.number IN (SELECT number FROM temp.doomed)
"""


def index_chunk(connection: sqlite3.Connection, after: int) -> int:
    """Indexes the next messages after that number, inside the caller's transaction; the number it reaches to now."""
    reached, size_bytes = after, 0
    for number, tail_bytes in connection.execute(_NEXT, (after, CHUNK_ROWS)):
        size_bytes += tail_bytes
        if size_bytes > CHUNK_BYTES and reached > after:
            break
        reached = number
    if reached > after:
        connection.execute(_ADD_WORDS, (after, reached))
        connection.execute(_ADD_AGENTS, (after, reached))
        write_meta(connection, indexed_to=reached)
    return reached


def remove_from_index(connection: sqlite3.Connection, indexed_to: int) -> None:
    """Takes the messages of temp.doomed out, inside the caller's transaction and before they go themselves."""
    connection.execute(_REMOVE_WORDS, (indexed_to,))
    # Row by row: with (agent, number) IN (SELECT …) SQLite reads the whole table, seconds for a million messages.
    doomed = connection.execute(_DOOMED_AGENTS).fetchall()
    connection.executemany("DELETE FROM message_agents WHERE agent = ? AND number = ?", doomed)
