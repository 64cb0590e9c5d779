"""SUBSCRIBE to `$events`: connections that follow what happens, each from where it likes, as fast as it reads.

A connection whose buffer is full is left alone until it has drained. If it has fallen too far behind by then, its subscription
begins again after the last event it was sent, so that it misses nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from agent_relay.core.context import Context
from agent_relay.core.lookups.pages import read_cursor
from agent_relay.events.bus import EventBus, Subscription
from agent_relay.events.codec import encode_event
from agent_relay.events.filter import EventFilter, make_filter
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.types import StreamGap
from agent_relay.protocol.encode import encode_event_frame
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import EVENTS_TOPIC
from agent_relay.protocol.payloads import SubscribePayload

if TYPE_CHECKING:
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope

_MOST = 16  # subscriptions of one connection
_AT_ONCE = 64  # events between two looks at the connection's buffer
_RETRY_MS = 1_000


class _Watch:
    """One subscription of one connection; its id is that of the SUBSCRIBE."""

    __slots__ = ("id", "peer", "subscription")

    def __init__(self, peer: Peer, id_: str) -> None:
        self.peer = peer
        self.id = id_
        self.subscription: Subscription | None = None


class Watchers:
    def __init__(self, context: Context, bus: EventBus | None) -> None:
        self._context = context
        self._bus = bus
        self._watches: dict[Peer, dict[str, _Watch]] = {}
        self._to_pump: dict[_Watch, None] = {}

    def subscribe(self, peer: Peer, frame: envelope.Subscribe) -> None:
        try:
            bus = self._check(peer)
            asked = frame.payload
            wanted = make_filter(asked.types, asked.agent, asked.session_id, field="payload.types")
        except RelayError as error:
            peer.say_error(error, frame.id)
            return
        old = self._watches.setdefault(peer, {}).pop(frame.id, None)  # the same SUBSCRIBE again: it begins anew
        if old is not None:
            self._close(old)
        watch = self._watches[peer][frame.id] = _Watch(peer, frame.id)
        peer.say("ACK", {"ack_id": frame.id, "stage": "subscribed", "topic": EVENTS_TOPIC, "seq": _start(bus, asked)})
        self._begin(bus, watch, wanted, asked.after_seq, asked.since)

    def _check(self, peer: Peer) -> EventBus:
        if self._bus is None:
            raise RelayError(ErrorCode.FEATURE_UNSUPPORTED, "This daemon records no events.")
        if not peer.hears_events:
            raise RelayError(ErrorCode.FEATURE_UNSUPPORTED, "Request the capability `events` to subscribe to them.")
        if len(self._watches.get(peer, ())) >= _MOST:
            raise RelayError(
                ErrorCode.RATE_LIMITED, f"A connection can have at most {_MOST} event subscriptions.", retry_after_ms=_RETRY_MS
            )
        return self._bus

    def _begin(self, bus: EventBus, watch: _Watch, wanted: EventFilter, after_seq: int | None, since_ms: int | None) -> None:
        def on_news() -> None:
            self._to_pump[watch] = None

        watch.subscription = bus.subscribe(wanted, after_seq=after_seq, since_ms=since_ms, on_news=on_news)
        self._to_pump[watch] = None

    def unsubscribe(self, peer: Peer, frame: envelope.Unsubscribe) -> None:
        watches = self._watches.get(peer, {})
        wanted = frame.payload.subscription
        for id_ in list(watches) if wanted is None else [wanted]:
            watch = watches.pop(id_, None)
            if watch is not None:
                self._close(watch)
        peer.say("ACK", {"ack_id": frame.id, "stage": "unsubscribed", "topic": EVENTS_TOPIC})

    def look_back(self, peer: Peer, frame: envelope.History) -> None:
        """HISTORY with the view `events`: a page of them, oldest first."""
        asked = frame.payload
        try:
            if self._bus is None:
                raise RelayError(ErrorCode.FEATURE_UNSUPPORTED, "This daemon records no events.")
            wanted = make_filter(asked.types, asked.with_, asked.session_id, field="payload.types")
            after_seq = read_cursor(asked.cursor) or 0
        except RelayError as error:
            peer.say_error(error, frame.id)
            return

        def found(page: EventPage | Exception) -> None:
            if isinstance(page, Exception):
                peer.say_error(_unreadable(str(page)), frame.id)
                return
            lines, last_seq = _take_what_fits(page, self._context.limits.max_frame_bytes)
            is_end = page.is_end and len(lines) == len(page.records)
            cursor = None if is_end else str(last_seq)
            peer.say("HISTORY_RESULT", {"events": lines, "next_cursor": cursor, "reply_to": frame.id})

        query = EventQuery(wanted, after_seq, asked.since, asked.until, asked.limit)
        self._bus.source.read(query, found)

    def parted(self, peer: Peer) -> None:
        for watch in self._watches.pop(peer, {}).values():
            self._close(watch)

    def _close(self, watch: _Watch) -> None:
        self._to_pump.pop(watch, None)
        if watch.subscription is not None:
            watch.subscription.close()

    # --- out ------------------------------------------------------------------------------------------------------------

    def drained(self, peer: Peer) -> None:
        for watch in self._watches.get(peer, {}).values():
            self._to_pump[watch] = None

    def pump(self) -> None:
        """At the end of a turn."""
        while self._to_pump:
            watch, _ = self._to_pump.popitem()
            if not watch.peer.closed and watch.subscription is not None:
                self._send(watch, watch.subscription)

    def _send(self, watch: _Watch, subscription: Subscription) -> None:
        connection = watch.peer.connection
        while not connection.is_full:
            records = subscription.take(_AT_ONCE)
            for record in records:
                self._say(watch, record.type, record.seq, record.line)
            if not records:
                if subscription.is_over:
                    self._go_on(watch, subscription)
                return
        connection.notify_drained = True

    def _go_on(self, watch: _Watch, subscription: Subscription) -> None:
        if subscription.failed is None and self._bus is not None:
            self._begin(self._bus, watch, subscription.filter, subscription.cursor, None)
            return
        self._watches.get(watch.peer, {}).pop(watch.id, None)
        watch.peer.say_error(_unreadable(subscription.failed or ""), watch.id)

    def _say(self, watch: _Watch, kind: str, seq: int, line: bytes) -> None:
        context, peer = self._context, watch.peer
        if len(line) > context.limits.max_frame_bytes:  # the client would not take the frame
            kind, line = "stream.gap", encode_event(StreamGap(seq=seq, ts=context.wall_ms, oldest=seq + 1, lost=1))
        peer.connection.send(encode_event_frame(peer.version, context.frame_id(), context.wall_text, kind, watch.id, line))


def _unreadable(why: str) -> RelayError:
    return RelayError(ErrorCode.SERVICE_UNAVAILABLE, f"The events could not be read ({why}).", retry_after_ms=_RETRY_MS)


def _take_what_fits(page: EventPage, limit_bytes: int) -> tuple[list[Raw], int]:
    """As many as one frame holds, and the number to go on after. One that is larger than a frame becomes a gap."""
    lines: list[Raw] = []
    size = 0
    for place, record in enumerate(page.records):
        line = record.line
        if len(line) > limit_bytes:
            line = encode_event(StreamGap(seq=record.seq, ts=record.ts, oldest=record.seq + 1, lost=1))
        size += len(line) + 1
        if size > limit_bytes and lines:
            return lines, page.records[place - 1].seq
        lines.append(Raw(line))
    return lines, page.last_seq


def _start(bus: EventBus, asked: SubscribePayload) -> int:
    """The number the subscriber begins after: where it goes on if the connection breaks before the first event."""
    if asked.after_seq is not None:
        return min(asked.after_seq, bus.source.last_seq)
    return 0 if asked.since is not None else bus.last_seq
