"""Taking one agent out of the tables, and what was deleted out of the files.

SQLite overwrites what it deletes (`secure_delete`), but the words of deleted messages stay in the full-text index until its
parts are merged, and the WAL holds earlier pages until it is cut. So after a deletion the index is merged, a few pages at a
time so that no write waits long for it, and then the WAL is emptied.
"""

from __future__ import annotations

import sqlite3

import msgspec

from agent_relay.protocol.names import fold_name
from agent_relay.storage.sqlite.index import remove_from_index
from agent_relay.storage.sqlite.prune import empty_doomed
from agent_relay.storage.sqlite.rows import read_meta
from agent_relay.storage.sqlite.sent import erase_doomed_ids

_MERGED_PAGES = 64  # of the index in one step: some 10 ms

_FOUND = """
    SELECT m.number, m.sender, m.target, m.recipients, m.skipped
    FROM message_agents AS a JOIN messages AS m ON m.number = a.number
    WHERE a.agent = ? ORDER BY a.number LIMIT ?
"""


def erase_agent(connection: sqlite3.Connection, agent: str, limit: int) -> tuple[int, int]:
    """Inside the caller's transaction, with everything indexed and listed: how many messages were looked at, and how many of them
    went. What it sent, or alone was sent, goes; what it got with others stays theirs, without it."""
    key = fold_name(agent)
    found = connection.execute(_FOUND, (agent, max(limit, 0))).fetchall()
    empty_doomed(connection)
    gone = 0
    for number, sender, target, recipients, skipped in found:
        others = [each for each in msgspec.json.decode(recipients) if fold_name(each[0]) != key]
        if fold_name(sender) == key or not others:
            connection.execute("INSERT INTO temp.doomed VALUES (?)", (number,))
            gone += 1
            continue
        left = [name for name in msgspec.json.decode(skipped or "[]") if fold_name(name) != key]
        values = (_without(target, key), _encode(others), _encode(left) if left else None, number)
        connection.execute("UPDATE messages SET target = ?, recipients = ?, skipped = ? WHERE number = ?", values)
        connection.execute("DELETE FROM message_agents WHERE agent = ? AND number = ?", (agent, number))
        for table in ("backlog", "dead_letters"):
            connection.execute(f"DELETE FROM {table} WHERE recipient = ? AND number = ?", (agent, number))  # noqa: S608 - ours
    if gone:
        remove_from_index(connection, read_meta(connection)["indexed_to"])
        erase_doomed_ids(connection)
        for table in ("messages", "backlog", "dead_letters"):
            connection.execute(f"DELETE FROM {table} WHERE number IN (SELECT number FROM temp.doomed)")  # noqa: S608 - ours
    if len(found) < max(limit, 1):
        connection.execute("DELETE FROM trail WHERE sender = ?1 OR recipient = ?1", (agent,))
        connection.execute("DELETE FROM sent_ids WHERE sender = ?", (agent,))
    return len(found), gone


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _without(target: str, key: str) -> str:
    """A list of names without that one."""
    if "," not in target:
        return target
    return ",".join(name for name in target.split(",") if fold_name(name.strip()) != key)


def merge_index(connection: sqlite3.Connection, *, begins: bool) -> bool:
    """One step, inside the caller's transaction; True: there is more to do."""
    before = connection.total_changes
    pages = -_MERGED_PAGES if begins else _MERGED_PAGES  # negative: all parts are to become one
    connection.execute("INSERT INTO message_words (message_words, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes - before >= 2


def empty_wal(connection: sqlite3.Connection) -> bool:
    """False: somebody reads from it just now."""
    return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
