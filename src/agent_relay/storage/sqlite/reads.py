"""Every question the store answers, as a function of a read-only connection, and the thread that asks it there."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import msgspec
from msgspec import Struct

from agent_relay.ports.store import (
    Conversation,
    DeadLetterQuery,
    DeadLetterRow,
    MessageQuery,
    MessageRow,
    Page,
    StoreError,
    TrailRow,
)
from agent_relay.protocol.names import fold_name
from agent_relay.storage.conversations import Tally
from agent_relay.storage.posting import Post, post_answer
from agent_relay.storage.replay import Replay
from agent_relay.storage.sqlite.errors import report
from agent_relay.storage.sqlite.files import connect_reader
from agent_relay.storage.sqlite.rows import MESSAGE_COLUMNS, read_message, read_messages, read_meta
from agent_relay.storage.times import first_number_since, fit, last_number_before
from agent_relay.storage.words import build_match, split_words

Read = Callable[[sqlite3.Connection], Any]

# The search in the text is what is fast; it only lets too much through, and the rest decides.
_HAS_RECIPIENT = (
    "instr(lower(m.recipients), lower(?)) > 0 AND "
    "EXISTS (SELECT 1 FROM json_each(m.recipients) AS each WHERE json_extract(each.value, '$[0]') = ? COLLATE NOCASE)"
)
_BETWEEN = (
    "((m.sender = ? COLLATE NOCASE AND m.target = ? COLLATE NOCASE)"
    " OR (m.sender = ? COLLATE NOCASE AND m.target = ? COLLATE NOCASE))"
)
_STEPS = """
    SELECT topic, sender, recipient, first_seq, last_seq, at, event, detail FROM trail
    WHERE recipient = ? AND sender = ? AND topic = ? AND first_seq = ? AND last_seq = ? ORDER BY at, place
"""
_GROUPS = """
    SELECT sender, target, topic, thread, count(*), max(number) FROM messages
    WHERE number > ? GROUP BY sender, target, topic, thread ORDER BY max(number)
"""
_FETCH = f"SELECT {MESSAGE_COLUMNS} FROM messages AS m WHERE m.number IN (SELECT value FROM json_each(?)) ORDER BY m.number"  # noqa: S608
_TRAIL = """
    SELECT at, place, topic, sender, recipient, first_seq, last_seq, at, event, detail FROM trail
    WHERE recipient = ? AND sender = ? AND topic = ? AND first_seq <= ? AND last_seq >= ?
"""
_TO_AGENT_INDEXED = f"""
    SELECT {MESSAGE_COLUMNS} FROM message_agents AS a CROSS JOIN messages AS m ON m.number = a.number
    WHERE a.agent = ? AND a.number <= ? ORDER BY a.number DESC
"""  # noqa: S608
_TO_AGENT_LATER = f"""
    SELECT {MESSAGE_COLUMNS} FROM messages AS m
    WHERE instr(lower(m.recipients), lower(?)) > 0 AND m.number > ? ORDER BY m.number DESC
"""  # noqa: S608
_DEAD = f"""
    SELECT d.number, d.recipient, d.at, d.code, {MESSAGE_COLUMNS} FROM dead_letters AS d JOIN messages AS m ON m.number = d.number
