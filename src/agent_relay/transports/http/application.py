"""The table of routes as an ASGI application: it finds the route, reads what that takes, and sends what its handler answers.

Errors are raised: `Front` answers them.
"""

from __future__ import annotations

from typing import Any

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.protocol.encode import encode_json
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.asgi import Application, Receive, Scope, Send, read_whole, send_flow, send_whole, unless_gone
from agent_relay.transports.http.repeats import read_key
from agent_relay.transports.http.request_fields import read_body, read_query
from agent_relay.transports.http.route import JSON, Call, Flow, Route, Text
from agent_relay.transports.http.table import find_route


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
        elif isinstance(answer, Text):
            await send_whole(send, answer.status or route.status, _with_charset(answer.media), answer.content, answer.headers)
        else:
            await send_whole(send, route.status, JSON, answer if isinstance(answer, bytes) else encode_json(answer))

    return application


async def _answer(api: Api, route: Route, call: Call, path: str, receive: Receive) -> Any:
    """What the route answers; bytes are JSON."""
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
