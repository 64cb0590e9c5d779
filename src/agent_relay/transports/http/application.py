"""The table of routes as a Litestar application: it finds the route, and the route's handler answers."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from litestar import HttpMethod, Litestar, MediaType, Request, Response
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.errors import HttpError, encode_error, wrong_method
from agent_relay.transports.http.flow import FlowResponse, unless_gone
from agent_relay.transports.http.reading import read_body, read_query
from agent_relay.transports.http.repeats import read_key
from agent_relay.transports.http.route import JSON, Call, Flow, Route, Text
from agent_relay.transports.http.table import FLAT_PATHS, ROUTES, methods_at

if TYPE_CHECKING:
    from litestar.plugins import PluginProtocol

_GONE = "client disconnected"  # what Litestar says of it
_NAME = re.compile(r"{(\w+)}")


log = logging.getLogger(__name__)


def build_application(api: Api, max_body_bytes: int) -> Litestar:
    return _Application(
        [_handler(api, route) for route in ROUTES],
        exception_handlers={RelayError: _answer_error, HTTPException: _answer_framework},
        openapi_config=None,  # ours is made of the same table; see openapi.py
        logging_config=None,
        request_max_body_size=max_body_bytes,
    )


class _Application(Litestar):
    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        """None: those it finds for itself import pydantic and attrs, ten megabytes that nothing here uses."""
        return plugins


def _handler(api: Api, route: Route) -> HTTPRouteHandler:
    async def handle(request: Request[Any, Any, Any]) -> Response[Any]:
        caller = await _who_asks(api, route, request)
        query = read_query(route, request.scope["query_string"])
        body = await _read(route, request)
        call = Call(
            names={name: str(value).lstrip("/") for name, value in request.path_params.items()},
            query=query,
            body=body,
            headers=request.headers,
            address=str((request.scope.get("client") or ("",))[0]),
            caller=caller,
            key=read_key(request.headers, body) if route.takes_key else None,
        )
        if call.key is None and getattr(body, "waits", False):
            return _answer(route, await _while_somebody_reads(request, route.handle(api, call)))
        if call.key is None:
            return _answer(route, await route.handle(api, call))
        made = await api.repeats.answer(call.key, request.scope["path"], body, lambda: route.handle(api, call))
        return Response(made, media_type=JSON, status_code=route.status)

    path = _NAME.sub(r"{\1:str}", route.path).replace("{path:str}", "{path:path}")
    return HTTPRouteHandler(path, http_method=[HttpMethod(route.method)], status_code=route.status, media_type=MediaType.JSON)(
        handle
    )


async def _while_somebody_reads(request: Request[Any, Any, Any], answering: Awaitable[Any]) -> Any:
    async def answer() -> Any:
        return await answering

    try:
        return await unless_gone(request.receive, answer())
    except ConnectionAbortedError:
        raise HttpError(400, ErrorCode.INVALID_FORMAT, "The request ended in the middle.") from None  # nobody is left to read it


async def _who_asks(api: Api, route: Route, request: Request[Any, Any, Any]) -> Caller:
    """Raises RelayError where it may not."""
    client, server = request.scope.get("client"), request.scope.get("server")
    right = route.needed_right
    if not right or api.callers is None:
        return OWNER
    if client is None or server is None or server[1] is None:
        caller = Caller(is_lost=True)  # it was gone before we looked
    else:
        caller = await api.callers.find((str(client[0]), int(client[1])), (str(server[0]), int(server[1])))
    api.callers.check(caller, right)
    return caller


async def _read(route: Route, request: Request[Any, Any, Any]) -> Any:
    if route.body is None and (route.is_flat or route.is_open or route.method == "GET"):
        return None
    raw = await request.body()
    return raw if route.is_flat else read_body(route, raw)


def _answer(route: Route, answer: Any) -> Response[Any]:
    if isinstance(answer, Flow):
        return FlowResponse(answer)
    if isinstance(answer, Text):
        return Response(
            answer.content, media_type=answer.media, status_code=answer.status or route.status, headers=dict(answer.headers)
        )
    return Response(encode_json(answer), media_type=JSON, status_code=route.status)


def _answer_error(request: Request[Any, Any, Any], error: RelayError) -> Response[Any]:
    status, headers, body = encode_error(error, flat=request.scope["path"] in FLAT_PATHS)
    return Response(body, media_type=JSON, status_code=status, headers=dict(headers) | {"x-relay-code": error.code.value})


def _answer_framework(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    """What Litestar itself refuses, in our shape."""
    match error.status_code:
        case 404:
            mine = HttpError(404, ErrorCode.ROUTE_NOT_FOUND)
        case 405:
            mine = wrong_method(methods_at(request.scope["path"]))
        case 413:
            mine = HttpError(413, ErrorCode.MESSAGE_TOO_LARGE, "The body is larger than this server accepts.")
        case status if status < 500:
            mine = HttpError(status, ErrorCode.INVALID_FORMAT, "The request is malformed.")
        case _ if _GONE in error.detail:
            mine = HttpError(400, ErrorCode.INVALID_FORMAT, "The request is incomplete.")  # nobody is left to read it
        case _:
            log.error("http_failed", exc_info=error)
            mine = HttpError(500, ErrorCode.INTERNAL_ERROR)
    return _answer_error(request, mine)