"""  # noqa: S608
_DEAD_NEWEST = f"{_DEAD} ORDER BY d.at DESC, d.number DESC LIMIT ?"
_DEAD_AFTER = f"{_DEAD} WHERE (d.number, d.recipient) > (?, ?) ORDER BY d.number, d.recipient LIMIT ?"
_DEAD_AMONG = "SELECT number, recipient FROM dead_letters WHERE number IN (SELECT value FROM json_each(?))"

_log = logging.getLogger(__name__)


def needs_words(query: MessageQuery) -> bool:
    """Whether the index of words has to be brought up to date first. That of agents need not: what it lacks is scanned."""
    return query.search is not None and bool(split_words(query.search))


def find_messages(connection: sqlite3.Connection, query: MessageQuery) -> Page:
    limit = max(query.limit, 0)
    if limit == 0 or (query.search is not None and not needs_words(query)):
        return Page([])
    meta = read_meta(connection)
    messages: list[MessageRow] = []
    sources = _choose_sources(query, meta["indexed_to"])
    for source in sources if query.after is None else reversed(sources):
        sql, values = _build_find(query, source, meta["lag_ms"])
        wanted = limit + 1 - len(messages)
        messages += read_messages(connection.execute(f"{sql} LIMIT ?", (*values, fit(wanted))))
        if len(messages) > limit:
            return _make_page(connection, messages[:limit], messages[limit - 1].number)
    return _make_page(connection, messages)


class _Source(Struct):
    """A table that leads through the messages from the newest down, the column that orders it, and what selects in it."""

    tables: str
    key: str
    condition: str
    values: tuple[Any, ...]


def _choose_sources(query: MessageQuery, indexed_to: int) -> list[_Source]:
    """The most selective way there is; by agent it is two, as the newest messages may not be in the index yet."""
    if query.search is not None:
        words = build_match(split_words(query.search))
        return [
            _Source(
                "message_words AS w CROSS JOIN messages AS m ON m.number = w.rowid",
                "w.rowid",
                "w.message_words MATCH ?",
                (words,),
            )
        ]
    agent = query.with_agent or query.sender or query.recipient or (query.between[0] if query.between else None)
    if agent is None:
        return [_Source("messages AS m", "m.number", "TRUE", ())]
    by_agent = "message_agents AS a CROSS JOIN messages AS m ON m.number = a.number"
    indexed = "a.agent = ? AND a.number <= ?"
    values: tuple[Any, ...] = (agent, indexed_to)
    if query.between is not None:  # both are in the index, so most of what is not between them is never looked at
        indexed += " AND EXISTS (SELECT 1 FROM message_agents AS b WHERE b.agent = ? AND b.number = a.number)"
        values = (*values, query.between[1])
    return [
        _Source("messages AS m", "m.number", "m.number > ?", (indexed_to,)),
        _Source(by_agent, "a.number", indexed, values),
    ]


def _build_find(query: MessageQuery, source: _Source, lag_ms: int) -> tuple[str, list[Any]]:
    conditions = [source.condition]
    values = [*source.values]

    def require(condition: str, *given: Any) -> None:
        conditions.append(condition)
        values.extend(given)

    if query.with_agent is not None:
        require(f"(m.sender = ? COLLATE NOCASE OR {_HAS_RECIPIENT})", *[query.with_agent] * 3)
    if query.sender is not None:
        require("m.sender = ? COLLATE NOCASE", query.sender)
    if query.recipient is not None:
        require(_HAS_RECIPIENT, *[query.recipient] * 2)
    if query.between is not None:
        one, other = query.between
        require(_BETWEEN, one, other, other, one)
    _require_address(query, require)
    _require_range(query, source.key, lag_ms, require)
    where = " AND ".join(conditions)
    order = f"{source.key} {'DESC' if query.after is None else 'ASC'}"
    # Every piece of the statement is a constant of this file; what was asked for is bound.
    return f"SELECT {MESSAGE_COLUMNS} FROM {source.tables} WHERE {where} ORDER BY {order}", values  # noqa: S608


def _require_address(query: MessageQuery, require: Any) -> None:
    """The constant halves repeat the conditions of the partial indexes: without them SQLite may not use these."""
    if query.target is not None:
        marked = "" < query.target < "0"
        require("m.target = ?" + (" AND m.target > '' AND m.target < '0'" if marked else ""), query.target)
    if query.topic is not None:
        require("m.topic = ?" + (" AND m.topic > ''" if query.topic else ""), query.topic)
    if query.thread is not None:
        require("m.thread = ?", query.thread)
    if query.kind is not None:
        require("m.kind = ?", query.kind)


def _require_range(query: MessageQuery, key: str, lag_ms: int, require: Any) -> None:
    if query.since is not None:
        require(f"{key} >= ? AND m.ts >= ?", first_number_since(query.since), fit(query.since))
    if query.until is not None:
        require(f"{key} <= ? AND m.ts < ?", last_number_before(query.until, lag_ms), fit(query.until))
    if query.before is not None:
        require(f"{key} < ?", fit(query.before))
    if query.after is not None:
        require(f"{key} > ?", fit(query.after))


def fetch_messages(connection: sqlite3.Connection, numbers: list[int]) -> Page:
    return _make_page(connection, read_messages(connection.execute(_FETCH, (_list_numbers(numbers),))))


def _make_page(connection: sqlite3.Connection, messages: list[MessageRow], next_before: int | None = None) -> Page:
    numbers = _list_numbers([message.number for message in messages])
    dead = frozenset((number, fold_name(name)) for number, name in connection.execute(_DEAD_AMONG, (numbers,)))
    return Page(messages, next_before, dead)


def _list_numbers(numbers: list[int]) -> str:
    return msgspec.json.encode([fit(number) for number in numbers]).decode()


def read_trail(connection: sqlite3.Connection, message: MessageRow) -> list[TrailRow]:
    found: list[tuple[Any, ...]] = []
    for recipient, seq in message.recipients:
        found += connection.execute(_TRAIL, (recipient, message.sender, message.topic, seq, seq))
    found.sort(key=lambda row: row[:2])
    return [TrailRow(*row[2:]) for row in found]


def read_steps(connection: sqlite3.Connection, messages: list[MessageRow]) -> list[list[TrailRow]]:
    return [
        [
            TrailRow(*row)
            for recipient, seq in message.recipients
            for row in connection.execute(_STEPS, (recipient, message.sender, message.topic, seq, seq))
        ]
        for message in messages
    ]


class Conversations:
    """The tally over one file, kept between questions. The first one reads all messages, later ones those that are new."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._is_stale = False

    def forget(self) -> None:
        """Some were pruned. May be said in any thread; the next question counts anew."""
        self._is_stale = True

    def read(self, connection: sqlite3.Connection, limit: int) -> list[tuple[Conversation, MessageRow]]:
        if self._is_stale:
            self._tally, self._is_stale = Tally(), False
        self._tally.add(connection.execute(_GROUPS, (self._tally.reached,)).fetchall())  # all of it or nothing
        found = self._tally.newest(limit)
        rows = {row.number: row for row in fetch_messages(connection, [each.last for each in found]).messages}
        return [(each, rows[each.last]) for each in found if each.last in rows]


