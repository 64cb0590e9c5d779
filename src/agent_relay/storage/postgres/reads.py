"""Every question the store answers, as a coroutine over a connection that only reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agent_relay.ports.store import (
    Conversation,
    DeadLetterQuery,
    DeadLetterRow,
    MessageQuery,
    MessageRow,
    Owed,
    OwedQuery,
    Page,
    TrailRow,
)
from agent_relay.protocol.names import fold_name
from agent_relay.storage.conversations import Tally
from agent_relay.storage.postgres.connection import Connection
from agent_relay.storage.postgres.rows import (
    MESSAGE_COLUMNS,
    TRAIL_COLUMNS,
    build_query,
    escape_text,
    read_dead_letter,
    read_message,
    read_trail_row,
    restore_text,
)
from agent_relay.storage.replay import Replay
from agent_relay.storage.times import first_number_since, fit, last_number_before
from agent_relay.storage.words import body_of, split_words, words_occur

_LARGEST = 2**63 - 1
_PAGE = 500  # messages read at a time, where it is not known how many are needed

_HAS_RECIPIENT = (
    "EXISTS (SELECT 1 FROM message_agents AS r WHERE r.agent = {0} AND r.number = m.number) AND EXISTS ("
    'SELECT 1 FROM jsonb_array_elements(m.recipients) AS e WHERE lower((e.value ->> 0) COLLATE "C") = {0})'
)
_FETCH = f"SELECT {MESSAGE_COLUMNS} FROM messages AS m WHERE m.number = ANY ($1) ORDER BY m.number"  # noqa: S608
_TRAIL = f"""
    SELECT {TRAIL_COLUMNS} FROM unnest($1::text[], $2::bigint[]) AS w (recipient, seq) JOIN trail AS t
        ON lower(t.recipient) = w.recipient AND lower(t.sender) = $3 AND t.topic = $4
        AND t.first_seq <= w.seq AND t.last_seq >= w.seq
    ORDER BY t.at, t.place
"""  # noqa: S608
_STEPS = f"""
    SELECT w.message, {TRAIL_COLUMNS}
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[])
        WITH ORDINALITY AS w (message, recipient, sender, topic, seq, place)
    JOIN trail AS t ON lower(t.recipient) = w.recipient AND lower(t.sender) = w.sender AND t.topic = w.topic
        AND t.first_seq = w.seq AND t.last_seq = w.seq
    ORDER BY w.place, t.at, t.place
"""  # noqa: S608
_GROUPS = """
    SELECT sender, target, topic, thread, count(*), max(number) FROM messages
    WHERE number > $1 GROUP BY sender, target, topic, thread ORDER BY max(number)
"""
_TO_AGENT = f"""
    SELECT {MESSAGE_COLUMNS} FROM message_agents AS a JOIN messages AS m ON m.number = a.number
    WHERE a.agent = $1 AND a.number < $2 ORDER BY a.number DESC LIMIT {_PAGE}
"""  # noqa: S608
_DEAD = f"""
    SELECT d.recipient AS for_whom, d.at, d.code, {MESSAGE_COLUMNS}
    FROM dead_letters AS d JOIN messages AS m ON m.number = d.number
"""  # noqa: S608
_DEAD_NEWEST = f"{_DEAD} ORDER BY d.at DESC, d.number DESC LIMIT $1"
_DEAD_AFTER = f"{_DEAD} WHERE (d.number, lower(d.recipient)) > ($2, $3) ORDER BY d.number, lower(d.recipient) LIMIT $1"
_DEAD_AMONG = "SELECT number, recipient FROM dead_letters WHERE number = ANY ($1)"
_SEEN = """
    SELECT client_id, number FROM message_agents
    WHERE agent = $1 AND client_id IS NOT NULL AND number >= $2 ORDER BY number DESC LIMIT $3
"""
_OWED = f"""
    SELECT b.recipient AS for_whom, b.seq, (
        SELECT count(*) FROM trail AS t WHERE lower(t.recipient) = lower(b.recipient) AND lower(t.sender) = lower(m.sender)
        AND t.topic = m.topic AND t.first_seq = b.seq AND t.last_seq = b.seq AND t.event = 'resent') AS resent, {MESSAGE_COLUMNS}
    FROM backlog AS b JOIN messages AS m ON m.number = b.number
    WHERE (b.number, lower(b.recipient)) > ($1, $2) {{conditions}} ORDER BY b.number, lower(b.recipient) LIMIT $3
