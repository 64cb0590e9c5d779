"""The history: messages as they were sent, what became of each, and what could not be delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_relay.core.commit import Committer
from agent_relay.core.lookups.message_ids import find_message, unreadable
from agent_relay.core.lookups.pages import read_place, take_conversations, take_what_fits
from agent_relay.core.lookups.progress import add_progress, note_refusals
from agent_relay.core.registry import Registry
from agent_relay.ports.store import (
    Conversation,
    DeadLetterQuery,
    DeadLetterRow,
    MessageQuery,
    MessageRow,
    MessageStore,
    Page,
    StoreError,
    TrailRow,
)
from agent_relay.protocol.encode import encode_json, read_shadows, read_tail
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.holds import describe_hold, read_waits
from agent_relay.protocol.message_states import MessageState
from agent_relay.protocol.names import CHANNEL_MARK, fold_name, is_name, show
from agent_relay.protocol.reports import describe_seen, read_seen

if TYPE_CHECKING:
    from agent_relay.core.journal import Journal
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope, payloads

_GLIMPSE = 200  # characters of a conversation's last message
# Of steps in one millisecond.
_ORDER = {"received": 1, "waits": 2, "handed": 2, "acknowledged": 3, "injected": 3, "rejected": 3, "expired": 3, "read": 4}


class History:
    """`committer`: what is asked about is written first, so that no answer is behind what somebody was told."""

    def __init__(
        self, registry: Registry, store: MessageStore, journal: Journal, committer: Committer, max_frame_bytes: int
    ) -> None:
        self._registry = registry
        self._store = store
        self._journal = journal
        self._committer = committer
        self._max_frame_bytes = max_frame_bytes

    def answer(self, peer: Peer, frame: envelope.History) -> None:
        asked = frame.payload
        try:
            match asked.view:
                case "messages":
                    self._find(peer, frame.id, asked)
                case "message":
                    self._explain(peer, frame.id, asked.id)
                case "conversations":
                    self._conversations(peer, frame.id, asked.limit)
                case "dead_letters":
                    self._dead_letters(peer, frame.id, asked.limit)
                case other:
                    raise RelayError(ErrorCode.INVALID_FORMAT, f"Unknown view {show(other)}.", field="payload.view")
        except RelayError as error:
            peer.say_error(error, frame.id)

    def _find(self, peer: Peer, request_id: str, asked: payloads.HistoryPayload) -> None:
        place = read_place(asked.cursor)
        to = asked.to
        by_name = to is not None and is_name(to)
        query = MessageQuery(
            with_agent=asked.with_, sender=asked.from_, recipient=to if by_name else None, target=None if by_name else to,
            topic=asked.topic, thread=asked.thread, kind=asked.kind, search=asked.search, since=asked.since, until=asked.until,
            between=_read_pair(asked.between), before=None if asked.oldest_first else place,
            after=(place or 0) if asked.oldest_first else None, limit=asked.limit,
        )  # fmt: skip

        def found(page: Page | StoreError) -> None:
            if isinstance(page, StoreError):
                peer.say_error(unreadable(page), request_id)
                return
            page.messages = [row for row in page.messages if not asked.pending or self._is_pending(row, page, to)]
            self._committer.when_written(lambda: self._store.steps(page.messages, lambda steps: tell(page, steps)))

        def tell(page: Page, steps: list[list[TrailRow]] | StoreError) -> None:
            if isinstance(steps, StoreError):
                peer.say_error(unreadable(steps), request_id)
                return
            shown = [self._show(row, page.dead) for row in page.messages]
            for message, noted in zip(shown, steps, strict=True):
                note_refusals(message["recipients"], noted)
                if asked.receipts:
                    add_progress(message["recipients"], noted)
            messages, all_fit = take_what_fits(shown, self._max_frame_bytes)
            last = page.next_before if all_fit else page.messages[len(messages) - 1].number
            cursor = None if last is None else str(last)
            peer.say("HISTORY_RESULT", {"messages": messages, "next_cursor": cursor, "reply_to": request_id})

        self._store.find(query, found)

    def _conversations(self, peer: Peer, request_id: str, limit: int) -> None:
        def found(rows: list[tuple[Conversation, MessageRow]] | StoreError) -> None:
            if isinstance(rows, StoreError):
                peer.say_error(unreadable(rows), request_id)
                return
            shown = [_show_conversation(each, row) for each, row in rows]
            taken = take_conversations(shown, self._max_frame_bytes)
            peer.say("HISTORY_RESULT", {"conversations": taken, "reply_to": request_id})

        self._store.conversations(limit, found)

    def _is_pending(self, row: MessageRow, page: Page, to: str | None) -> bool:
        return any(
            status["status"] in {MessageState.QUEUED, MessageState.SENT}
            for status in self._statuses(row, page.dead)
            if to is None or to[:1] == CHANNEL_MARK or fold_name(status["name"]) == fold_name(to)
        )

    def _explain(self, peer: Peer, request_id: str, message_id: str | None) -> None:
        def found(page: Page | RelayError) -> None:
            if isinstance(page, RelayError):
                peer.say_error(page, request_id)
                return
            (row,) = page.messages
            self._committer.when_written(lambda: self._store.trail(row, lambda trail: explain(row, page, trail)))

        def explain(row: MessageRow, page: Page, trail: list[TrailRow] | StoreError) -> None:
            if isinstance(trail, StoreError):
                peer.say_error(unreadable(trail), request_id)
                return
            steps = [_show_step(step, at) for at, step in _in_order(trail)]
            message = self._show(row, page.dead)
            note_refusals(message["recipients"], trail)
            shown, _ = take_what_fits([message], self._max_frame_bytes - len(encode_json(steps)))
            peer.say("HISTORY_RESULT", {"messages": shown, "trail": steps, "reply_to": request_id})

        find_message(self._store, message_id or "", found)

    def _show(self, row: MessageRow, dead: frozenset[tuple[int, str]]) -> dict[str, Any]:
        found = read_tail(row.tail)
        shown: dict[str, Any] = {
            "message_id": row.id,
            "client_id": row.client_id,
            "from": row.sender,
            "to": row.target,
            "topic": row.topic or None,
            "ts": row.ts,
            "expires_at": row.expires_at,
            "kind": row.kind,
            "thread": row.thread,
            "priority": row.priority,
            "payload": found["payload"],
            "payload_meta": found.get("payload_meta"),
            "recipients": self._statuses(row, dead),
            "skipped": list(row.skipped),
        }
        return shown

    def _statuses(self, row: MessageRow, dead: frozenset[tuple[int, str]]) -> list[dict[str, Any]]:
        """Of everybody who gets it; whoever only gets a copy is marked."""
        shadows = read_shadows(row.tail)
        return [
            {"name": name, "seq": seq, "status": self._status(row, name, seq, dead)} | ({"copy": True} if name in shadows else {})
            for name, seq in row.recipients
        ]

    def _status(self, row: MessageRow, name: str, seq: int, dead: frozenset[tuple[int, str]]) -> str:
        agent = self._registry.find(name)
        stream = None if agent is None else agent.streams.get((row.topic, fold_name(row.sender)))
        if agent is None or stream is None:
            return MessageState.UNKNOWN.value
        if self._journal.is_dead(row.number, agent.key, stored=(row.number, agent.key) in dead):
            return MessageState.DEAD.value
        if stream.is_done(seq):
            return MessageState.DELIVERED.value
        return (MessageState.SENT if seq <= stream.wire_seq else MessageState.QUEUED).value

    # --- dead letters ---------------------------------------------------------------------------------------------------

    def _dead_letters(self, peer: Peer, request_id: str, limit: int) -> None:
        def found(rows: list[tuple[DeadLetterRow, MessageRow]] | StoreError) -> None:
            if isinstance(rows, StoreError):
                peer.say_error(unreadable(rows), request_id)
                return
            places = frozenset((dead.number, fold_name(dead.recipient)) for dead, _ in rows)
            messages = [
                self._show(row, places) | {"dead": {"to": dead.recipient, "at": dead.at, "code": dead.code}}
                for dead, row in rows
                if self._journal.is_dead(dead.number, fold_name(dead.recipient), stored=True)
            ]
            shown, _ = take_what_fits(messages, self._max_frame_bytes)
            peer.say("HISTORY_RESULT", {"messages": shown, "next_cursor": None, "reply_to": request_id})

        self._committer.when_written(lambda: self._store.dead_letters(DeadLetterQuery(limit=limit), found))


def _read_pair(names: list[str]) -> tuple[str, str] | None:
    if not names:
        return None
    if len(names) != 2:
        raise RelayError(ErrorCode.INVALID_FORMAT, "`payload.between` must name two agents.", field="payload.between")
    return names[0], names[1]


def _show_conversation(found: Conversation, last: MessageRow) -> dict[str, Any]:
    body = read_tail(last.tail)["payload"].get("body")
    return {
        "type": found.kind, "key": found.key, "count": found.count,
        "last": {
            "message_id": last.id, "from": last.sender, "to": last.target, "kind": last.kind, "ts": last.ts,
            "body": body[:_GLIMPSE] if isinstance(body, str) else "",
        },
    }  # fmt: skip


def _in_order(trail: list[TrailRow]) -> list[tuple[int, TrailRow]]:
    """The steps as they happened, each with its moment.

    Plain acknowledgements are written as runs that carry the moment the run began, so one may seem older than what was
    reported of the message before it; and steps of the same millisecond are told apart by what they say.
    """
    received = {step.recipient: step.at for step in trail if step.event == "received"}
    moments = [
        (max(step.at, received.get(step.recipient, 0)) if step.event == "acknowledged" else step.at, step) for step in trail
    ]
    return sorted(moments, key=lambda moment: (moment[0], _ORDER.get(moment[1].event, 0)))


def _show_step(step: TrailRow, at: int) -> dict[str, Any]:
    shown = {"at": at, "event": step.event, "to": step.recipient, "detail": step.detail}
    if step.event in {"handed", "injected", "read"}:
        seen = read_seen(step.detail)
        shown |= {"detail": describe_seen(seen)} | seen
    elif step.event == "waits" and (hold := read_waits(step.detail)) is not None:
        shown |= {"detail": describe_hold(hold, step.recipient).text, "hold": hold.reason}
    return shown
