"""`async for event in relay.events()`: what happens in the relay, from where one likes, over every reconnect.

After a loss a feed goes on after the last event it has, so it misses none and repeats none. A loop that is slower than the events
holds 1,000 of them here at most; then the feed pauses, and goes on where it was when they are dealt with.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from types import TracebackType
from typing import NamedTuple

from msgspec import Raw

from agent_relay.events.codec import BadEvent, decode_event
from agent_relay.events.types import AnyEvent
from agent_relay.protocol import payloads
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.names import EVENTS_TOPIC
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.sdk.queries import Queries, expect

_log = logging.getLogger("agent_relay.sdk")
MAX_HELD = 1_000


class EventFeed:
    """Loop over it, once. With `timeout`, the loop ends when that many seconds pass without an event."""

    def __init__(self, feeds: EventFeeds, asked: payloads.SubscribePayload, timeout: float | None) -> None:
        self.cursor: int | None = asked.after_seq  # the number of the last event that was handed out
        self.id: str | None = None  # of the subscription that feeds it; None: nothing does now
        self._feeds = feeds
        self._asked = asked
        self._timeout = timeout
        self._held: deque[AnyEvent] = deque()
        self._last: int | None = asked.after_seq  # the number of the last event that has arrived
        self._news = asyncio.Event()
        self._error: RelayError | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"EventFeed(cursor={self.cursor}, held={len(self._held)}, closed={self._is_closed})"

    async def __aenter__(self) -> EventFeed:
        """Begins now, and not with the loop: nothing that happens from here on is missed."""
        await self._subscribe()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    def __aiter__(self) -> EventFeed:
        return self

    async def __anext__(self) -> AnyEvent:
        while not self._held:
            if self._is_closed:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            if self.id is None:
                await self._subscribe()
            else:
                await self._wait()
        event = self._held.popleft()
        self.cursor = event.seq
        return event

    async def _wait(self) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(self._timeout):
                await self._news.wait()
        except TimeoutError:
            await self.aclose()

    async def aclose(self) -> None:
        """The daemon need not send any more. A loop that is left by `break` does not say so by itself."""
        self._is_closed = True
        self._feeds.pause(self)
        self._news.set()

    async def _subscribe(self) -> None:
        asked = self._asked
        if self._last is not None:
            asked = payloads.SubscribePayload(asked.topic, asked.types, asked.agent, asked.session_id, self._last)
        try:
            begins_after = await self._feeds.open(self, asked)
        except ConnectionLost:
            if self._is_closed:
                return  # it ended with its client, before the daemon had answered
            raise
        if self._last is None and asked.since is None:
            self._last = begins_after

    # --- what the connection says ---------------------------------------------------------------------------------------

    def arrived(self, event: AnyEvent) -> None:
        self._last = event.seq
        self._held.append(event)
        self._news.set()
        if len(self._held) >= MAX_HELD:
            self._feeds.pause(self)

    def lost(self) -> None:
        """The subscription went with its connection: the loop asks for another."""
        self.id = None
        self._news.set()

    def ended(self, error: RelayError | None) -> None:
        self.id = None
        self._is_closed = True
        self._error = error
        self._news.set()


class EventsPage(NamedTuple):
    """Oldest first. `next_cursor` continues where this page ends; None: there is no more now."""

    events: list[AnyEvent]
    next_cursor: str | None


def read_events(lines: list[Raw]) -> list[AnyEvent]:
    events: list[AnyEvent] = []
    for line in lines:
        try:
            events.append(decode_event(bytes(line)))
        except BadEvent as error:
            _log.warning("skipped an event that cannot be read: %s", error)
    return events


class EventFeeds:
    """All feeds of a client, by the subscription that feeds them."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._open: dict[str, EventFeed] = {}
        self._asking: set[str] = set()  # not answered yet: asked again by itself after a reconnect

    async def open(self, feed: EventFeed, asked: payloads.SubscribePayload) -> int:
        """The number it begins after."""
        id_, outcome = self._queries.begin("SUBSCRIBE", asked)
        feed.id = id_
        self._open[id_] = feed
        self._asking.add(id_)
        try:
            return expect(payloads.ReceiptPayload, await outcome.wait()).seq or 0
        except RelayError:
            self._open.pop(id_, None)
            feed.id = None
            raise
        except BaseException:  # it was called off: the daemon may have begun, and would go on for as long as we are connected
            self.pause(feed)
            raise
        finally:
            self._asking.discard(id_)
            self._queries.forget(id_)

    def pause(self, feed: EventFeed) -> None:
        """It wants no more for now."""
        id_, feed.id = feed.id, None
        if id_ is not None and self._open.pop(id_, None) is not None:
            with contextlib.suppress(RelayError):  # the connection has ended, and the subscription with it
                self._queries.ask_unheard("UNSUBSCRIBE", payloads.UnsubscribePayload(EVENTS_TOPIC, id_))

    def on_event(self, said: payloads.AgentEventPayload) -> None:
        feed = self._open.get(said.subscription or "")
        if feed is None:
            return  # sent before the daemon knew that nobody wants it any more
        try:
            feed.arrived(decode_event(bytes(said.event)))
        except BadEvent as error:
            _log.warning("skipped an event of type %s that cannot be read: %s", said.type[:80], error)

    def on_lost(self) -> None:
        for id_ in [id_ for id_ in self._open if id_ not in self._asking]:
            self._open.pop(id_).lost()

    def fail(self, id_: str, error: RelayError) -> bool:
        feed = self._open.pop(id_, None)
        if feed is not None:
            feed.ended(error)
        return feed is not None

    def on_closed(self, error: RelayError | None) -> None:
        feeds, self._open = list(self._open.values()), {}
        for feed in feeds:
            feed.ended(error)