"""  # noqa: S608


class _Conditions:
    """Pieces of a statement, which are constants of this file, and the values bound to them."""

    def __init__(self, *values: Any) -> None:
        self.texts: list[str] = []
        self.values: list[Any] = [*values]

    def require(self, text: str, *values: Any) -> None:
        places = [f"${len(self.values) + place}" for place in range(1, len(values) + 1)]
        self.texts.append(text.format(*places))
        self.values += values


async def find_messages(connection: Connection, query: MessageQuery, lag_ms: int) -> Page:
    """A page of messages. The index of words lets too much through: those that do not fit are left out, and the next are read."""
    limit = max(query.limit, 0)
    words = None if query.search is None else split_words(query.search)
    if limit == 0 or (words is not None and build_query(words) is None):
        return Page([])
    found: list[MessageRow] = []
    edge = query.before if query.after is None else query.after
    while True:
        wanted = limit + 1 - len(found) if words is None else max(limit + 1 - len(found), _PAGE)
        sql, values = _build_find(query, words, lag_ms, edge, fit(wanted))
        rows = [read_message(row) for row in await connection.fetch(sql, *values)]
        found += rows if words is None else [row for row in rows if words_occur(words, body_of(row))]
        if len(found) > limit:
            return await _make_page(connection, found[:limit], found[limit - 1].number)
        if len(rows) < wanted:
            return await _make_page(connection, found)
        edge = rows[-1].number


def _build_find(query: MessageQuery, words: list[str] | None, lag_ms: int, edge: int | None, limit: int) -> tuple[str, list[Any]]:
    conditions = _Conditions(limit)
    require = conditions.require
    tables, key = "messages AS m", "m.number"
    agent = query.with_agent or query.sender or query.recipient or (query.between[0] if query.between else None)
    if words is not None:
        require("m.words @@ ({0}::text)::tsquery", build_query(words))
    elif agent is not None:
        tables, key = "message_agents AS a JOIN messages AS m ON m.number = a.number", "a.number"
        require("a.agent = {0}", fold_name(agent))
    if query.with_agent is not None:
        require(f"(lower(m.sender) = {{0}} OR {_HAS_RECIPIENT})", fold_name(query.with_agent))
    if query.sender is not None:
        require("lower(m.sender) = {0}", fold_name(query.sender))
    if query.recipient is not None:
        require(_HAS_RECIPIENT, fold_name(query.recipient))
    if query.between is not None:
        pair = map(fold_name, query.between)
        require("(lower(m.sender), lower(m.target)) IN (({0}, {1}), ({1}, {0}))", *pair)
    _require_address(query, require)
    if query.since is not None:
        require(f"{key} >= {{0}} AND m.ts >= {{1}}", first_number_since(query.since), fit(query.since))
    if query.until is not None:
        require(f"{key} <= {{0}} AND m.ts < {{1}}", last_number_before(query.until, lag_ms), fit(query.until))
    if query.before is not None and query.after is not None:
        require(f"{key} < {{0}}", fit(query.before))
    if edge is not None:
        require(f"{key} {'<' if query.after is None else '>'} {{0}}", fit(edge))
    where = " AND ".join(conditions.texts) or "true"
    order = f"{key} {'DESC' if query.after is None else 'ASC'}"
    sql = f"SELECT {MESSAGE_COLUMNS} FROM {tables} WHERE {where} ORDER BY {order} LIMIT $1"  # noqa: S608 - see _Conditions
    return sql, conditions.values


def _require_address(query: MessageQuery, require: Any) -> None:
    """The constant halves repeat the conditions of the partial indexes: without them these are not used."""
    if query.target is not None:
        marked = "" < query.target < "0"
        require("m.target = {0}" + (" AND m.target > '' AND m.target < '0'" if marked else ""), escape_text(query.target))
    if query.topic is not None:
        require("m.topic = {0}" + (" AND m.topic > ''" if query.topic else ""), escape_text(query.topic))
    if query.thread is not None:
        require("m.thread = {0}", escape_text(query.thread))
    if query.kind is not None:
        require("m.kind = {0}", escape_text(query.kind))


async def fetch_messages(connection: Connection, numbers: list[int]) -> Page:
    rows = await connection.fetch(_FETCH, [fit(number) for number in numbers])
    return await _make_page(connection, [read_message(row) for row in rows])


async def _make_page(connection: Connection, messages: list[MessageRow], next_before: int | None = None) -> Page:
    dead = await connection.fetch(_DEAD_AMONG, [message.number for message in messages]) if messages else []
    return Page(messages, next_before, frozenset((row["number"], fold_name(row["recipient"])) for row in dead))


async def read_trail(connection: Connection, message: MessageRow) -> list[TrailRow]:
    names = [fold_name(name) for name, _ in message.recipients]
    seqs = [fit(seq) for _, seq in message.recipients]
    rows = await connection.fetch(_TRAIL, names, seqs, fold_name(message.sender), escape_text(message.topic))
    return [read_trail_row(row) for row in rows]


async def read_steps(connection: Connection, messages: list[MessageRow]) -> list[list[TrailRow]]:
    wanted = [
        (place, fold_name(name), fold_name(message.sender), escape_text(message.topic), fit(seq))
        for place, message in enumerate(messages)
        for name, seq in message.recipients
    ]
    found: list[list[TrailRow]] = [[] for _ in messages]
    if wanted:
        for row in await connection.fetch(_STEPS, *map(list, zip(*wanted, strict=True))):
            found[row["message"]].append(read_trail_row(row))
    return found


class Conversations:
    """The tally over one schema, kept between questions. The first one reads all messages, later ones those that are new."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._is_stale = False

    def forget(self) -> None:
        """Some were removed. May be said in any thread; the next question counts anew."""
        self._is_stale = True

    async def read(self, connection: Connection, limit: int) -> list[tuple[Conversation, MessageRow]]:
        if self._is_stale:
            self._tally, self._is_stale = Tally(), False
        groups = await connection.fetch(_GROUPS, self._tally.reached)
        self._tally.add(
            (sender, restore_text(target), restore_text(topic), thread and restore_text(thread), count, last)
            for sender, target, topic, thread, count, last in groups
        )
        found = self._tally.newest(limit)
        rows = {row.number: row for row in (await fetch_messages(connection, [each.last for each in found])).messages}
        return [(each, rows[each.last]) for each in found if each.last in rows]


