"""Answers in the words of ASGI: whole ones, and ones that go on for as long as their reader stays."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from agent_relay.protocol.errors import ErrorCode
from agent_relay.transports.http.errors import HttpError
from agent_relay.transports.http.route import Flow

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

T = TypeVar("T")
_BODILESS = frozenset({204, 304})
_FLOW_HEADERS = (
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),  # a proxy would keep events back to fill its buffer
)


async def read_whole(receive: Receive) -> bytes:
    """The body of a request. Raises HttpError where its client is gone before the end."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpError(400, ErrorCode.INVALID_FORMAT, "The request is incomplete.")  # nobody is left to read it
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def send_whole(send: Send, status: int, media: str, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
    pairs = list(headers)
    if status not in _BODILESS:
        pairs += [("content-type", media), ("content-length", str(len(body)))]
    await send({"type": "http.response.start", "status": status, "headers": _encode(pairs)})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def send_flow(receive: Receive, send: Send, flow: Flow) -> None:
    """Until it ends, its reader hangs up, or is lost."""
    tasks: list[asyncio.Task[None]] = []
    try:
        ends = _send_parts(send, flow), _wait_until_gone(receive), flow.lost()
        tasks = [asyncio.create_task(end) for end in ends]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        flow.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _send_parts(send: Send, flow: Flow) -> None:
    headers = _encode([("content-type", flow.media), *_FLOW_HEADERS])
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for part in flow.parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives; where its reader hangs up first, the work is cancelled, and HttpError raised."""
    tasks = working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_wait_until_gone(receive))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise HttpError(400, ErrorCode.INVALID_FORMAT, "The request ended in the middle.")  # nobody is left to read it
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _encode(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers]
