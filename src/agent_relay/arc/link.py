"""The connection that comes back.

One task connects, lets its owner greet the relay, reads until the connection ends, waits and connects again. Close codes decide
what follows: 4001 (the token is not valid any more) and 4000 (another connection took over) are final, 4029 and 4008 are waited
out, everything else is tried again with backoff and jitter.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from agent_relay.arc.addresses import choose_tls
from agent_relay.arc.errors import ArcClosed, ArcError
from agent_relay.protocol.arc.codes import CloseCode
from agent_relay.protocol.retry import RECONNECT, RetryPolicy

_FINAL: dict[int, str] = {
    CloseCode.TOKEN: "The relay no longer accepts the token.",
    CloseCode.SUPERSEDED: "Another connection of the same agent took over.",
}
_CODES: dict[int, str] = {
    CloseCode.TOKEN: "token_expired",
    CloseCode.SUPERSEDED: "superseded",
    CloseCode.SLOW_CONSUMER: "slow_consumer",
    CloseCode.RATE_LIMIT: "rate_limit",
}
_PATIENCE_S: dict[int, float] = {
    CloseCode.RATE_LIMIT: 10.0,
    CloseCode.SLOW_CONSUMER: 1.0,
}  # a bucket has refilled a little by then; a machine has caught its breath
_LIVED_S = 5.0  # a connection that held so long was a good one: the next failure begins a new series
_LARGEST_FRAME = 8 * 1024 * 1024  # answers with many messages are larger than a message may be


class ArcState(StrEnum):
    NEW = "new"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    WAITING = "waiting"  # for the next attempt
    CLOSED = "closed"


class LinkOwner(Protocol):
    async def greet(self, connection: ClientConnection) -> bool:
        """Speaks after connecting, before anybody else may write. False: the connection is of no use."""
        ...

    async def on_frame(self, frame: str | bytes) -> None: ...

    def on_lost(self) -> None: ...

    def on_closed(self, error: ArcError | None) -> None: ...


@dataclass(slots=True)
class Patience:
    """The policy of reconnecting: how often and when. The clock and the dice are handed in so that a test needs neither."""

    policy: RetryPolicy = RECONNECT
    attempts: int | None = None  # after a loss; None: for ever
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)
    random: Callable[[], float] = field(default=random.random)


@dataclass(slots=True)
class Target:
    url: str
    token: str = field(repr=False)
    tls: ssl.SSLContext | None = None
    timeout_s: float = 10.0


class Link:
    def __init__(self, target: Target, owner: LinkOwner, patience: Patience) -> None:
        self.target = target
        self.state = ArcState.NEW
        self.on_state: Callable[[ArcState], None] | None = None
        self.error: ArcError | None = None
        self.connections = 0
        self._owner = owner
        self._patience = patience
        self._connection: ClientConnection | None = None
        self._ready = asyncio.Event()  # connected, or closed
        self._task: asyncio.Task[None] | None = None

    async def start(self, *, wait: bool) -> None:
        """Returns when it is connected. Without `wait` the first failure is the last, and raised."""
        if self._task is not None:
            raise ArcError("A client can connect only once; create another one.", code="used")
        self._task = asyncio.create_task(self._run(wait=wait), name="arc link")
        try:
            await self.wait_until_ready()
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def wait_until_ready(self) -> ClientConnection:
        """Raises once it is closed."""
        while True:
            if self.state is ArcState.CLOSED:
                raise self.error or ArcClosed("The client is closed.")
            if self.state is ArcState.NEW and self._task is None:
                raise ArcClosed("The client is not connected; use it in `async with`, or call connect() first.")
            if self._connection is not None and self._ready.is_set():
                return self._connection
            await self._ready.wait()

    async def write(self, frame: str) -> bool:
        """False: the connection broke meanwhile."""
        connection = await self.wait_until_ready()
        try:
            await connection.send(frame)
        except ConnectionClosed:
            self._forget(connection)
            return False
        return True

    async def stop(self) -> None:
        """Says goodbye with 1000 where there is somebody to say it to. A second call does nothing."""
        connection, self._connection = self._connection, None
        if self.state is not ArcState.CLOSED:
            self._end(None)
        if connection is not None:
            await connection.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # --- the life -------------------------------------------------------------------------------------------------

    async def _run(self, *, wait: bool) -> None:
        try:
            await self._keep_connected(wait=wait)
        except Exception as error:
            # An error of ours, or of a callback: whoever waits must not wait for ever, and the loop's handler gets to see it.
            self._end(ArcClosed(f"The client failed: {type(error).__name__}.", code="internal"))
            raise

    async def _keep_connected(self, *, wait: bool) -> None:
        attempt = 0
        clock = asyncio.get_running_loop().time
        while True:
            self._enter(ArcState.CONNECTING)
            began = clock()
            reason = await self._live_once()
            if self.state is ArcState.CLOSED:
                return
            if clock() - began >= _LIVED_S:
                attempt = 0
            attempt += 1
            attempts = self._patience.attempts
            if reason.final or (not self.connections and not wait) or (attempts is not None and attempt > attempts):
                self._end(reason)
                return
            self._enter(ArcState.WAITING)
            await self._patience.sleep(
                self._patience.policy.delay_s(attempt, self._patience.random(), reason.retry_after_s or 0.0)
            )

    async def _live_once(self) -> ArcClosed:
        """One connection from its beginning to its end, and why it ended."""
        target = self.target
        try:
            connection = await connect(
                target.url, additional_headers={"Authorization": f"Bearer {target.token}"}, compression=None, proxy=None,
                open_timeout=target.timeout_s, close_timeout=5, max_size=_LARGEST_FRAME, max_queue=32,
                ssl=choose_tls(target.url, target.tls),
            )  # fmt: skip
        except InvalidStatus as error:
            return _read_refusal(error)
        except (OSError, TimeoutError, WebSocketException) as error:
            return ArcClosed(f"Connecting to {target.url} failed: {str(error) or type(error).__name__}.", code="unreachable")
        try:
            return await self._live(connection)
        finally:
            self._forget(connection)
            self._owner.on_lost()
            await connection.close()

    async def _live(self, connection: ClientConnection) -> ArcClosed:
        greeting = asyncio.create_task(self._owner.greet(connection))  # it begins first, and is ready for the first frame
        reading = asyncio.create_task(self._read(connection))
        try:
            await asyncio.wait({reading, greeting}, return_when=asyncio.FIRST_COMPLETED)
            if greeting.done() and not reading.done():
                if not greeting.result():
                    return ArcClosed("The relay did not respond after connecting.", code="timeout")
                self._connection = connection
                self.connections += 1
                self._ready.set()
                self._enter(ArcState.CONNECTED)
            await reading
        finally:
            for task in (reading, greeting):
                task.cancel()
            await asyncio.wait({reading, greeting})
            if not greeting.cancelled():
                greeting.exception()  # what it was waiting for was lost, as everything else
        return _read_close(connection)

    async def _read(self, connection: ClientConnection) -> None:
        try:
            while True:
                await self._owner.on_frame(await connection.recv())
        except ConnectionClosed:
            return

    def _forget(self, connection: ClientConnection) -> None:
        if self._connection is connection:
            self._connection = None
            self._ready.clear()

    def _enter(self, state: ArcState) -> None:
        self.state = state
        if self.on_state is not None:
            self.on_state(state)

    def _end(self, error: ArcError | None) -> None:
        self.error = error
        self._enter(ArcState.CLOSED)
        self._ready.set()
        self._owner.on_closed(error)


def _read_refusal(error: InvalidStatus) -> ArcClosed:
    status = error.response.status_code
    if status == 401:
        return ArcClosed("The relay does not accept the token.", code="unauthorized", final=True)
    if status == 429:
        retry_after = error.response.headers.get("Retry-After", "")
        wait_s = float(retry_after) if retry_after.isdigit() else _PATIENCE_S[CloseCode.RATE_LIMIT]
        return ArcClosed("The relay asks you to try again later.", code="rate_limit", retry_after_s=wait_s)
    # 4xx says that this request will never do; anything else may pass.
    return ArcClosed(
        f"The relay responded with {status} instead of opening a WebSocket.", code="refused", final=400 <= status < 500
    )


def _read_close(connection: ClientConnection) -> ArcClosed:
    code = connection.close_code or 0
    text = _FINAL.get(code) or f"The relay closed the connection ({code} {connection.close_reason or ''}".rstrip() + ")."
    return ArcClosed(
        text, code=_CODES.get(code, "closed"), close_code=code, final=code in _FINAL, retry_after_s=_PATIENCE_S.get(code)
    )
