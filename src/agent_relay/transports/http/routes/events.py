"""Events: streams that go on, pages of what was, and the outline of many, for pictures of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from agent_relay.events.codec import BadEvent, decode_event
from agent_relay.events.filter import EventFilter, make_filter
from agent_relay.events.outline import Outline, OutlineMaker
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.types import AnyEvent
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import EventsQuery, Moment, StreamQuery
from agent_relay.transports.http.errors import invalid, unavailable
from agent_relay.transports.http.route import JSON, SSE, Call, Flow, Route, Text
from agent_relay.transports.http.session_lookup import find_session
from agent_relay.transports.http.views import EventList

_MAX_DIGITS = 16
_MOST_PAGES = 8  # each looks at some megabytes; an answer ends early rather than keep the other readers waiting


class OutlineQuery(Struct):
    since: Moment | None = None
    until: Moment | None = None
    limit: Annotated[int, Meta(ge=1, le=20_000)] = 5_000
    cursor: Annotated[str, Meta(pattern="^[0-9]{1,16}$")] | None = None


async def all_events(api: Api, call: Call) -> Flow:
    return _open(api, call, make_filter(_types(call.query.types)))


async def agent_events(api: Api, call: Call) -> Flow:
    agent = api.service.agent(call.names["name"])
    return _open(api, call, make_filter(_types(call.query.types), agent=agent.name))


async def session_events(api: Api, call: Call) -> Flow:
    session = find_session(api, call.names["id"])
    return _open(api, call, make_filter(_types(call.query.types), session_id=session.session_id))


def _open(api: Api, call: Call, wanted: EventFilter) -> Flow:
    asked: StreamQuery = call.query
    after = asked.offset if "last-event-id" not in call.headers else _read_last_id(call.headers["last-event-id"])
    stream = api.streams.open(wanted, after, asked.since if after is None else None)
    return Flow(stream.parts(), stream.wait_until_lost, stream.close)


def _read_last_id(text: str) -> int:
    """It goes before the query: a browser that reconnects sends both, and has come further meanwhile."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise invalid("Last-Event-ID", "`Last-Event-ID` must be an event number.")
    return int(text)


def _types(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",")]


async def list_events(api: Api, call: Call) -> Text:
    asked: EventsQuery = call.query
    query = EventQuery(
        make_filter(_types(asked.types), asked.agent, asked.session),
        int(asked.cursor or 0),
        asked.since,
        asked.until,
        asked.limit,
    )
    page = await read_events(api, query)
    cursor = b"null" if page.is_end else b'"%d"' % page.last_seq
    events = b",".join(record.line for record in page.records)  # as they were recorded
    return Text(b'{"events":[%b],"next_cursor":%b}' % (events, cursor), JSON)


async def read_events(api: Api, query: EventQuery) -> EventPage:
    answer: asyncio.Future[EventPage | Exception] = asyncio.get_running_loop().create_future()

    def done(page: EventPage | Exception) -> None:
        if not answer.done():
            answer.set_result(page)

    api.bus.source.read(query, done)
    page = await answer
    if isinstance(page, Exception):
        raise unavailable(f"The events cannot be read ({page}).")
    return page


async def read_all_events(api: Api, query: EventQuery) -> AsyncIterator[AnyEvent]:
    """To the end, a page at a time. One that cannot be read, of another version perhaps, is passed over."""
    while True:
        page = await read_events(api, query)
        for record in page.records:
            try:
                yield decode_event(record.line)
            except BadEvent:
                continue
        if page.is_end:
            return
        query = msgspec.structs.replace(query, after_seq=page.last_seq)


async def outline(api: Api, call: Call) -> Outline:
    asked: OutlineQuery = call.query
    query = EventQuery(after_seq=int(asked.cursor or 0), since_ms=asked.since, until_ms=asked.until, limit=asked.limit)
    made = OutlineMaker()
    for _ in range(_MOST_PAGES):
        page = await read_events(api, query)
        made.add(page.records)
        if page.is_end:
            return made.finish(None)
        query = msgspec.structs.replace(query, after_seq=page.last_seq, limit=asked.limit - len(made))
        if query.limit <= 0:
            break
    return made.finish(str(query.after_seq))


_OUTLINE = (
    "Each event is `[seq, ts, agent, type, note, duration, to]`: words are places in `agents`, `types` and `notes` (-1: none), "
    "the duration is in milliseconds."
)
_TAG = "events"
_FAILS = (404, 503)
ROUTES = (
    Route("GET", "/api/v1/events/sse", all_events, "All events, live.", _TAG, query=StreamQuery, media=SSE, errors=(503,)),
    Route("GET", "/api/v1/agents/{name}/events/sse", agent_events, "Events of one agent, live.", _TAG, query=StreamQuery,
          media=SSE, errors=_FAILS),
    Route("GET", "/api/v1/sessions/{id}/events/sse", session_events, "Events of one session, live.", _TAG, query=StreamQuery,
          media=SSE, errors=_FAILS),
    Route("GET", "/api/v1/events", list_events, "Past events, oldest first.", _TAG, EventList, query=EventsQuery,
          errors=(503,)),
    Route("GET", "/api/v1/events/outline", outline, "Past events, compactly.", _TAG, Outline, query=OutlineQuery,
          errors=(503,), description=_OUTLINE),
)  # fmt: skip
