"""Clients over HTTP and ARC (WebSocket), in bytes of their own: a poster that repeats what was not answered, and an agent
whose connections die with messages in them that it never read."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import pwd
import random
import struct
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from agent_relay.testing.daemon import DaemonFailed, DaemonProcess
from tests.chaos.history import History

HTTP = pwd.getpwuid(os.geteuid()).pw_name  # whom messages over HTTP are from: the daemon's user
_ANSWER_S = 20.0
_RETRY_S = 0.03
_LOOK_S = 1.0


async def call(daemon: DaemonProcess, path: str, body: dict[str, Any] | None, **headers: str) -> tuple[int, dict[str, Any]]:
    """One POST, or a GET, over a connection of its own: the status, and the answer's JSON. OSError: there was none."""
    host, reader, writer = await _connect(daemon)
    try:
        method, content = ("GET", b"") if body is None else ("POST", json.dumps(body).encode())
        said = {"Host": host, "Content-Type": "application/json", "Content-Length": str(len(content)), "Connection": "close"}
        said |= daemon.api_headers | headers
        lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
        writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + content)
        answer = await asyncio.wait_for(reader.read(), _ANSWER_S)
    finally:
        writer.transport.abort()
    head, _, rest = answer.partition(b"\r\n\r\n")
    if not head:
        raise ConnectionResetError
    try:
        return int(head.split()[1]), json.loads(rest)
    except ValueError:
        raise ConnectionResetError from None  # it was cut off in the middle


async def _connect(daemon: DaemonProcess) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        url = urlsplit(await asyncio.to_thread(daemon.wait_for_url))
    except DaemonFailed as failure:  # it is down at the moment
        raise ConnectionRefusedError from failure
    return url.netloc, *await asyncio.open_connection(url.hostname, url.port)


class Poster:
    """Posts messages to one agent, one after the other, each until it is answered, always under the same key."""

    def __init__(self, daemon: DaemonProcess, history: History, target: str, seed: object, counter: list[int]) -> None:
        self.daemon = daemon
        self.history = history
        self.target = target
        self.random = random.Random(f"{seed}-post-{target}")
        self.counter = counter  # shared: refs are unique, and go up for each target
        self.is_sending = True
        self.open: str | None = None
        self.stored: dict[str, str] = {}  # the message's id by its ref, until it has arrived or is known to be dead
        self._arrived: set[str] = set()
        self._looked_at = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.random.uniform(0, 0.05))
            if self.is_sending:
                self.counter[0] += 1
                self.open = f"{HTTP}-{self.counter[0]}"
                while self.open is not None:
                    with contextlib.suppress(OSError, TimeoutError):
                        await self._post(self.open)
                    await asyncio.sleep(_RETRY_S)
            else:
                with contextlib.suppress(OSError, TimeoutError):
                    await self._look_for_the_dead()
                await asyncio.sleep(_LOOK_S)

    async def _post(self, ref: str) -> None:
        self.history.sent(HTTP, ref, (self.target,), repeats=False)
        status, answer = await call(
            self.daemon, "/api/v1/messages", {"to": self.target, "body": f"{ref}|"}, **{"Idempotency-Key": ref}
        )
        if status == 201:
            self.history.stored(HTTP, ref, answer["messageId"], answer["recipients"])
            self.stored[ref] = answer["messageId"]
            self.open = None
        elif status not in {429, 503}:
            self.history.refused(HTTP, ref, answer["error"]["code"])
            self.open = None

    async def _look_for_the_dead(self) -> None:
        """A message can run out of attempts on connections that died before it was read; nobody tells a poster."""
        for ref, message_id in list(self.stored.items()):
            status, message = await call(self.daemon, f"/api/v1/messages/{message_id}", None)
            if status == 200 and message["recipients"][0].get("stage") == "dead" and ref in self.stored:
                self.history.outcome(HTTP, ref, message_id, self.target, "DELIVERY_TIMEOUT")
                del self.stored[ref]

    def calm_down(self) -> None:
        self.is_sending = False

    def describe_rest(self) -> str:
        return f"POSTs to {self.target}: {self.open} unanswered, {list(self.stored)[:5]} not arrived"

    def is_over(self) -> bool:
        """Everything is answered, and what was stored has arrived or is dead."""
        entries = self.history.entries
        for place in range(self._looked_at, len(entries)):
            if entries[place].kind == "arrived":
                self._arrived.add(entries[place].what["ref"])
        self._looked_at = len(entries)
        for ref in self._arrived & self.stored.keys():  # it may arrive before the answer to its POST does
            del self.stored[ref]
        return self.open is None and not self.stored


class ArcReader:
    """An agent over ARC that only reads, and sometimes does not: then its connection dies with what lies in it."""

    def __init__(self, daemon: DaemonProcess, history: History, name: str, seed: object) -> None:
        self.daemon = daemon
        self.history = history
        self.name = name
        self.random = random.Random(f"{seed}-{name}")
        self.token = ""
        self.link = 0
        self.dies = True

    async def register(self) -> None:
        status, answer = await call(self.daemon, "/register", {"agent_id": self.name})
        assert status == 200, answer
        self.token = answer["token"]

    async def run(self) -> None:
        while True:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                await self._listen()
            await asyncio.sleep(self.random.uniform(0.01, 0.2))

    async def _listen(self) -> None:
        host, reader, writer = await _connect(self.daemon)
        try:
            key = base64.b64encode(os.urandom(16)).decode()
            self.link += 1
            self.history.connected(self.name, self.link)
            writer.write(
                f"GET /arc HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {self.token}\r\nUpgrade: websocket\r\n"
                f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
            )
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _ANSWER_S)
            if b" 101 " not in head.partition(b"\r\n")[0]:
                return
            loop = asyncio.get_running_loop()
            sleeps_at = loop.time() + self.random.uniform(0.2, 1.5)
            async for text in _messages(reader, writer):
                self._take(json.loads(text))
                if self.dies and loop.time() > sleeps_at:
                    await asyncio.sleep(self.random.uniform(0.1, 0.6))  # unread meanwhile; then it is gone
                    return
        finally:
            writer.transport.abort()

    def _take(self, frame: dict[str, Any]) -> None:
        if isinstance(frame.get("payload"), str) and frame["from"] != "relay":
            ref = frame["payload"].partition("|")[0]
            self.history.arrived(self.name, ref, frame["from"], link=self.link, message_id=frame["id"])

    def calm_down(self) -> None:
        self.dies = False

    def describe_rest(self) -> str:
        return ""

    def is_over(self) -> bool:
        return True  # what came of each message its sender is told


async def _messages(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[bytes]:
    """Texts that come over a WebSocket; a ping is answered when everything before it was taken."""
    while True:
        first, second = await reader.readexactly(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", await reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", await reader.readexactly(8))
        content = await reader.readexactly(size)
        match first & 0x0F:
            case 0x1:
                yield content
            case 0x9:
                mask = os.urandom(4)
                masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(content))
                writer.write(bytes([0x8A, 0x80 | len(content)]) + mask + masked)
            case 0x8:
                return
            case _:
                pass
