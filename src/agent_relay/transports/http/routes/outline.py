"""The outline of many events, for pictures of them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from agent_relay.events.outline import Outline, OutlineMaker
from agent_relay.events.pages import EventQuery
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import Moment
from agent_relay.transports.http.route import Call, Route
from agent_relay.transports.http.routes.events import read_events

_MOST_PAGES = 8  # each looks at some megabytes; an answer ends early rather than keep the other readers waiting


class OutlineQuery(Struct):
    since: Moment | None = None
    until: Moment | None = None
    limit: Annotated[int, Meta(ge=1, le=20_000)] = 5_000
    cursor: Annotated[str, Meta(pattern="^[0-9]{1,16}$")] | None = None


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


_ABOUT = (
    "Each event is `[seq, ts, agent, type, note, duration, to]`: words are places in `agents`, `types` and `notes` (-1: none), "
    "the duration is in milliseconds."
)
ROUTES = (
    Route("GET", "/api/v1/events/outline", outline, "Past events, compactly.", "events", Outline, query=OutlineQuery,
          errors=(503,), description=_ABOUT),
)  # fmt: skip
