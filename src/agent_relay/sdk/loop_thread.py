"""An event loop in a thread of its own, and the way in which other threads give it work."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.errors import ConnectionLost

T = TypeVar("T")


class LoopThread:
    def __init__(self) -> None:
        # What is accepted under it is run: nothing is given to a loop that is ending. Reentrant, because a collector
        # that runs inside may finalize a message loop, which calls in again.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ending: asyncio.Event | None = None

    def start(self) -> None:
        started = threading.Event()
        with self._lock:
            if self._thread is not None:
                raise ConnectionLost("A client can connect only once; create another one.", reason="used")
            self._thread = threading.Thread(target=self._live, args=(started,), name="agent-relay", daemon=True)
            self._thread.start()
        started.wait()

    def _live(self, started: threading.Event) -> None:
        async def main() -> None:
            self._ending = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            started.set()
            await self._ending.wait()

        asyncio.run(main())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the coroutine on the loop and waits for its result."""
        try:
            future = self._submit(work)
        except RelayError:
            work.close()
            raise
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise ConnectionLost("The client was closed.", reason="closed") from None
        except BaseException:
            future.cancel()  # the waiting was interrupted, by Ctrl-C for instance: the work ends with it
            raise

    def _submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        with self._lock:
            if self._loop is None:
                raise ConnectionLost("The client is not connected: use it in `with`, or call connect() first.", reason="closed")
            if threading.current_thread() is self._thread:
                raise RelayError(
                    ErrorCode.INTERNAL_ERROR,
                    "A callback of the client cannot wait for the client: hand the work to another thread.",
                )
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, function: Callable[[T], object], argument: T) -> None:
        """Calls the function on the loop, without waiting; after the end, not at all."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function, argument)

    def stop(self) -> None:
        """Ends the loop, and whatever still runs on it."""
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is not None and self._ending is not None:
                loop.call_soon_threadsafe(self._ending.set)
        if self._thread is not None:
            self._thread.join()
