"""Reading recorded events to the end, page by page: one that this version cannot read costs nobody their answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from agent_relay.events.bus import ReadDone
from agent_relay.events.codec import encode_event
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.record import read_records
from agent_relay.events.types import TokensUsed
from agent_relay.transports.http.routes.costs import read_usages
from agent_relay.transports.http.routes.events import read_all_events


def used(seq: int) -> bytes:
    event = TokensUsed(seq=seq, ts=seq, session_id="s", agent_name="Bob", model="m", input_tokens=seq, output_tokens=0)
    return encode_event(event)


LINES = [
    used(1),
    used(2).replace(b'"inputTokens":2', b'"inputTokens":"many"'),
    used(3),
    b'{"type":"a.later.one","_seq":4,"_ts":4}',
    used(5),
]


class Source:
    """Two events a page."""

    last_seq = 5

    def read(self, query: EventQuery, done: ReadDone) -> None:
        records = [record for record in read_records(LINES) if record.seq > query.after_seq][:2]
        page = EventPage(records, records[-1].seq if records else 5, 1, is_end=not records)
        asyncio.get_running_loop().call_soon(done, page)


def test_what_cannot_be_read_is_passed_over() -> None:
    api: Any = SimpleNamespace(bus=SimpleNamespace(source=Source()))

    async def main() -> None:
        assert [event.seq async for event in read_all_events(api, EventQuery())] == [1, 3, 5]
        assert [usage.input_tokens async for usage in read_usages(api, None, None)] == [1, 3, 5]

    asyncio.run(main())
