"""Whole databases between hosts, in the daemon: `cluster.transfer` asks, the files are worked on in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent_relay.cluster.transfer import Offer, OfferState, SinkFailed
from agent_relay.daemon.logs import logger
from agent_relay.storage.agent_files import AgentFiles
from agent_relay.storage.sqlite.transfer import (
    CopyRefused,
    IncomingCopy,
    PreparedCopy,
    prepare_copy,
    read_piece,
    remove_incoming,
    remove_prepared,
)


class HostFiles:
    """Implements `CopySource` and `CopySink`, and erases the files of an agent. Made in the loop that is answered."""

    def __init__(self, database: str, folder: str, state_dir: str) -> None:
        self._database = Path(database)
        self._folder = Path(folder)
        self._state_dir = state_dir
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="relay-copies")
        self._prepared: PreparedCopy | None = None
        self._incoming: IncomingCopy | None = None
        remove_prepared(self._folder)
        remove_incoming(self._database)

    def close(self) -> None:
        self.discard()
        self._threads.shutdown(wait=True, cancel_futures=True)
        remove_prepared(self._folder)

    # --- giving ---------------------------------------------------------------------------------------------------------

    def prepare(self, done: Callable[[Offer], None]) -> None:
        def work() -> None:
            try:
                made = prepare_copy(self._database, self._folder)
                offer = Offer(
                    OfferState.READY, secrets.token_hex(8), made.size, made.raw_bytes, made.sha256, made.position
                )  # fmt: skip
            except CopyRefused as error:
                made, offer = None, Offer(OfferState.REFUSED, why=str(error))
            self._tell(lambda: self._set_prepared(made, offer, done))

        self._threads.submit(work)

    def _set_prepared(self, made: PreparedCopy | None, offer: Offer, done: Callable[[Offer], None]) -> None:
        self._prepared = made
        done(offer)

    def read(self, offset: int, length: int) -> bytes:
        """b"" where it is gone: whoever asked begins anew."""
        with contextlib.suppress(OSError):
            if self._prepared is not None:
                return read_piece(self._prepared, offset, length)
        return b""

    def remove(self) -> None:
        self._prepared = None
        self._threads.submit(remove_prepared, self._folder)

    # --- taking ---------------------------------------------------------------------------------------------------------

    def begin(self, offer: Offer) -> None:
        try:
            self._incoming = IncomingCopy(self._database, offer.size, offer.raw_bytes, offer.sha256, offer.position)
        except CopyRefused as error:
            raise SinkFailed(str(error)) from None

    def write(self, piece: bytes) -> None:
        assert self._incoming is not None
        try:
            self._incoming.write(piece)
        except CopyRefused as error:
            raise SinkFailed(str(error)) from None

    def finish(self, done: Callable[[str], None]) -> None:
        incoming = self._incoming
        assert incoming is not None

        def work() -> None:
            trouble = ""
            try:
                incoming.check()
            except CopyRefused as error:
                trouble = str(error)
            self._tell(lambda: done(trouble))

        self._threads.submit(work)

    def put_in_place(self) -> None:
        """Raises OSError."""
        incoming, self._incoming = self._incoming, None
        assert incoming is not None
        incoming.put_in_place()

    def discard(self) -> None:
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            incoming.discard()

    # --- erasing --------------------------------------------------------------------------------------------------------

    def erase_agent(self, agent: str) -> None:
        def work() -> None:
            try:
                files = AgentFiles(self._state_dir).erase(agent)
            except OSError as error:
                logger.warning("erase_failed", extra={"relay_fields": {"error": str(error)}})
            else:
                logger.info("erased", extra={"relay_fields": {"files": files}})

        self._threads.submit(work)

    def _tell(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call)
