"""Messages in a PostgreSQL database: `PostgresStore`, put together from a session, a writer and a reader.

Theory of operation. The driver needs an event loop, and the daemon's is not to wait for a server. So the store has a thread with
a loop of its own, as the SQLite store has threads: calls are passed to it, and answers come back through `post`. In it a task
writes, with the only connection that may, and another one reads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from agent_relay.ports.store import (
    Batch,
    ConversationsDone,
    DeadLetterQuery,
    DeadLettersDone,
    MessageQuery,
    MessageRow,
    OwedDone,
    OwedQuery,
    PageDone,
    PruneDone,
    SeenDone,
    Snapshot,
    StepsDone,
    StoreError,
    StoreStats,
    StoreUnusable,
    TrailDone,
    Waiting,
    WriteDone,
)
from agent_relay.storage.postgres import reads, rows
from agent_relay.storage.postgres.connection import Connection, Record, hide_secrets
from agent_relay.storage.postgres.reader import Read, Reader
from agent_relay.storage.postgres.session import Session
from agent_relay.storage.postgres.url import DatabaseUrl
from agent_relay.storage.postgres.writer import Writer
from agent_relay.storage.posting import Post, post_answer

_ADOPT = "SELECT adopt_later($1, $2)"
_WAITING = (
    "SELECT min(recipient) AS recipient, count(*) AS count, sum(size)::bigint AS size FROM backlog GROUP BY lower(recipient)"
)


async def load_snapshot(session: Session, state: Record) -> Snapshot:
    """For the core at start. Of messages only what came in the last seconds is looked at, however many are stored. Raises
    StoreUnusable."""
    adopted = await session.change(_ADOPT)
    if isinstance(adopted, StoreError):
        raise StoreUnusable(str(adopted))

    async def read(query: str) -> list[Record]:
        found = await session.fetch(query)
        if found is None:
            raise StoreUnusable(f"{session.url.location} cannot be read; try again.")
        return found

    return Snapshot(
        agents=[rows.read_agent(row) for row in await read("SELECT * FROM agents ORDER BY registered_at, lower(name)")],
        spent_tokens=[rows.read_token(row) for row in await read("SELECT * FROM spent_tokens ORDER BY spent_at")],
        subscriptions=[rows.read_subscription(row) for row in await read("SELECT * FROM subscriptions")],
        members=[rows.read_member(row) for row in await read("SELECT * FROM members")],
        streams=[rows.read_stream(row) for row in await read("SELECT * FROM streams")],
        waiting=[Waiting(row["recipient"], row["count"], row["size"]) for row in await read(_WAITING)],
        dead_letters=(await read("SELECT count(*) AS count FROM dead_letters"))[0]["count"],
        documents=dict(rows.read_document(row) for row in await read("SELECT * FROM documents")),
        last_number=state["last_number"],
        first_seq=state["first_seq"],
    )


_SIZED_EVERY_S = 15.0
_SIZE = """
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
    WHERE relnamespace = to_regnamespace(current_schema()) AND relkind = 'r'
