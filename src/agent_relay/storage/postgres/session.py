"""The only connection that writes, the fence around the project, and the truth about what was committed.

Every change is one call of a function of the schema, and so one transaction and one round trip. The function first claims the
row `state` with the generation that this connection was given, and leaves there the number of the change. When the connection is
lost before the answer came, a new one takes the place anew: that waits for the old transaction, raises the generation, so that
whatever of the old connection is still on its way changes nothing, and tells the number of the last change that happened. Until
that is known nobody is told anything, and `trouble` says why.

A daemon holds a lock of the server as long as its connection lives. Another one that wants the same project is refused then; when
the connection is gone, it takes the place at once. Should the first one come back, it finds another's token in the row and is
told what became of its last change, but never writes again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from agent_relay.ports.store import StoreError, StoreUnusable
from agent_relay.protocol.retry import RetryPolicy
from agent_relay.storage.postgres.connection import FAILURES, Connection, Record, connect, describe, is_in_doubt, state_of
from agent_relay.storage.postgres.schema import apply_migrations
from agent_relay.storage.postgres.url import DatabaseUrl

_RETRY = RetryPolicy(base_ms=100, cap_ms=5_000, jitter=0.15)  # a server that restarts is back within seconds
_ANSWER_S = 60.0  # a change takes milliseconds; after this long the connection counts as lost
_PATIENCE_S = 3.0  # for the server to notice that a killed daemon is gone
_LOCK_WAIT = "5s"
_SUPERSEDED = "AR001"
_WRITTEN_AGAIN = 3  # times; a server that ends the connection each time is left alone

_LOCK = "SELECT pg_try_advisory_lock(hashtextextended('agent-relay writer ' || $1, 0))"
_FORMER = "SELECT batch, result FROM former_generations WHERE generation = $1"
_END_BACKEND = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2"
_BACKEND = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"

_log = logging.getLogger(__name__)


class NotBegun(StoreError):  # noqa: N818 - named by the condition
    """No connection: nothing was even sent, and no batch is to blame."""


class GivenUp(Exception):  # noqa: N818
    """The store closes while a change is in doubt: nothing can be said about it."""


class _Superseded(Exception):  # noqa: N818
    def __init__(self, state: Record) -> None:
        super().__init__()
        self.state = state


class _StillHeld(Exception):  # noqa: N818
    """The lock is held by the connection that was lost: the server has not noticed yet."""


_RETRIED: tuple[type[BaseException], ...] = (*FAILURES, _StillHeld)


class _Change(Struct):
    """A change whose answer did not come."""

    generation: int
    batch: int


class Session:
    def __init__(self, url: DatabaseUrl, project: str, settings: dict[str, str], copied_from: str = "") -> None:
        self.url = url
        self.trouble: str | None = None  # the daemon's loop reads it
        self.failure = ""  # why the last change failed; "" since one worked
        self._project = project
        self._settings = settings
        self._copied_from = copied_from
        self._token = uuid.uuid4().hex
        self._since = time.time_ns() // 1_000_000
        self._connection: Connection | None = None
        self._backend: tuple[int, datetime] | None = None
        self._generation = 0
        self._batch = 0
        self._is_superseded = False
        self._closing = asyncio.Event()
        self._lost = asyncio.Event()
        self._turn = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None

    # --- opening --------------------------------------------------------------------------------------------------------

    async def open(self) -> Record:
        """The row `state`; raises StoreUnusable."""
        try:
            connection = await self._connect()
        except FAILURES as error:
            raise StoreUnusable(f"{describe(self.url, error)}.") from None
        try:
            await apply_migrations(connection, self.url)
            state = await self._take_patiently(connection)
            await self._check_copy(connection, state)
        except FAILURES as error:
            connection.terminate()
            raise StoreUnusable(f"{describe(self.url, error)}.") from None
        except BaseException:
            connection.terminate()
            raise
        self._keeper = asyncio.create_task(self._keep())
        return state

    async def _check_copy(self, connection: Connection, state: Record) -> None:
        """A daemon uses no half of a copy, and a copy goes into nothing that somebody uses."""
        if state["copied_from"] == self._copied_from:
            return
        if state["copied_from"]:
            raise StoreUnusable(
                f"{self.url.location}: a copy from {state['copied_from']} into it was not finished. "
                "Run `agent-relay storage copy` again, which continues it, or drop the schema."
            )
        if state["last_number"] or await connection.fetchval("SELECT EXISTS (SELECT 1 FROM agents)"):
            raise StoreUnusable(f"{self.url.location} holds messages already. Copy into another schema with ?schema=NAME.")
        await connection.execute("UPDATE state SET copied_from = $1", self._copied_from)

    async def _connect(self) -> Connection:
        connection = await connect(self.url, "writer", lock_timeout=_LOCK_WAIT, **self._settings)
        with suppress(*FAILURES):
            # Where an administrator made commits fast rather than sure, ours are sure all the same.
            if self._settings.get("synchronous_commit") is None and await connection.fetchval("SHOW synchronous_commit") == "off":
                await connection.execute("SET synchronous_commit = on")
        return connection

    async def _take_patiently(self, connection: Connection) -> Record:
        deadline = time.monotonic() + _PATIENCE_S
        while not await connection.fetchval(_LOCK, self.url.schema):
            if time.monotonic() > deadline:
                raise StoreUnusable(self._refuse(await connection.fetchrow("SELECT * FROM state")))
            await asyncio.sleep(0.1)
        return await self._take(connection)

    async def _take(self, connection: Connection) -> Record:
        state = await connection.fetchrow(
            "SELECT * FROM take_place($1, $2, $3, $4, $5)",
            socket.gethostname(), os.getpid(), self._since, self._project, self._token,
        )  # fmt: skip
        assert state is not None
        self._backend = await connection.fetchrow(_BACKEND)  # type: ignore[assignment]
        self._adopt(connection, state)
        return state

    def _adopt(self, connection: Connection, state: Record) -> None:
        self._connection = connection
        self._generation, self._batch = state["generation"], 0
        self._lost.clear()
        connection.add_termination_listener(lambda _connection: self._lost.set())

    def _refuse(self, state: Record | None) -> str:
        holder = "another daemon" if state is None else f"the daemon of {state['project']} ({_name_holder(state)})"
        return (
            f"{self.url.location} is in use by {holder}. Stop that one first (`agent-relay down`, there), or use another "
            "database, or another schema with ?schema=NAME."
        )

    # --- changing -------------------------------------------------------------------------------------------------------

    async def change(self, call: str, *arguments: Any) -> int | StoreError:
        """Runs one of the schema's functions: what it answers, or why nothing of it happened. Raises GivenUp."""
        async with self._turn:
            outcome: int | StoreError = StoreError("")
            for _ in range(_WRITTEN_AGAIN):
                attempt = await self._change(call, arguments)
                if attempt is not None:
                    outcome = attempt
                    break
                outcome = StoreError(f"{self.url.location}: the server ended the connection before it was stored.")
            self._note(outcome)
            return outcome

    async def _change(self, call: str, arguments: tuple[Any, ...]) -> int | StoreError | None:
        """None: it did not happen, and may be tried again."""
        if self._is_superseded:
            return NotBegun(self.trouble or "")
        connection = self._connection
        if connection is None or connection.is_closed():
            if self.trouble is not None or not await self._reconnect():
                return NotBegun(self.trouble or "")
            connection = self._connection
            assert connection is not None
        self._batch += 1
        change = _Change(self._generation, self._batch)
        try:
            answer: int = await connection.fetchval(call, self._generation, self._batch, *arguments, timeout=_ANSWER_S)
        except FAILURES as error:
            if state_of(error) == _SUPERSEDED:
                self._lose_place(await self._read_state(connection))
                return NotBegun(self.trouble or "")
            if not is_in_doubt(connection, error):
                return StoreError(f"{describe(self.url, error)}.")
            connection.terminate()
            return await self._find_out(change, error)
        return answer

    def _note(self, outcome: int | StoreError) -> None:
        text = str(outcome) if isinstance(outcome, StoreError) else ""
        if text and text != self.failure:
            _log.warning("Nothing can be stored now: %s", text)
        self.failure = text

    async def fetch(self, query: str, *arguments: Any) -> list[Record] | None:
        """Reads with the connection that writes; None where there is none."""
        async with self._turn:
            if self._connection is None:
                return None
            with suppress(*FAILURES):
                return await self._connection.fetch(query, *arguments)
            return None

    async def run(self, statement: str) -> None:
        """Runs a statement that no transaction may contain, if that is possible now."""
        async with self._turn:
            if self._connection is not None:
                with suppress(*FAILURES):
                    await self._connection.execute(statement, timeout=_ANSWER_S)

    # --- a lost connection ----------------------------------------------------------------------------------------------

    async def _find_out(self, change: _Change, error: BaseException) -> int | None:
        """The answer of the change, or None if it did not happen; returns when that is sure."""
        attempt = 0
        while True:
            try:
                return await self._retake(change)
            except _Superseded as other:
                outcome = await self._find_former(change)
                self._lose_place(other.state)
                return outcome
            except _RETRIED as why:
                attempt += 1
                self._say(
                    f"The connection to {self.url.location} was lost ({_short(error)}), and it is not yet known whether the last "
                    f"messages were stored ({_short(why)}). Nothing is accepted until then; check the server. "
                    "The relay keeps trying"
                )
                await self._pause(attempt)

    async def _retake(self, change: _Change | None) -> int | None:
        """Takes the place with a new connection; what the change answered, if it happened. Raises _Superseded."""
        connection = await self._connect()
        try:
            await self._end_old_backend(connection)
            async with connection.transaction():
                state = await connection.fetchrow("SELECT * FROM state FOR UPDATE")
                assert state is not None
                if state["token"] != self._token:
                    raise _Superseded(state)
                if not await connection.fetchval(_LOCK, self.url.schema):
                    raise _StillHeld("the server still keeps the old connection")
                taken = await self._take(connection)
        except BaseException:
            self._connection = None
            connection.terminate()
            raise
        if self.trouble is not None:
            self.trouble = None
            _log.warning("%s can be written again (generation %d).", self.url.location, taken["generation"])
        return None if change is None else _answer_of(change, await connection.fetchrow(_FORMER, change.generation))

    async def _end_old_backend(self, connection: Connection) -> None:
        """So that nobody waits for a server process that waits for us."""
        if self._backend is not None:
            with suppress(*FAILURES):
                await connection.fetchval(_END_BACKEND, *self._backend)

    async def _find_former(self, change: _Change) -> int | None:
        attempt = 0
        while True:
            try:
                connection = await self._connect()
                try:
                    return _answer_of(change, await connection.fetchrow(_FORMER, change.generation))
                finally:
                    connection.terminate()
            except FAILURES as why:
                attempt += 1
                self._say(f"{describe(self.url, why)}. It is not yet known whether the last messages were stored")
                await self._pause(attempt)

    async def _reconnect(self) -> bool:
        """One attempt, where nothing is in doubt."""
        self._connection = None
        try:
            await self._retake(None)
        except _Superseded as other:
            self._lose_place(other.state)
        except _RETRIED as why:
            self._say(f"{describe(self.url, why)}. Nothing can be stored until the connection is back; the relay keeps trying")
        return self._connection is not None

    async def _keep(self) -> None:
        """Reconnects when a connection is lost while nothing is written."""
        while True:
            await self._lost.wait()
            attempt = 0
            while not self._is_superseded:
                async with self._turn:
                    if self._connection is not None and not self._connection.is_closed():
                        break
                    if await self._reconnect():
                        break
                attempt += 1
                await self._pause(attempt)
            self._lost.clear()
            if self._is_superseded:
                return

    async def _read_state(self, connection: Connection) -> Record | None:
        with suppress(*FAILURES):
            return await connection.fetchrow("SELECT * FROM state")
        return None

    def _lose_place(self, state: Record | None) -> None:
        self._is_superseded = True
        holder = "Another daemon" if state is None else f"Another daemon ({_name_holder(state)})"
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()
        self._say(
            f"{holder} has taken over {self.url.location} while this one had no connection. This one stores nothing more: "
            "stop it with `agent-relay down`, and use the other"
        )

    def _say(self, text: str) -> None:
        if self.trouble is None:
            _log.error("%s.", text)
        self.trouble = text

    async def _pause(self, attempt: int) -> None:
        if not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _RETRY.delay_s(attempt, random.random()))
        if self._closing.is_set():
            raise GivenUp

    # --- closing --------------------------------------------------------------------------------------------------------

    def give_up(self) -> None:
        """Leaves in doubt what is so by now."""
        self._closing.set()

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError, GivenUp):
                await self._keeper
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.close(timeout=2)
            except FAILURES:
                connection.terminate()


def _answer_of(change: _Change, former: Record | None) -> int | None:
    """A generation that left no row never wrote: its first change is number 1."""
    if former is None or former["batch"] < change.batch:
        return None
    answer: int = former["result"]
    return answer


def _name_holder(state: Record) -> str:
    since = datetime.fromtimestamp(state["since"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"host {state['host']}, process {state['pid']}, since {since}"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
