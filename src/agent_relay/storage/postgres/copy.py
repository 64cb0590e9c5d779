"""A PostgreSQL schema as an end of a copy. While it is not whole, a mark in it keeps daemons from using it."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_relay.ports.store import MessageStore, Snapshot, StoreError, TrailRow
from agent_relay.storage.postgres.connection import FAILURES, Connection, Record, connect, describe
from agent_relay.storage.postgres.rows import TRAIL_COLUMNS, read_trail_row
from agent_relay.storage.postgres.store import PostgresStore
from agent_relay.storage.postgres.url import DatabaseUrl
from agent_relay.storage.posting import Post

_PAGE = f"SELECT t.place, {TRAIL_COLUMNS} FROM trail AS t WHERE t.place > $1 ORDER BY t.place LIMIT $2"  # noqa: S608
_PLACE = "SELECT place FROM trail ORDER BY place LIMIT 1 OFFSET $1"
_FINISH = "UPDATE state SET copied_from = '', first_seq = $1, last_number = greatest(last_number, $2), checkpoint = $2"


class PostgresCopyEnd:
    def __init__(self, url: DatabaseUrl, project: str) -> None:
        self._url = url
        self._project = project
        self._runner: asyncio.Runner | None = None
        self._connection: Connection | None = None
        self.location = url.location

    def open_source(self, post: Post) -> tuple[MessageStore, Snapshot]:
        store = PostgresStore(self._url, post, self._project)
        return store, store.open()

    def open_target(self, post: Post, source: str) -> tuple[MessageStore, Snapshot]:
        store = PostgresStore(self._url, post, self._project, copied_from=source)
        return store, store.open()

    def count_trail(self) -> int:
        return int(self._fetch("SELECT count(*) FROM trail")[0][0])

    def read_trail(self, after: int, limit: int) -> list[tuple[int, TrailRow]]:
        return [(row["place"], read_trail_row(row)) for row in self._fetch(_PAGE, after, limit)]

    def place_of_trail(self, count: int) -> int:
        if count == 0:
            return 0
        found = self._fetch(_PLACE, count - 1)
        return int(found[0][0]) if found else 2**62

    def finish(self, snapshot: Snapshot) -> None:
        self._fetch(_FINISH, snapshot.first_seq, snapshot.last_number)

    def _fetch(self, statement: str, *arguments: Any) -> list[Record]:
        if self._runner is None:
            self._runner = asyncio.Runner()
        try:
            return self._runner.run(self._ask(statement, *arguments))
        except FAILURES as error:
            raise StoreError(f"{describe(self._url, error)}.") from None

    async def _ask(self, statement: str, *arguments: Any) -> list[Record]:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._url, "copy")
        return await self._connection.fetch(statement, *arguments)

    def close(self) -> None:
        runner, self._runner = self._runner, None
        connection, self._connection = self._connection, None
        if runner is not None:
            if connection is not None:
                connection.terminate()
            runner.close()
