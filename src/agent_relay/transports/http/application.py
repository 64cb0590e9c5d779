"""The table of routes as an ASGI application: it finds the route, reads what that takes, and sends what its handler answers.

An answer is whole, or goes on for as long as its reader stays. Errors are raised: `Front` answers them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.errors import ErrorCode
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.compression import pack
from agent_relay.transports.http.errors import HttpError
from agent_relay.transports.http.repeats import read_key
from agent_relay.transports.http.request_fields import read_body, read_query
from agent_relay.transports.http.route import JSON, Call, Flow, Route, Text
from agent_relay.transports.http.table import find_route

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


def build_application(api: Api) -> Application:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        route, names = find_route(scope["method"], scope["path"])
        caller = await _who_asks(api, route, scope)
        query = read_query(route, scope["query_string"])
        body = await _read(route, receive)
        headers = _headers(scope)
        call = Call(
            names=names, query=query, body=body, headers=headers, address=str((scope.get("client") or ("",))[0]), caller=caller,
            key=read_key(headers, body) if route.takes_key else None,
        )  # fmt: skip
        answer = await _answer(api, route, call, scope["path"], receive)
        if isinstance(answer, Flow):
            await send_flow(receive, send, answer)
            return
        if isinstance(answer, Text) and (answer.media != JSON or answer.headers):
            await send_whole(send, answer.status or route.status, _with_charset(answer.media), answer.content, answer.headers)
            return
        status = route.status
        if isinstance(answer, Text):
            body, status = answer.content, answer.status or status
        else:
            body = answer if isinstance(answer, bytes) else encode_json(answer)
        packed = await pack(body, headers)
        await send_whole(send, status, JSON, body if packed is None else packed.content, packed.headers if packed else ())

    return application


async def _answer(api: Api, route: Route, call: Call, path: str, receive: Receive) -> Any:
    """The route's answer; bytes are JSON."""
    if call.key is not None:
        return await api.repeats.answer(call.key, path, call.body, lambda: route.handle(api, call))
    if getattr(call.body, "waits", False):
        return await unless_gone(receive, route.handle(api, call))
    return await route.handle(api, call)


async def _who_asks(api: Api, route: Route, scope: Scope) -> Caller:
    """Raises RelayError where it may not."""
    client, server = scope.get("client"), scope.get("server")
    right = route.needed_right
    if not right or api.callers is None:
        return OWNER
    if client is None or server is None or server[1] is None:
        caller = Caller(is_lost=True)  # it was gone before we looked
    else:
        caller = await api.callers.find((str(client[0]), int(client[1])), (str(server[0]), int(server[1])))
    api.callers.check(caller, right)
    return caller


async def _read(route: Route, receive: Receive) -> Any:
    if route.body is None and (route.is_flat or route.is_open or route.method == "GET"):
        return None
    raw = await read_whole(receive)
    return raw if route.is_flat else read_body(route, raw)


def _headers(scope: Scope) -> dict[str, str]:
    """By their names in lower case; of those that come twice, the first."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reversed(scope["headers"])}


def _with_charset(media: str) -> str:
    return f"{media}; charset=utf-8" if media.startswith("text/") and "charset=" not in media else media


# --- in the words of ASGI ----------------------------------------------------------------------------------------------


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
    """The result of the work; where its reader hangs up first, the work is cancelled, and HttpError raised."""
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
