"""The task that makes all changes, one after the other. Everything that is queued by then is one transaction and one round trip.

When such a transaction fails, each batch is tried on its own, and each `done` hears the truth about its own batch.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from msgspec import Struct

from agent_relay.ports.store import Batch, PruneDone, StoreError, WriteDone
from agent_relay.protocol.names import fold_name
from agent_relay.storage.postgres.connection import Record
from agent_relay.storage.postgres.rows import day_of, encode_rest, lay_out_messages
from agent_relay.storage.postgres.session import GivenUp, NotBegun, Session
from agent_relay.storage.posting import Post, post_answer
from agent_relay.storage.times import fit, lag_of, last_number_before

_CLOSED = "The store is closing."
_WRITE = f"SELECT write_batches({', '.join(f'${place}' for place in range(1, 26))})"
_PRUNE = "SELECT prune($1, $2, $3, $4, $5)"
_ERASE = "SELECT erase_agent($1, $2, $3, $4)"
_VACUUM = "VACUUM messages, message_agents, trail, backlog, dead_letters"

_log = logging.getLogger(__name__)


class _Write(Struct):
    batch: Batch
    done: WriteDone


class _Prune(Struct):
    before: int
    limit: int
    done: PruneDone


class _Erase(Struct):
    agent: str
    limit: int
    done: PruneDone


_Item = _Write | _Prune | _Erase | None  # None: stop


class Writer:
    def __init__(self, session: Session, state: Record, days: set[int], post: Post) -> None:
        self._session = session
        self._post = post
        self._queue: asyncio.Queue[_Item] = asyncio.Queue()
        self._days = days  # that have a partition
        self.lag_ms: int = state["lag_ms"]
        self.count: int = state["messages"]
        self.task = asyncio.create_task(self._run())

    def write(self, batch: Batch, done: WriteDone) -> None:
        self._queue.put_nowait(_Write(batch, done))

    def prune(self, before: int, limit: int, done: PruneDone) -> None:
        self._queue.put_nowait(_Prune(before, limit, done))

    def erase(self, agent: str, limit: int, done: PruneDone) -> None:
        self._queue.put_nowait(_Erase(agent, limit, done))

    async def stop(self) -> None:
        """Returns when everything given before is written, or in doubt."""
        self._session.give_up()
        self._queue.put_nowait(None)
        await self.task

    async def _run(self) -> None:
        items: list[_Item] = []
        try:
            while True:
                items = [await self._queue.get()]
                while not self._queue.empty():
                    items.append(self._queue.get_nowait())
                if not await self._handle(items):
                    return
        except GivenUp:
            url = self._session.url
            _log.error(
                "%s is closed; it is not known whether the last messages were stored: %s.", url.location, self._session.trouble
            )
            while not self._queue.empty():
                self._refuse(self._queue.get_nowait())

    async def _handle(self, items: list[_Item]) -> bool:
        """False: there is nothing more to come."""
        writes: list[_Write] = []
        for item in items:
            if isinstance(item, _Write):
                writes.append(item)
                continue
            await self._commit(writes)
            writes = []
            if item is None:
                return False
            await self._remove(item)
        await self._commit(writes)
        return True

    async def _commit(self, writes: list[_Write]) -> None:
        if not writes:
            return
        outcome = await self._write([write.batch for write in writes])
        if outcome is not None and len(writes) > 1 and not isinstance(outcome, NotBegun):
            for write in writes:
                await self._commit([write])
            return
        failure = None if outcome is None else StoreError(str(outcome))
        for write in writes:
            post_answer(self._post, partial(write.done, failure))

    async def _write(self, batches: list[Batch]) -> StoreError | None:
        messages = batches[0].messages if len(batches) == 1 else [row for batch in batches for row in batch.messages]
        try:
            days = {day_of(row.number) for row in (messages[:1] + messages[-1:])}
            if len(days) > 1:  # over midnight, or longer
                days = {day_of(row.number) for row in messages}
            newest = max((row.number for row in messages), default=0)
            lag_ms = max((lag_of(row.number, row.ts) for row in messages), default=0)
            columns, rest = lay_out_messages(messages), encode_rest(batches)
        except Exception as error:  # noqa: BLE001 - rows that cannot be stored fail their own batch, never the task
            return StoreError(f"The batch cannot be stored ({type(error).__name__}: {error}).")
        missing = sorted(days - self._days)
        outcome = await self._session.change(_WRITE, newest, lag_ms, missing, *columns, rest)
        if isinstance(outcome, StoreError):
            return outcome
        self._days |= days
        self.count += len(messages)
        self.lag_ms = max(self.lag_ms, lag_ms)
        return None

    async def _remove(self, order: _Prune | _Erase) -> None:
        limit = fit(max(order.limit, 0))
        if isinstance(order, _Prune):
            newest = last_number_before(order.before, self.lag_ms)
            outcome = await self._session.change(_PRUNE, fit(order.before), newest, limit)
        else:
            outcome = await self._session.change(_ERASE, fold_name(order.agent), limit)
        if not isinstance(outcome, StoreError):
            await self._look_again()
            if isinstance(order, _Erase) and outcome < order.limit:
                await self._session.run(_VACUUM)
        post_answer(self._post, partial(order.done, outcome if isinstance(outcome, int) else StoreError(str(outcome))))

    async def _look_again(self) -> None:
        """Counts what is there after a removal."""
        found = await self._session.fetch("SELECT messages FROM state")
        days = await self._session.fetch("SELECT day FROM partition_days")
        if found and days is not None:
            self.count = found[0]["messages"]
            self._days = {row["day"] for row in days}

    def _refuse(self, item: _Item) -> None:
        if item is not None:
            post_answer(self._post, partial(item.done, StoreError(_CLOSED)))
