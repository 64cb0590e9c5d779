"""The store of ARC, awaited: what the registrar and the invitations write is durable when the call returns."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

from agent_relay.ports.arc import ArcRow, ArcStore, InvitationRow
from agent_relay.ports.names import RowDone
from agent_relay.ports.store import StoreError


class Records:
    def __init__(self, store: ArcStore) -> None:
        self._store = store

    async def write(self, row: ArcRow | InvitationRow) -> None:
        """Raises StoreError."""
        await until_done(lambda done: self._store.write(row, done))

    async def erase(self, row: ArcRow | InvitationRow) -> None:
        """Raises StoreError."""
        await until_done(lambda done: self._store.erase(row, done))


async def until_done(begin: Callable[[RowDone], None]) -> None:
    """Begins something that calls back once; raises the StoreError it calls back with."""
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(error: StoreError | None) -> None:
        if waiting.done():  # whoever waited has gone
            return
        if error is None:
            waiting.set_result(None)
        else:
            waiting.set_exception(error)

    begin(done)
    await waiting


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
