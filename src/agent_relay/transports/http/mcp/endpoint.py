"""The endpoint: a request of JSON-RPC in, its answer out. Written by hand, so that no package is needed for it: of the transport
"streamable HTTP" a server may answer with plain JSON, and needs little more.

Clients that first ask for a newer protocol are told which ones there are, and take one of these.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.mcp import resources, texts
from agent_relay.protocol.mcp.tools import INSTRUCTIONS, SERVER_NAME, TOOLS
from agent_relay.protocol.names import show
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.mcp.calls import OwnerCalls
from agent_relay.transports.http.mcp.sessions import McpSession, new_id
from agent_relay.transports.http.route import JSON, Call, Text
from agent_relay.version import __version__

VERSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
SESSION_HEADER, VERSION_HEADER = "mcp-session-id", "mcp-protocol-version"
METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR, UNSUPPORTED_VERSION = -32601, -32602, -32603, -32022
_ACCEPTED = 202
_BAD_REQUEST = 400


class RpcMessage(Struct):
    """A request, a notification, or an answer to something we never ask. Fields of newer protocols are ignored."""

    jsonrpc: Literal["2.0"]
    id: int | str | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: dict[str, Any] | UnsetType = UNSET

    @property
    def waits(self) -> bool:
        """A tool may wait for long; it is given up when its client is gone."""
        return True


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self.is_of_version = code == UNSUPPORTED_VERSION


async def answer(api: Api, call: Call) -> Text:
    asked: RpcMessage = call.body
    if isinstance(asked.id, UnsetType) or isinstance(asked.method, UnsetType):
        return Text(b"", JSON, _ACCEPTED)
    id_ = call.headers.get(SESSION_HEADER) or (new_id() if asked.method == "initialize" else None)
    headers = ((SESSION_HEADER, id_),) if asked.method == "initialize" and id_ else ()
    said: dict[str, Any] = {"jsonrpc": "2.0", "id": asked.id}
    try:
        _check_version(call.headers.get(VERSION_HEADER))
        params = {} if isinstance(asked.params, UnsetType) else asked.params
        said["result"] = await _dispatch(api, call, api.mcp.find(id_), asked.method, params)
    except RpcError as error:
        return Text(encode_json(said | {"error": error.error}), JSON, _BAD_REQUEST if error.is_of_version else None)
    return Text(encode_json(said), JSON, headers=headers)


def _check_version(said: str | None) -> None:
    if said is not None and said not in VERSIONS:
        data = {"supported": list(VERSIONS), "requested": show(said, 40)}
        raise RpcError(UNSUPPORTED_VERSION, f"This server speaks {', '.join(VERSIONS)}.", data)


async def _dispatch(api: Api, call: Call, session: McpSession, method: str, params: dict[str, Any]) -> Any:
    calls = OwnerCalls(api.service, api.wall_ms, session, call.caller)
    match method:
        case "initialize":
            return _greet(params)
        case "ping":
            return {}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return await _call_tool(calls, params)
        case "resources/list":
            return {"resources": [resources.INBOX, *resources.list_threads(await calls.list_threads())]}
        case "resources/templates/list":
            return {"resourceTemplates": [resources.THREAD_TEMPLATE]}
        case "resources/read":
            uri, text = _text_of(params, "uri"), await _answered(calls, params)
            return {"contents": [{"uri": uri, "mimeType": resources.MEDIA, "text": text}]}
        case "resources/subscribe":
            uri = _text_of(params, "uri")
            try:
                resources.read_uri(uri)
                session.subscribe(uri)
            except RelayError as error:
                raise _refuse(error) from None
            return {}
        case "resources/unsubscribe":
            session.subscribed.discard(_text_of(params, "uri"))
            return {}
        case _:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {show(method, 80)}.")


def _greet(params: dict[str, Any]) -> dict[str, Any]:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1],
        "capabilities": {"tools": {}, "resources": {"subscribe": True}},
        "serverInfo": {"name": SERVER_NAME, "version": __version__},
        "instructions": INSTRUCTIONS,
    }


async def _call_tool(calls: OwnerCalls, params: dict[str, Any]) -> dict[str, Any]:
    """Tells failures to the model, which can do something about them."""
    arguments = params.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "`arguments` must be an object.")
    try:
        text, is_error = await calls.call(_text_of(params, "name"), arguments), False
    except RelayError as error:
        text, is_error = texts.explain(error), True
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


async def _answered(calls: OwnerCalls, params: dict[str, Any]) -> str:
    try:
        return await calls.read(resources.read_uri(_text_of(params, "uri")))
    except RelayError as error:
        raise _refuse(error) from None


def _text_of(params: dict[str, Any], name: str) -> str:
    found = params.get(name)
    if not isinstance(found, str):
        raise RpcError(INVALID_PARAMS, f"`{name}` must be text.")
    return found


def _refuse(error: RelayError) -> RpcError:
    code = INTERNAL_ERROR if error.code is ErrorCode.SERVICE_UNAVAILABLE else INVALID_PARAMS
    return RpcError(code, texts.explain(error))
