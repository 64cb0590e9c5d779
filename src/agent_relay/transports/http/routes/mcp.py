"""`/mcp`: the tools for MCP clients that speak HTTP, and the stream that tells them of changes."""

from __future__ import annotations

from agent_relay.events.filter import make_filter
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.errors import invalid
from agent_relay.transports.http.mcp.endpoint import SESSION_HEADER, RpcMessage, answer
from agent_relay.transports.http.route import JSON, SSE, Call, Flow, Route, Text

_CHANGES = ("message.exchanged", "message.delivered")


async def open_stream(api: Api, call: Call) -> Flow:
    session = api.mcp.find(_session_id(call))
    stream = api.streams.open(
        make_filter(_CHANGES), None, None, encode=lambda record: session.encode_updates(record, api.service.name)
    )
    return Flow(stream.parts(), stream.wait_until_lost, stream.close)


async def end_session(api: Api, call: Call) -> Text:
    api.mcp.end(_session_id(call))
    return Text(b"", JSON)


def _session_id(call: Call) -> str:
    found = call.headers.get(SESSION_HEADER)
    if not found:
        raise invalid(SESSION_HEADER, f"The header `{SESSION_HEADER}` is missing; `initialize` answers with one.")
    return found


_TAG = "mcp"
ROUTES = (
    Route("POST", "/mcp", answer, "A request of MCP (JSON-RPC).", _TAG, body=RpcMessage, right="names", is_described=False),
    Route("GET", "/mcp", open_stream, "Changes of subscribed resources.", _TAG, media=SSE, is_described=False),
    Route("DELETE", "/mcp", end_session, "End of a session.", _TAG, status=204, right="names", is_described=False),
)
