"""Sessions: starting agents, writing to them, ending them."""

from __future__ import annotations

import asyncio

from agent_relay.events.filter import make_filter
from agent_relay.events.pages import EventQuery
from agent_relay.events.summaries import COUNTED, SessionCount
from agent_relay.ports.callers import Caller
from agent_relay.ports.service import Outgoing
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.payloads import SpawnPayload
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import NewSession, SessionMessage
from agent_relay.transports.http.errors import CONFLICT, HttpError
from agent_relay.transports.http.message_views import MessageSent
from agent_relay.transports.http.route import Call, Route
from agent_relay.transports.http.routes.events import read_all_events
from agent_relay.transports.http.session_lookup import all_sessions, find_session
from agent_relay.transports.http.session_views import (
    CliList,
    CliView,
    SessionEnd,
    SessionList,
    SessionView,
    StartedSession,
    Summary,
)
from agent_relay.transports.http.views import build

_PAGE = 1_000


async def start(api: Api, call: Call) -> StartedSession:
    return await start_session(api, call.body, call.caller)


async def start_session(api: Api, asked: NewSession, caller: Caller) -> StartedSession:
    wanted = SpawnPayload(
        asked.agent, asked.cli, asked.task, asked.cwd, environment=asked.environment or {},
        permission_mode=asked.permission_mode, host=asked.host, transport=asked.transport, model=asked.model,
    )  # fmt: skip
    try:
        started = await api.service.spawn(wanted, caller)
    except RelayError as error:
        field = {"payload.permission_mode": "permissionMode", "payload.host": "host", "payload.model": "model"}.get(
            str(error.details.get("field"))
        )
        if field is not None:
            error.details["field"] = field
        raise
    return StartedSession(started.session_id, started.name)


async def list_clis(api: Api, call: Call) -> CliList:
    del call
    return CliList([build(CliView, each) for each in await asyncio.to_thread(api.list_clis)])


async def list_sessions(api: Api, call: Call) -> SessionList:
    del call
    return SessionList(all_sessions(api))


async def get_session(api: Api, call: Call) -> SessionView:
    return find_session(api, call.names["id"])


async def write(api: Api, call: Call) -> MessageSent:
    session = find_session(api, call.names["id"])
    if session.status in {"ending", "ended"}:
        raise HttpError(CONFLICT, ErrorCode.AGENT_OFFLINE, f"The session of {session.agent_name} has ended.")
    sent = await api.service.send(Outgoing(to=session.agent_name, body=call.body.message), call.key)
    return MessageSent(sent.message_id)


async def end(api: Api, call: Call) -> SessionEnd:
    session = find_session(api, call.names["id"])
    if session.status != "ended":
        await release(api, session.agent_name, call.caller)
        session = find_session(api, session.session_id)
    return SessionEnd(await summarize(api, session))


async def release(api: Api, name: str, caller: Caller) -> None:
    try:
        await api.service.release(name, None, caller)
    except RelayError as error:
        if error.details.get("reason") != "not_spawned":
            raise
        raise HttpError(CONFLICT, ErrorCode.INVALID_TARGET, error.message, reason="not_spawned") from None


async def summarize(api: Api, session: SessionView) -> Summary:
    """Out of the session's events, as far as they are kept."""
    count = SessionCount(api.read_prices())
    query = EventQuery(make_filter(COUNTED, session_id=session.session_id), since_ms=session.started_at, limit=_PAGE)
    async for event in read_all_events(api, query):
        count.add(event)
    duration = (session.ended_at or api.wall_ms()) - session.started_at
    return Summary(
        max(0, duration), count.items, len(count.files), count.commands, count.total_tokens, count.estimated_cost_usd
    )  # fmt: skip


_TAG = "sessions"
_ALL, _ONE = "/api/v1/sessions", "/api/v1/sessions/{id}"
STARTING_FAILS = (404, 409, 422, 429, 503)
ROUTES = (
    Route("POST", _ALL, start, "Start an agent.", _TAG, StartedSession, 201, NewSession, errors=STARTING_FAILS, right="spawn",
          takes_key=True),
    Route("GET", "/api/v1/clis", list_clis, "The programs that agents can be started with.", _TAG, CliList),
    Route("GET", _ALL, list_sessions, "Every session.", _TAG, SessionList),
    Route("GET", _ONE, get_session, "One session.", _TAG, SessionView, errors=(404,)),
    Route("POST", _ONE + "/messages", write, "Send its agent a message.", _TAG, MessageSent, body=SessionMessage,
          errors=(404, 409, 429, 503), right="names", takes_key=True),
    Route("DELETE", _ONE, end, "End the session: its agent is released.", _TAG, SessionEnd, errors=(404, 409, 429, 503),
          right="spawn"),
)  # fmt: skip
