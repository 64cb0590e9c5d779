"""Messages: the history, what became of one, sending, and what could not be delivered."""

from __future__ import annotations

import re

from msgspec import UnsetType

from agent_relay.ports.service import MessageLife, Outgoing, Step, StoredMessage
from agent_relay.protocol.names import show
from agent_relay.protocol.payloads import HistoryPayload
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import MessagesQuery, NewMessage, PageQuery
from agent_relay.transports.http.errors import invalid, not_found
from agent_relay.transports.http.message_views import (
    ConversationList,
    ConversationView,
    DeadLetterList,
    DeadView,
    Glimpse,
    MessageList,
    MessageView,
    Receipt,
    RecipientView,
    ReplyView,
    Retried,
    Timeline,
)
from agent_relay.transports.http.route import Call, Route
from agent_relay.transports.http.views import Done, build

_ID = re.compile("msg_[0-9A-Z]{26}|[0-9a-fA-F]{8,64}", re.ASCII)


def show_message(found: StoredMessage) -> MessageView:
    data, dead = found.payload.get("data"), found.dead
    return build(
        MessageView, found, body=str(found.payload.get("body", "")), data=data if isinstance(data, dict) else None,
        recipients=[build(RecipientView, each) for each in found.recipients],
        dead=None if isinstance(dead, UnsetType) else build(DeadView, dead),
    )  # fmt: skip


async def list_messages(api: Api, call: Call) -> MessageList:
    asked: MessagesQuery = call.query
    page = await api.service.messages(
        HistoryPayload(
            with_=asked.with_,
            from_=asked.from_,
            to=asked.to,
            topic=asked.topic,
            thread=asked.thread,
            kind=asked.kind,
            search=asked.search,
            since=asked.since,
            until=asked.until,
            limit=asked.limit,
            cursor=asked.cursor,
            between=[] if asked.between is None else asked.between.split(","),
            oldest_first=asked.order == "oldest",
            receipts=asked.receipts == "true",
        )
    )
    return MessageList([show_message(found) for found in page.messages], page.next_cursor)


async def list_conversations(api: Api, call: Call) -> ConversationList:
    found = await api.service.conversations(call.query.limit)
    return ConversationList([build(ConversationView, each, last=build(Glimpse, each.last)) for each in found])


def _message_id(call: Call) -> str:
    if _ID.fullmatch(call.names["id"]) is None:
        raise not_found(f"There is no message {show(call.names['id'], 80)}.")
    return call.names["id"]


async def get_message(api: Api, call: Call) -> MessageView:
    life = await api.service.message(_message_id(call))
    shown = show_message(life.message)
    shown.timeline = _steps(life)
    return shown


async def timeline(api: Api, call: Call) -> Timeline:
    life = await api.service.message(_message_id(call))
    return Timeline(life.message.message_id, _steps(life))


def _steps(life: MessageLife) -> list[Step]:
    """From the moment it was stored, which is before anything could become of it."""
    return [Step(life.message.ts, "stored", life.message.to), *life.trail]


async def send(api: Api, call: Call) -> Receipt:
    asked: NewMessage = call.body
    to = asked.to
    if isinstance(to, str) and "," in to:
        to = [name.strip() for name in to.split(",")]
    if to is None and asked.topic is None:
        raise invalid("to", "`to` is missing: a name, a list of names, `#channel` or `*`; or a `topic` in its place.")
    sent = await api.service.send(build(Outgoing, asked, to=to, wait_ms=asked.wait_ms or asked.await_ms), call.key)
    return build(Receipt, sent, reply=None if sent.reply is None else build(ReplyView, sent.reply))


async def dead_letters(api: Api, call: Call) -> DeadLetterList:
    return DeadLetterList([show_message(found) for found in await api.service.dead_letters(call.query.limit)])


async def retry(api: Api, call: Call) -> Retried:
    return build(Retried, await api.service.retry(_message_id(call), call.caller))


async def dismiss(api: Api, call: Call) -> Done:
    await api.service.dismiss(_message_id(call), call.caller)
    return Done()


_TAG = "messages"
_MESSAGES, _DEAD = "/api/v1/messages", "/api/v1/dead-letters"
ROUTES = (
    Route("GET", _MESSAGES, list_messages, "The history.", _TAG, MessageList, query=MessagesQuery, errors=(503,)),
    Route("POST", _MESSAGES, send, "Send a message. It is stored once this returns.", _TAG, Receipt, 201, NewMessage,
          errors=(404, 409, 429, 503), right="names", takes_key=True),
    Route("GET", "/api/v1/conversations", list_conversations, "Who talks to whom, newest first.", _TAG, ConversationList,
          query=PageQuery, errors=(503,)),
    Route("GET", _MESSAGES + "/{id}", get_message, "One message.", _TAG, MessageView, errors=(404, 422, 503)),
    Route("GET", _MESSAGES + "/{id}/timeline", timeline, "What happened to it, step by step.", _TAG, Timeline,
          errors=(404, 422, 503)),
    Route("GET", _DEAD, dead_letters, "Undeliverable messages.", _TAG, DeadLetterList, query=PageQuery, errors=(503,)),
    Route("POST", _DEAD + "/{id}/retry", retry, "Send a dead letter again.", _TAG, Retried, errors=(404, 409, 429, 503),
          right="retry", takes_key=True),
    Route("DELETE", _DEAD + "/{id}", dismiss, "Dismiss a dead letter. The message stays in the history.", _TAG, Done,
          errors=(404, 503), right="retry"),
)  # fmt: skip
