"""Data that is kept of one agent: how much is on its way, all of it as lines, and erasing it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from agent_relay.events.filter import make_filter
from agent_relay.events.pages import EventQuery
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_agent_name, show
from agent_relay.protocol.payloads import HistoryPayload
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.route import LINES, Call, Flow, Route
from agent_relay.transports.http.routes.events import read_events
from agent_relay.transports.http.views import ErasedData, build

_PAGE = 500


async def count(api: Api, call: Call) -> ErasedData:
    return build(ErasedData, await api.service.count_data(_name_in(call)))


async def forget(api: Api, call: Call) -> ErasedData:
    return build(ErasedData, await api.service.forget(_name_in(call)))


async def export(api: Api, call: Call) -> Flow:
    return Flow(_lines(api, _name_in(call)), _never, _nothing, LINES)


def _name_in(call: Call) -> str:
    """Also one that nobody has any more: something may be left of it."""
    name = call.names["name"]
    try:
        check_agent_name(name)
    except RelayError:
        raise RelayError(ErrorCode.AGENT_NOT_FOUND, f"There is no agent {show(name, 80)}.", name=name[:80]) from None
    return name


async def _lines(api: Api, name: str) -> AsyncIterator[bytes]:
    """A line each: `agent`, `message`, `event`, `file`, and `end` with how many there were: without it something is missing."""
    counts = {"messages": 0, "events": 0, "files": 0}
    with contextlib.suppress(RelayError):
        yield _line("agent", msgspec.structs.asdict(api.service.agent(name)))
    asked = HistoryPayload(with_=name, limit=_PAGE, oldest_first=True, receipts=True)
    while True:
        page = await api.service.messages(asked)
        counts["messages"] += len(page.messages)
        for message in page.messages:
            yield _line("message", {"message": message})
        if page.next_cursor is None:
            break
        asked = msgspec.structs.replace(asked, cursor=page.next_cursor)
    query = EventQuery(make_filter((), agent=name), limit=_PAGE)
    while True:
        events = await read_events(api, query)
        counts["events"] += len(events.records)
        for record in events.records:
            yield b'{"kind":"event","event":' + record.line + b"}\n"
        if events.is_end:
            break
        query = msgspec.structs.replace(query, after_seq=events.last_seq)
    for path, text in await asyncio.to_thread(lambda: list(api.files.read(name))):
        counts["files"] += 1
        yield _line("file", {"path": path, "text": text})
    yield _line("end", counts)


def _line(kind: str, fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"kind": kind} | fields) + b"\n"


async def _never() -> None:
    await asyncio.Event().wait()


def _nothing() -> None:
    """There is nothing to close."""


_TAG = "agents"
_ONE = "/api/v1/agents/{name}"
ROUTES = (
    Route("GET", _ONE + "/data", count, "An agent's undelivered messages, which forgetting it would lose.", _TAG,
          ErasedData, errors=(404, 409, 503)),
    Route("DELETE", _ONE + "/data", forget, "Forget an agent: erase everything kept about it.", _TAG, ErasedData,
          errors=(404, 409, 503)),
    Route("GET", _ONE + "/export", export, "Everything kept about an agent, as JSON lines.", _TAG, media=LINES,
          errors=(404,), description="Each line has a `kind`: `agent`, `message`, `event`, `file`, and finally `end` with "
          "the counts; if `end` is missing, the export is incomplete."),
)  # fmt: skip
