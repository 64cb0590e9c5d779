"""An answer that goes on for as long as its reader stays."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from litestar import Response

from agent_relay.transports.http.route import Flow

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

T = TypeVar("T")
_HEADERS = [
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # a proxy would keep events back to fill its buffer
]


class FlowResponse(Response[Any]):
    def __init__(self, flow: Flow) -> None:
        super().__init__(None, media_type=flow.media)
        self._flow = flow

    def to_asgi_response(self, *_: Any, **__: Any) -> ASGIApp:  # type: ignore[override]
        return _Sender(self._flow)


class _Sender:
    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        tasks: list[asyncio.Task[None]] = []
        try:
            ends = self._send(send), _wait_until_gone(receive), self._flow.lost()
            tasks = [asyncio.create_task(end) for end in ends]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self._flow.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        headers = [(b"content-type", self._flow.media.encode()), *_HEADERS]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for part in self._flow.parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives; where its reader hangs up first, the work is cancelled, and ConnectionAbortedError raised."""
    tasks = working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_wait_until_gone(receive))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ConnectionAbortedError
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
