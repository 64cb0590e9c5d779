"""A daemon that says what a test tells it to say: a real socket, real frames, no logic of its own."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec

from agent_relay.protocol.encode import encode_envelope, encode_json
from agent_relay.protocol.framing import FrameDecoder, encode_frame
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.client import RelayClient

PATIENCE_S = 30.0  # a loaded machine takes many times what an idle one does
SERVER = {"max_frame_bytes": 1_048_576, "heartbeat_ms": 60_000, "name": "scripted", "version": "0", "queue_capacity": 1000}


class Line(asyncio.Protocol):
    """The daemon's end of one connection."""

    def __init__(self, daemon: ScriptedDaemon) -> None:
        self._daemon = daemon
        self._decoder = FrameDecoder()
        self._heard: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._transport: asyncio.Transport | None = None
        self.chunks = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._daemon.lines.put_nowait(self)

    def data_received(self, data: bytes) -> None:
        self.chunks += 1
        for frame in self._decoder.feed(data):
            self._heard.put_nowait(msgspec.json.decode(frame))

    def connection_lost(self, exc: Exception | None) -> None:
        self._heard.put_nowait(None)

    async def hear(self, kind: str | None = None) -> dict[str, Any]:
        """The next frame, which must be of that type."""
        frame = await asyncio.wait_for(self._heard.get(), PATIENCE_S)
        assert frame is not None, f"the client closed the connection instead of saying {kind}"
        assert kind is None or frame["type"] == kind, f"{frame['type']} instead of {kind}: {frame}"
        return frame

    async def hear_end(self) -> None:
        frame = await asyncio.wait_for(self._heard.get(), PATIENCE_S)
        assert frame is None, f"{frame} instead of the end"

    @property
    def silent(self) -> bool:
        return self._heard.empty()

    def say(self, kind: str, payload: dict[str, Any], **fields: Any) -> None:
        self.say_all((kind, payload, fields))

    def say_all(self, *frames: tuple[str, dict[str, Any], dict[str, Any]]) -> None:
        """Several frames in one write."""
        assert self._transport is not None
        chunk = b"".join(encode_envelope(kind, fields.pop("id", "f_1"), 1, payload, **fields) for kind, payload, fields in frames)
        self._transport.write(chunk)

    def say_bytes(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    async def welcome(self, **more: Any) -> dict[str, Any]:
        """Answers the HELLO, which it returns."""
        hello = await self.hear("HELLO")
        self.say("WELCOME", welcome(hello["payload"]["agent"], self._daemon.welcomes, **more))
        self._daemon.welcomes += 1
        return hello

    def store(self, send: dict[str, Any], message_id: str = "msg_1", recipients: int = 1, **more: Any) -> None:
        self.say(
            "ACK",
            {"ack_id": send["id"], "stage": "stored", "message_id": message_id, "recipients": recipients, "queued": 0} | more,
        )

    def acknowledge(self, send: dict[str, Any], by: str = "Bob", seq: int = 1, **more: Any) -> None:
        self.say("ACK", {"ack_id": send["id"], "stage": "delivered", "message_id": "msg_1", "by": by, "seq": seq} | more)

    def deliver(self, body: str, number: int, attempt: int = 1, topic: str | None = None, **meta: Any) -> None:
        self.say_bytes(deliver(body, number, attempt, topic, **meta))

    def hang_up(self) -> None:
        assert self._transport is not None
        self._transport.abort()


def welcome(agent: str, number: int = 0, **server: Any) -> dict[str, Any]:
    return {
        "session_id": "ses_1", "resume_token": f"token-{number + 1}", "negotiated_version": 2, "capabilities": ["ack"],
        "agent": agent, "server": SERVER | {"max_inflight": 256} | server,
    }  # fmt: skip


def deliver(body: str, number: int, attempt: int = 1, topic: str | None = None, **meta: Any) -> bytes:
    frame = {
        "v": 2, "type": "DELIVER", "id": f"d_{number}", "ts": 1, "from": "Bob", "to": "Alice", "payload": {"body": body},
        "delivery": {"seq": number, "session_id": "ses_1", "message_id": f"msg_{number}", "attempt": attempt, "queued_ms": 0},
    }  # fmt: skip
    if topic is not None:
        frame["topic"] = topic
    if meta:
        frame["payload_meta"] = meta
    return encode_frame(encode_json(frame))


class ScriptedDaemon:
    def __init__(self, socket: str) -> None:
        self.socket = socket
        self.lines: asyncio.Queue[Line] = asyncio.Queue()
        self.welcomes = 0
        self._server: asyncio.AbstractServer | None = None

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: Line(self), self.socket)

    async def stop_listening(self) -> None:
        assert self._server is not None
        self._server.close()
        Path(self.socket).unlink(missing_ok=True)

    async def accept(self) -> Line:
        return await asyncio.wait_for(self.lines.get(), PATIENCE_S)


class Naps:
    """Stands in for asyncio.sleep: notes how long it was asked to sleep, and lets the loop turn once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


def no_waiting() -> Backoff:
    return Backoff(sleep=Naps(), random=lambda: 0.5)


@contextlib.asynccontextmanager
async def scripted_daemon() -> AsyncIterator[ScriptedDaemon]:
    with tempfile.TemporaryDirectory(prefix="relay-") as directory:
        daemon = ScriptedDaemon(f"{directory}/relay.sock")
        await daemon.listen()
        try:
            yield daemon
        finally:
            await daemon.stop_listening()


@contextlib.asynccontextmanager
async def connected(name: str = "Alice", **options: Any) -> AsyncIterator[tuple[ScriptedDaemon, RelayClient, Line]]:
    """A daemon, a client that it has welcomed, and the line between them. No task may be left behind."""
    before = asyncio.all_tasks()
    async with scripted_daemon() as daemon:
        client = RelayClient(name, socket=daemon.socket, **({"backoff": no_waiting()} | options))
        connecting = asyncio.create_task(client.connect())
        line = await daemon.accept()
        await line.welcome()
        await connecting
        try:
            yield daemon, client, line
        finally:
            await client.close(0)
    left = asyncio.all_tasks() - before
    assert not left, f"tasks left behind: {left}"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)