def replay_messages(connection: sqlite3.Connection, recipient: str, after: dict[tuple[str, str], int]) -> Page:
    replay = Replay(recipient, after)
    for message in _messages_to(connection, recipient) if after else ():
        if not replay.look_at(message):
            break
    return _make_page(connection, replay.found)


def _messages_to(connection: sqlite3.Connection, agent: str) -> Iterator[MessageRow]:
    """From the newest down; some from this agent, or to one whose name contains this one, are among them."""
    indexed_to = read_meta(connection)["indexed_to"]
    for statement in (_TO_AGENT_LATER, _TO_AGENT_INDEXED):
        yield from map(read_message, connection.execute(statement, (agent, indexed_to)))


def read_dead_letters(connection: sqlite3.Connection, query: DeadLetterQuery) -> list[tuple[DeadLetterRow, MessageRow]]:
    limit = fit(max(query.limit, 0))
    if query.after is None:
        rows = connection.execute(_DEAD_NEWEST, (limit,))
    else:
        number, name = query.after
        rows = connection.execute(_DEAD_AFTER, (fit(number), name, limit))
    return [(DeadLetterRow(*row[:4]), read_message(row[4:])) for row in rows]


class Reader:
    """A thread with a read-only connection of its own, so that neither the loop nor the writer waits for an answer."""

    def __init__(self, path: Path, post: Post) -> None:
        self._path = path
        self._post = post
        self._queue: SimpleQueue[tuple[Read, Callable[[Any], None]] | None] = SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._thread = Thread(target=self._run, name="relay-store-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, read: Read, done: Callable[[Any], None]) -> None:
        self._queue.put((read, done))

    def stop(self) -> None:
        """Returns when everything submitted before is answered."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        self._answer(_look)  # so that it has the file open, whatever becomes of its name
        while (task := self._queue.get()) is not None:
            read, done = task
            post_answer(self._post, partial(done, self._answer(read)))
        self._disconnect()

    def _answer(self, read: Read) -> Any:
        try:
            if self._connection is None:
                self._connection = connect_reader(self._path)
            return read(self._connection)
        except sqlite3.Error as error:
            self._disconnect()
            _log.warning("A read from %s failed: %s", self._path, error)
            return report(self._path, error)
        except Exception as error:  # noqa: BLE001 - an odd question must not end the thread that answers all the others
            self._disconnect()
            _log.exception("A read from %s failed.", self._path)
            return StoreError(f"The query failed ({type(error).__name__}).")

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _look(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT 1 FROM meta LIMIT 1").fetchall()