"""

_T = TypeVar("_T")


class PostgresStore:
    """`project` names whose messages these are, for whoever finds the database in use; `copied_from` is set for the target of a
    copy alone."""

    def __init__(self, url: DatabaseUrl, post: Post, project: str = "", durability: str = "full", copied_from: str = "") -> None:
        self._url = url
        self._post = post
        self._project = project
        self._copied_from = copied_from
        self._settings = {} if durability == "full" else {"synchronous_commit": "off"}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._session: Session | None = None
        self._writer: Writer | None = None
        self._reader: Reader | None = None
        self._conversations = reads.Conversations()
        self._size_bytes = 0
        self._sized_at = 0.0

    def open(self) -> Snapshot:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="relay-store", daemon=True)
        self._thread.start()
        try:
            return self._run(self._open())
        except BaseException as error:
            self._end_loop()
            if isinstance(error, StoreUnusable):
                raise StoreUnusable(hide_secrets(self._url, str(error))) from None
            raise

    async def _open(self) -> Snapshot:
        session = Session(self._url, self._project, self._settings, self._copied_from)
        state = await session.open()
        try:
            snapshot = await load_snapshot(session, state)
            days = await session.fetch("SELECT day FROM partition_days")
            size = await session.fetch(_SIZE)
        except BaseException:
            await session.close()
            raise
        self._note_size(0 if not size else size[0][0])
        self._session = session
        self._writer = Writer(session, state, {row["day"] for row in days or ()}, self._post)
        self._reader = Reader(self._url, self._post)
        return snapshot

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        loop, self._loop = self._loop, None
        thread, self._thread = self._thread, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    @property
    def trouble(self) -> str | None:
        return self._session.trouble if self._session else None

    def write(self, batch: Batch, done: WriteDone) -> None:
        self._pass_on(self._writer, lambda writer: writer.write(batch, done), done)

    def find(self, query: MessageQuery, done: PageDone) -> None:
        lag_ms = self._writer.lag_ms if self._writer else 0
        self._read(partial(reads.find_messages, query=query, lag_ms=lag_ms), done)

    def fetch(self, numbers: list[int], done: PageDone) -> None:
        self._read(partial(reads.fetch_messages, numbers=numbers), done)

    def trail(self, message: MessageRow, done: TrailDone) -> None:
        self._read(partial(reads.read_trail, message=message), done)

    def steps(self, messages: list[MessageRow], done: StepsDone) -> None:
        self._read(partial(reads.read_steps, messages=messages), done)

    def conversations(self, limit: int, done: ConversationsDone) -> None:
        self._read(partial(self._conversations.read, limit=limit), done)

    def replay(self, recipient: str, after: dict[tuple[str, str], int], done: PageDone) -> None:
        self._read(partial(reads.replay_messages, recipient=recipient, after=after), done)

    def owed(self, query: OwedQuery, done: OwedDone) -> None:
        self._read(partial(reads.read_owed, query=query), done)

    def seen(self, sender: str, since: int, limit: int, done: SeenDone) -> None:
        self._read(partial(reads.read_seen, sender=sender, since=since, limit=limit), done)

    def dead_letters(self, query: DeadLetterQuery, done: DeadLettersDone) -> None:
        self._read(partial(reads.read_dead_letters, query=query), done)

    def prune(self, before: int, limit: int, done: PruneDone) -> None:
        self._pass_on(self._writer, lambda writer: writer.prune(before, limit, self._recounting(done)), done)

    def erase(self, agent: str, limit: int, done: PruneDone) -> None:
        self._pass_on(self._writer, lambda writer: writer.erase(agent, limit, self._recounting(done)), done)

    def _recounting(self, done: PruneDone) -> PruneDone:
        """Conversations are counted anew where messages have gone."""

        def told(outcome: int | StoreError) -> None:
            if outcome:
                self._conversations.forget()
            done(outcome)

        return told

    def stats(self) -> StoreStats:
        if self._reader is not None and time.monotonic() - self._sized_at > _SIZED_EVERY_S:
            self._sized_at = time.monotonic()
            self._read(_measure, lambda size: self._note_size(size) if isinstance(size, int) else None)
        return StoreStats(
            kind="postgres",
            messages=self._writer.count if self._writer else 0,
            size_bytes=self._size_bytes,
            location=self._url.location,
            problem=self.trouble or (self._session.failure if self._session else "") or "",
        )

    def _note_size(self, size_bytes: int) -> None:
        self._size_bytes, self._sized_at = size_bytes, time.monotonic()

    def close(self) -> None:
        session, self._session = self._session, None
        writer, self._writer = self._writer, None
        reader, self._reader = self._reader, None
        if session and writer and reader:
            self._run(_close(session, writer, reader))
        self._end_loop()

    def _read(self, read: Read, done: Callable[[Any], None]) -> None:
        self._pass_on(self._reader, lambda reader: reader.submit(read, done), done)

    def _pass_on(self, part: _T | None, call: Callable[[_T], None], done: Callable[[Any], None]) -> None:
        loop = self._loop
        if part is None or loop is None:
            return post_answer(self._post, partial(done, StoreError("The store is closed.")))
        loop.call_soon_threadsafe(call, part)
        return None


async def _close(session: Session, writer: Writer, reader: Reader) -> None:
    await writer.stop()
    await reader.stop()
    await session.close()


async def _measure(connection: Connection) -> int:
    size: int = await connection.fetchval(_SIZE)
    return size
