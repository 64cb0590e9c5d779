"""Answers about messages: as they are listed, sent, followed and answered."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from agent_relay.ports.service import Step


class RecipientView(Struct, rename={"stage_at": "stageAt"}):
    """`copy`: it only gets a copy, as a shadow. `stage` and what follows only where receipts were asked for. `door` and
    `evidence`: how it went in, and what proves it."""

    name: str
    seq: int
    status: Literal["queued", "sent", "delivered", "rejected", "dead", "unknown"]
    copy: bool = False  # a shadow, and no recipient
    stage: Literal["queued", "sent", "received", "handed", "delivered", "read", "rejected", "dead", "unknown"] | None = None
    stage_at: int | None = None
    door: str | None = None
    evidence: str | None = None


class DeadView(Struct):
    to: str
    at: int
    code: str


class MessageView(Struct, rename={"message_id": "messageId", "from_": "from", "expires_at": "expiresAt"}):
    message_id: str
    from_: str
    to: str
    kind: str
    body: str
    ts: int
    expires_at: int
    priority: int
    recipients: list[RecipientView]
    skipped: list[str] = []
    topic: str | None = None
    thread: str | None = None
    data: dict[str, Any] | None = None
    truncated: bool = False  # too large to be shown whole
    dead: DeadView | None = None  # where it could not be delivered
    timeline: list[Step] | None = None  # of one message: what became of it, from `stored` on


class MessageList(Struct):
    messages: list[MessageView]
    next_cursor: str | None = None


class Glimpse(Struct, rename={"message_id": "messageId", "from_": "from"}):
    message_id: str
    from_: str
    to: str
    kind: str
    body: str  # its beginning
    ts: int


class ConversationView(Struct):
    """`key` as the filter of messages takes it: `between` for a pair, `to` for a channel, `*` and a group, `topic`, `thread`."""

    type: Literal["pair", "channel", "all", "group", "topic", "thread"]
    key: str
    count: int
    last: Glimpse


class ConversationList(Struct):
    conversations: list[ConversationView]
    next_cursor: str | None = None


class DeadLetterList(Struct, rename={"dead_letters": "deadLetters"}):
    dead_letters: list[MessageView]
    next_cursor: str | None = None


class Timeline(Struct, rename={"message_id": "messageId"}):
    message_id: str
    timeline: list[Step]
    next_cursor: str | None = None


class ReplyView(Struct, rename={"message_id": "messageId"}):
    """`message_id` where it came as a message of its own, and not with the acknowledgement."""

    by: str
    body: str
    response: Any = None
    data: Any = None
    message_id: str | None = None


class Receipt(Struct, rename={"message_id": "messageId"}):
    message_id: str
    recipients: int
    queued: int  # how many of them were offline
    skipped: list[str]
    delivered: bool | None = None  # None: nobody waited for it
    by: list[str] = []
    failure: str | None = None
    reply: ReplyView | None = None  # None: nobody waited for an answer, or none came in time


class Retried(Struct, rename={"message_id": "messageId"}):
    message_id: str  # of the new message
    to: str
    success: bool = True


class MessageSent(Struct, rename={"message_id": "messageId"}):
    message_id: str
    success: bool = True
