"""The connection to NATS, over nats-py, which reconnects, speaks TLS and knows every kind of credentials.

Only its connection is used. What is published while there is none is refused, not kept: something that is sent later than it
was meant is worse than something that is lost. Its `publish` waits, so what is said gathers in a list that one task empties.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Coroutine, Sequence
from typing import Any

from msgspec import Struct
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error

from agent_relay.ports.cluster import NO_HEADERS, Answered, Headers, Heard, WireListener, WireMessage
from agent_relay.ports.log import Log

ANSWER_S = 0.5
_PING_S = 1  # a server that hangs is left after two pings without an answer
_RECONNECT_S: Any = 0.05  # nats-py says it wants whole seconds, and takes any
_CONNECT_S = 2
_SILENT_TICKS = 4  # seconds in which not even our own word came back: longer than the client's own pings take
_STATUS = "Status"
_SEED_OF_A_USER = b"SU"
_PENDING_BYTES = 512 * 1024 * 1024


class Credentials(Struct, frozen=True):
    """The ways to show who we are. Files are read again at every connection."""

    token: str | None = None
    creds_file: str | None = None  # JWT and NKEY, as `nsc` writes them, or the seed of an NKEY alone
    tls: ssl.SSLContext | None = None

    def options(self) -> dict[str, Any]:
        kind = "nkeys_seed" if self.creds_file is not None and _is_seed(self.creds_file) else "user_credentials"
        found: dict[str, Any] = {"token": self.token, "tls": self.tls, kind: self.creds_file}
        return {name: value for name, value in found.items() if value is not None}


def _is_seed(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == _SEED_OF_A_USER


class _EncryptedClient(Client):
    """Says nothing to a server before the connection is encrypted. nats-py encrypts only where the server's greeting demands it,
    and anybody on the way could write another one."""

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection:
            if not (info.get("tls_required") or info.get("tls_available")):
                raise Error("the server offers no TLS, and --cluster or --cluster-ca asks for it")
            info["tls_required"] = True  # what nats-py goes by
        await super()._process_info(info, initial_connection)


class _Subscribed(Struct):
    subject: str
    heard: Heard
    held: Any = None  # nats-py's own, once there is a connection


class NatsWire:
    """Made and used inside one loop."""

    def __init__(self, servers: Sequence[str], credentials: Credentials, name: str, log: Log) -> None:
        self._servers = list(servers)
        self._credentials = credentials
        self._name = name
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._client = self._make_client()
        self._listener: WireListener | None = None
        self._out: list[tuple[str, bytes, str, Headers]] = []
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscribed: dict[int, _Subscribed] = {}
        self._asked: dict[str, tuple[Answered, asyncio.TimerHandle]] = {}
        self._last_number = 0
        self._inbox = self._client.new_inbox()
        self._echo = f"{self._inbox}.echo"
        self._writing: asyncio.Task[None] | None = None
        self._is_open = False  # the client has neither lost its connection nor said that it has
        self._silent_ticks = 0
        self.trouble = "Not connected to NATS yet."

    def _make_client(self) -> Client:
        return Client() if self._credentials.tls is None else _EncryptedClient()

    async def start(self, listener: WireListener) -> None:
        """Returns at once; the listener is told when there is a connection."""
        self._listener = listener
        self._start_task(self._connect())
        self._writing = self._start_task(self._write())
        self._start_task(self._watch())

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        for done, timer in self._asked.values():
            timer.cancel()
            done(None)
        self._asked.clear()
        if self._listener is None:  # never started
            return
        await _close(self._client)

    # --- the port -------------------------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return self._client.is_connected

    @property
    def server(self) -> str:
        """The address of the server we are connected to, without credentials; "" for none."""
        url = self._client.connected_url if self._client.is_connected else None
        return "" if url is None else f"{url.hostname}:{url.port}"

    @property
    def version(self) -> str:
        """The server's."""
        version = self._client.connected_server_version
        return f"{version.major}.{version.minor}.{version.patch}"

    def publish(self, subject: str, payload: bytes, headers: Headers = NO_HEADERS) -> bool:
        return self._say(subject, payload, "", headers)

    def ask(self, subject: str, payload: bytes, done: Answered, headers: Headers = NO_HEADERS) -> None:
        self._last_number += 1
        reply = f"{self._inbox}.{self._last_number}"
        timer = self._loop.call_later(ANSWER_S, self._give_up, reply)
        self._asked[reply] = (done, timer)
        self._say(subject, payload, reply, headers)

    def subscribe(self, subject: str, heard: Heard) -> int:
        self._last_number += 1
        subscribed = self._subscribed[self._last_number] = _Subscribed(subject, heard)
        if self._client.is_connected:
            self._start_task(self._hold(subscribed))
        return self._last_number

    def unsubscribe(self, number: int) -> None:
        subscribed = self._subscribed.pop(number, None)
        if subscribed is not None and subscribed.held is not None:
            self._start_task(self._release(subscribed))

    def new_inbox(self) -> str:
        return str(self._client.new_inbox())

    # --- out ------------------------------------------------------------------------------------------------------------

    def _say(self, subject: str, payload: bytes, reply: str, headers: Headers) -> bool:
        if not self._client.is_connected:
            return False
        self._out.append((subject, payload, reply, headers))
        self._wake.set()
        return True

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            out, self._out = self._out, []
            for subject, payload, reply, headers in out:
                with contextlib.suppress(Error, OSError):  # no connection any more: it is lost, as promised
                    await self._client.publish(subject, payload, reply, dict(headers) if headers else None)

    def _give_up(self, reply: str) -> None:
        asked = self._asked.pop(reply, None)
        if asked is not None:
            asked[0](None)

    # --- in -------------------------------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        client = self._client

        async def failed(error: Exception) -> None:
            if client is self._client:
                self._failed(error)

        async def lost() -> None:
            if client is self._client:
                self._lost()

        async def again() -> None:
            if client is self._client:
                await self._again()

        await client.connect(
            self._servers, name=self._name, error_cb=failed, disconnected_cb=lost, reconnected_cb=again,
            connect_timeout=_CONNECT_S, reconnect_time_wait=_RECONNECT_S, max_reconnect_attempts=-1, ping_interval=_PING_S,
            max_outstanding_pings=2, pending_size=0, **self._credentials.options(),
        )  # fmt: skip
        await client.subscribe(f"{self._inbox}.*", cb=self._answered, pending_bytes_limit=_PENDING_BYTES)
        for subscribed in list(self._subscribed.values()):
            await self._hold(subscribed)
        self._tell_connected()

    async def _hold(self, subscribed: _Subscribed) -> None:
        if subscribed.held is not None:
            return

        async def heard(message: Msg) -> None:
            self._silent_ticks = 0
            try:
                subscribed.heard(_read(message))
            except Exception as error:  # noqa: BLE001 - one message, of whoever it may be, must not end the others
                self._log.note("nats_message_failed", subject=message.subject, error=repr(error))

        subscribed.held = True
        try:
            subscribed.held = await self._client.subscribe(
                subscribed.subject, cb=heard, pending_bytes_limit=_PENDING_BYTES, pending_msgs_limit=-1
            )
        except (Error, OSError) as error:
            subscribed.held = None
            self._log.note("nats_subscribe_failed", error=str(error))

    async def _release(self, subscribed: _Subscribed) -> None:
        with contextlib.suppress(Error, OSError):
            if subscribed.held is not True:
                await subscribed.held.unsubscribe()

    async def _answered(self, message: Msg) -> None:
        self._silent_ticks = 0
        if message.subject == self._echo:
            self.trouble = ""  # whatever the client complained about, the connection works
            return
        asked = self._asked.pop(message.subject, None)
        if asked is not None:
            asked[1].cancel()
            asked[0](_read(message))

    def _failed(self, error: Exception) -> None:
        reason = str(error) or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
        text = f"NATS: {reason}."
        if text != self.trouble:
            self.trouble = text
            self._log.note("nats_error", error=text)

    def _lost(self) -> None:
        self._is_open = False
        self.trouble = "The connection to NATS is lost; it is being tried again."
        self._out.clear()
        if self._listener is not None:
            self._listener.disconnected()

    async def _again(self) -> None:
        for subscribed in list(self._subscribed.values()):
            await self._hold(subscribed)  # those that came while there was no connection
        self._tell_connected()

    async def _watch(self) -> None:
        """A client that leaves a connection first waits until everything is written, which a peer that hangs or is cut off never
        takes: it says nothing, and tries no other server. So we listen for our own word, and take another client."""
        while True:
            await asyncio.sleep(_PING_S)
            if not self._is_open:
                continue
            self._silent_ticks += 1
            if self._silent_ticks > _SILENT_TICKS:
                self._replace_client()
            else:
                self._say(self._echo, b"", "", NO_HEADERS)

    def _replace_client(self) -> None:
        self._log.note("nats_silent", seconds=self._silent_ticks * _PING_S)
        silent, self._client = self._client, self._make_client()
        for subscribed in self._subscribed.values():
            subscribed.held = None
        self._lost()
        if self._writing is not None:
            self._writing.cancel()
        self._writing = self._start_task(self._write())
        self._start_task(self._connect())
        self._start_task(_close(silent))

    def _tell_connected(self) -> None:
        self._is_open = True
        self._silent_ticks = 0
        self.trouble = ""
        self._log.note("nats_connected", server=self.server)
        if self._listener is not None:
            self._listener.connected(self.server, self._client.max_payload)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.trouble = f"NATS cannot be used: {error}"
            self._log.note("nats_failed", error=str(error))


async def _close(client: Client) -> None:
    with contextlib.suppress(Error, OSError, TimeoutError):
        async with asyncio.timeout(_CONNECT_S):
            await client.close()


def _read(message: Msg) -> WireMessage:
    headers = message.headers
    if not headers:
        return WireMessage(message.subject, message.data, reply=message.reply)
    return WireMessage(message.subject, message.data, headers, message.reply, headers.get(_STATUS, ""))
