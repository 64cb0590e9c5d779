"""The task that answers questions, one after the other, from a connection of its own that cannot change anything."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from agent_relay.ports.store import StoreError
from agent_relay.protocol.retry import RetryPolicy
from agent_relay.storage.postgres.connection import FAILURES, Connection, connect, describe
from agent_relay.storage.postgres.url import DatabaseUrl
from agent_relay.storage.posting import Post, post_answer

Read = Callable[[Connection], Awaitable[Any]]

_RETRY = RetryPolicy(base_ms=100, cap_ms=5_000, jitter=0.15)
_ANSWER_S = 60.0

_log = logging.getLogger(__name__)


class Reader:
    def __init__(self, url: DatabaseUrl, post: Post) -> None:
        self._url = url
        self._post = post
        self._queue: asyncio.Queue[tuple[Read, Callable[[Any], None]] | None] = asyncio.Queue()
        self._connection: Connection | None = None
        self._attempts = 0
        self._not_before = 0.0  # where the last attempt to connect failed
        self._failure = ""
        self.task = asyncio.create_task(self._run())

    def submit(self, read: Read, done: Callable[[Any], None]) -> None:
        self._queue.put_nowait((read, done))

    async def stop(self) -> None:
        """Returns when everything submitted before is answered."""
        self._queue.put_nowait(None)
        await self.task
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.close(timeout=2)
            except FAILURES:
                connection.terminate()

    async def _run(self) -> None:
        while (task := await self._queue.get()) is not None:
            read, done = task
            post_answer(self._post, partial(done, await self._answer(read)))

    async def _answer(self, read: Read) -> Any:
        was_open = self._connection is not None
        try:
            return await self._try(read)
        except FAILURES as error:
            lost = self._connection is None or self._connection.is_closed()
            self._disconnect()
            if was_open and lost:  # a connection that ended meanwhile says nothing about the server: a new one may answer
                return await self._answer(read)
            text = self._failure or describe(self._url, error)
            _log.warning("A read failed: %s", text)
            return StoreError(f"{text}.")
        except Exception as error:  # noqa: BLE001 - an odd question must not end the task that answers all the others
            self._disconnect()
            _log.exception("A read from %s failed.", self._url.location)
            return StoreError(f"The query failed ({type(error).__name__}).")

    async def _try(self, read: Read) -> Any:
        connection = self._connection
        if connection is None or connection.is_closed():
            connection = self._connection = await self._connect()
        async with asyncio.timeout(_ANSWER_S):
            return await read(connection)

    async def _connect(self) -> Connection:
        if time.monotonic() < self._not_before:
            raise OSError(self._failure)
        try:
            connection = await connect(self._url, "reader", default_transaction_read_only="on")
        except FAILURES as error:
            self._attempts += 1
            self._not_before = time.monotonic() + _RETRY.delay_s(self._attempts, random.random())
            self._failure = describe(self._url, error)
            raise
        self._attempts, self._failure = 0, ""
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()
