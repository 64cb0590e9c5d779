"""Messages taken out of the tables, with everything that points at them: the old ones, and those of one agent.

A few at a time, so that no write waits long for it. How what was deleted leaves the files as well is in `clearing`.
"""

from __future__ import annotations

import sqlite3

import msgspec

from agent_relay.protocol.encode import keep_shadows, read_shadows
from agent_relay.protocol.names import fold_name
from agent_relay.storage.sqlite.index import remove_from_index
from agent_relay.storage.sqlite.rows import read_meta
from agent_relay.storage.sqlite.sent import erase_doomed_ids, prune_ids
from agent_relay.storage.times import last_number_before

_TRAIL_ROWS_A_MESSAGE = 4  # the trail shrinks at least as fast as it grew

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
_FOUND = """
    SELECT m.number, m.sender, m.target, m.recipients, m.skipped, m.tail
    FROM message_agents AS a JOIN messages AS m ON m.number = a.number
    WHERE a.agent = ? ORDER BY a.number LIMIT ?
"""


def prune_messages(connection: sqlite3.Connection, before: int, limit: int) -> int:
    """Inside the caller's transaction; how many messages went. What came after the checkpoint may still be owed: it stays."""
    meta = read_meta(connection)
    _empty_doomed(connection)
    newest = min(meta["checkpoint"], last_number_before(before, meta["lag_ms"]))
    chosen = connection.execute(_CHOOSE, (newest, before, max(limit, 0))).rowcount
    if chosen:
        remove_from_index(connection, meta["indexed_to"])
        connection.execute("DELETE FROM messages WHERE number IN (SELECT number FROM temp.doomed)")
    connection.execute(_PRUNE_TRAIL, (max(limit, 1) * _TRAIL_ROWS_A_MESSAGE, before))
    connection.execute("DELETE FROM spent_tokens WHERE spent_at < ?", (before,))
    prune_ids(connection, before, limit)
    return chosen


def _empty_doomed(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS doomed (number INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM temp.doomed")


def erase_agent(connection: sqlite3.Connection, agent: str, limit: int) -> tuple[int, int]:
    """Inside the caller's transaction, with everything indexed and listed: how many messages were looked at, and how many of them
    went. What it sent, or alone was sent, goes; what it got with others stays theirs, without it."""
    key = fold_name(agent)
    found = connection.execute(_FOUND, (agent, max(limit, 0))).fetchall()
    _empty_doomed(connection)
    gone = 0
    for number, sender, target, recipients, skipped, tail in found:
        others = [each for each in msgspec.json.decode(recipients) if fold_name(each[0]) != key]
        shadows = read_shadows(tail)
        is_left = any(name not in shadows for name, _ in others)  # a copy alone keeps no message
        if fold_name(sender) == key or not is_left:
            connection.execute("INSERT INTO temp.doomed VALUES (?)", (number,))
            gone += 1
            continue
        left = [name for name in msgspec.json.decode(skipped or "[]") if fold_name(name) != key]
        kept = bytearray(keep_shadows(tail, [name for name in shadows if fold_name(name) != key]))
        values = (_without(target, key), _encode(others), _encode(left) if left else None, kept, number)
        connection.execute("UPDATE messages SET target = ?, recipients = ?, skipped = ?, tail = ? WHERE number = ?", values)
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