async def replay_messages(connection: Connection, recipient: str, after: dict[tuple[str, str], int]) -> Page:
    replay = Replay(recipient, after)
    if after:
        async for message in _messages_to(connection, fold_name(recipient)):
            if not replay.look_at(message):
                break
    return await _make_page(connection, replay.found)


async def _messages_to(connection: Connection, agent: str) -> AsyncIterator[MessageRow]:
    """From the newest down; some from this agent are among them."""
    before = _LARGEST
    while True:
        rows = await connection.fetch(_TO_AGENT, agent, before)
        for row in rows:
            yield read_message(row)
        if len(rows) < _PAGE:
            return
        before = rows[-1]["number"]


async def read_owed(connection: Connection, query: OwedQuery) -> list[Owed]:
    number, name = query.after
    conditions = _Conditions(fit(number), fold_name(name), fit(max(query.limit, 0)))
    if query.recipient is not None:
        conditions.require("AND lower(b.recipient) = {0}", fold_name(query.recipient))
    if query.sender is not None:
        conditions.require("AND lower(m.sender) = {0}", fold_name(query.sender))
    if query.expired_at is not None:
        conditions.require("AND b.expires_at <= {0}", fit(query.expired_at))
    rows = await connection.fetch(_OWED.format(conditions=" ".join(conditions.texts)), *conditions.values)
    return [Owed(read_message(row), row["for_whom"], row["seq"], row["resent"]) for row in rows]


async def read_seen(connection: Connection, sender: str, since: int, limit: int) -> dict[str, int]:
    rows = await connection.fetch(_SEEN, fold_name(sender), first_number_since(since), fit(max(limit, 0)))
    return {restore_text(row["client_id"]): row["number"] for row in reversed(rows)}


async def read_dead_letters(connection: Connection, query: DeadLetterQuery) -> list[tuple[DeadLetterRow, MessageRow]]:
    limit = fit(max(query.limit, 0))
    if query.after is None:
        rows = await connection.fetch(_DEAD_NEWEST, limit)
    else:
        number, name = query.after
        rows = await connection.fetch(_DEAD_AFTER, limit, fit(number), fold_name(name))
    return [(read_dead_letter({**row, "recipient": row["for_whom"]}), read_message(row)) for row in rows]
