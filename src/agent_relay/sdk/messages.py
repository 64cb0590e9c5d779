"""A message as its recipient sees it."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from agent_relay.protocol.decode import decode_meta
from agent_relay.protocol.envelope import Deliver
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.payloads import SendMeta

if TYPE_CHECKING:
    from agent_relay.sdk.inbox import Inbox
    from agent_relay.sdk.receipts import Receipt


class _Payload(Struct):
    body: str
    kind: str = "message"
    thread: str | None = None
    data: Any = None


_decode_payload = msgspec.json.Decoder(_Payload).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class Incoming:
    """The content of a message. `Message` and its blocking twin add what can be done with it."""

    __slots__ = (
        "_raw_payload",
        "at_leisure",
        "attempt",
        "body",
        "data",
        "delivery_id",
        "from_",
        "id",
        "is_copy",
        "kind",
        "meta",
        "prev_seq",
        "queued_ms",
        "seq",
        "shadows",
        "thread",
        "to",
        "topic",
        "ts",
    )  # fmt: skip

    def __init__(self, frame: Deliver) -> None:
        """Raises msgspec.ValidationError or RelayError for a payload that is none."""
        payload = _decode_payload(frame.payload)
        delivery = frame.delivery
        self._raw_payload = frame.payload
        self.id = delivery.message_id
        self.delivery_id = frame.id  # the same on every attempt
        self.from_ = frame.from_ or ""
        self.to = frame.to
        self.topic = frame.topic
        self.ts = frame.ts
        self.body = payload.body
        self.kind = payload.kind
        self.thread = payload.thread
        self.data = payload.data
        self.seq = delivery.seq  # counts up by one per (topic, sender → recipient)
        self.prev_seq = delivery.prev_seq  # set after messages that expired: the number before this one
        self.attempt = delivery.attempt
        self.queued_ms = delivery.queued_ms
        self.shadows = frame.shadows  # who gets a copy
        self.at_leisure = delivery.at_leisure  # of a channel that this agent reads at leisure, and no mention of it
        self.is_copy = delivery.copy  # this agent is a shadow: the message is for `to`, and nobody waits for an answer from here
        self.meta: SendMeta = decode_meta(frame.payload_meta)

    @property
    def message_id(self) -> str:
        return self.id

    @property
    def payload(self) -> dict[str, Any]:
        """Everything the sender put into the payload, also what has no attribute of its own."""
        return _decode_object(self._raw_payload)

    @property
    def reply_to(self) -> str | None:
        return self.meta.reply_to

    @property
    def correlation_id(self) -> str | None:
        """Set when the sender waits for an answer."""
        return self.meta.sync.correlationId if self.meta.sync is not None and not self.is_copy else None

    @property
    def requires_ack(self) -> bool:
        return self.meta.requires_ack and not self.is_copy

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id}, from={self.from_}, kind={self.kind}, seq={self.seq}, attempt={self.attempt})"


class Message(Incoming):
    """Answered by `ack()`, `nack()` or `reply()`, or by a block:

        async with message:
            ...  # acknowledged at the end; put back, first in line, where the block raises

    Until then the relay keeps it, and delivers it again when this process dies.
    """

    __slots__ = ("_inbox", "handed", "is_back", "order")

    def __init__(self, frame: Deliver, inbox: Inbox, order: int) -> None:
        super().__init__(frame)
        self._inbox = inbox
        self.order = order  # of arrival, so that a message that is put back finds its place
        self.handed = 0  # how many times it was handed out
        self.is_back = False  # it was, and lies in the queue again

    async def __aenter__(self) -> Message:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self._inbox.ack(self)
        else:
            self._inbox.release(self)

    async def ack(
        self, response: Any = None, response_data: Any = None, *, door: str | None = None, evidence: str | None = None
    ) -> None:
        """Marks the message as handled; it is not delivered again. A second call does nothing.

        With a response this is the answer to a sender who waits for one (`correlation_id`); without, the sender goes on
        waiting, for a reply. `door` is the way it went into a program (at most 64 characters), `evidence` what was seen of
        that (200), which is ignored without one; the sender's receipt and `explain` show both.
        """
        self._inbox.ack(self, response, response_data, door, evidence)

    async def nack(
        self, code: ErrorCode = ErrorCode.REJECTED, message: str | None = None, retry_after_ms: int | None = None
    ) -> None:
        """REJECTED: the sender is told and it does not come again. AGENT_BUSY: it comes again after `retry_after_ms`."""
        self._inbox.nack(self, code, message, retry_after_ms)

    async def reply(self, body: str, *, data: dict[str, Any] | None = None, kind: str = "message", ack: bool = True) -> Receipt:
        """Sends an answer to the sender, in the same thread, and then acknowledges.

        The answer's id follows from this message's: if the process dies between the two, the message comes again, and
        whatever is replied then is the same reply to the daemon. With ack=False there may be many replies.
        """
        return await self._inbox.reply(self, body, data, kind, ack=ack)
