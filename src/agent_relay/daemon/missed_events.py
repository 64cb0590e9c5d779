"""The events that a killed daemon could not write any more, derived from the messages that it stored.

A message is stored before its event is written, so after a crash the newest messages may be without theirs. Which they are is
known exactly: events of messages are written in the order of their numbers, so it is all after the last one that has its event.
They are told before anything else is, and before anybody can ask. What else was lost (who acknowledged, what agents did) is in
no store; for that the store of events has left a gap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent_relay.core.agents import Agent
from agent_relay.core.announcements import derive_exchange
from agent_relay.daemon.logs import logger
from agent_relay.daemon.recording import Recording
from agent_relay.events.drafts import Draft, Lost
from agent_relay.ports.store import MessageQuery, MessageRow, MessageStore, Page, StoreError
from agent_relay.protocol.ulid import time_of_number

MOST = 10_000  # messages: as many events as may wait to be written when a daemon is killed
_MOST_BYTES = 32 * 1024 * 1024  # the same, of what was said
_PAGE = 64
_PATIENCE_S = 2.0  # for a disk that is slow: rather a gap than a relay that does not start


async def tell_missed(
    recording: Recording, store: MessageStore, last_number: int, find_agent: Callable[[str], Agent | None]
) -> None:
    """`last_number` is that of the newest message. Returns when what is missing was told, or cannot be for now."""
    told_to = recording.store.last_message
    drafts: list[Draft] = []
    if last_number and (told_to is None or told_to < last_number):
        rows, is_all = ([], False) if told_to is None else await _find_after(store, told_to)
        if not is_all:
            drafts.append(Lost(rows[0].ts if rows else time_of_number(last_number), reason="killed"))
        drafts += [derive_exchange(row, find_agent(row.sender)) for row in rows]
        logger.info("events_derived", extra={"relay_fields": {"messages": len(rows), "complete": is_all}})
    recording.recorder.release(drafts)
    if told_to is None or told_to < last_number:
        recording.store.cover(last_number)
    await recording.until_published(_PATIENCE_S)


async def _find_after(store: MessageStore, number: int) -> tuple[list[MessageRow], bool]:
    """The newest messages after this number, oldest first, and whether these are all of them."""
    rows: list[MessageRow] = []
    size_bytes = 0
    before: int | None = None
    until = asyncio.get_running_loop().time() + _PATIENCE_S
    while len(rows) < MOST and size_bytes < _MOST_BYTES:
        page = await _find(store, MessageQuery(before=before, limit=_PAGE), until - asyncio.get_running_loop().time())
        if page is None:
            break
        rows += [row for row in page.messages if row.number > number]
        size_bytes += sum(len(row.tail) for row in page.messages)
        before = page.next_before
        if before is None or before <= number:
            return rows[::-1], True
    return rows[::-1], False


async def _find(store: MessageStore, query: MessageQuery, seconds: float) -> Page | None:
    """None: it cannot be read, or not soon enough."""
    answer: asyncio.Future[Page | StoreError] = asyncio.get_running_loop().create_future()

    def done(page: Page | StoreError) -> None:
        if not answer.done():
            answer.set_result(page)

    store.find(query, done)
    try:
        page = await asyncio.wait_for(answer, max(seconds, 0))
    except TimeoutError:
        return None
    return page if isinstance(page, Page) else None
