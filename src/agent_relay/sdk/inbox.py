"""Messages on their way in: each is handed out once, and acknowledged when its handler says so.

The daemon delivers at least once; this module makes that exactly once for as long as the client lives. A delivery that
is waiting or being handled is not handed out again, and one that was answered gets the same answer again.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.envelope import Deliver
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.framing import encode_frame
from agent_relay.protocol.names import fold_name, pattern_matches
from agent_relay.protocol.payloads import MAX_DOOR, MAX_EVIDENCE
from agent_relay.sdk.ids import wall_ms
from agent_relay.sdk.messages import Message
from agent_relay.sdk.queue import MessageQueue
from agent_relay.sdk.receipts import Receipt
from agent_relay.sdk.requests import Questions
from agent_relay.sdk.session import Session

REMEMBERED_DELIVERIES = 10_000  # far more than can be on the wire (max_inflight), so a late redelivery is still known
REMEMBERED_ANSWERS = 512  # answers with content are kept whole; beyond the wire's 256 no delivery waits for one

_log = logging.getLogger("agent_relay.sdk")
_encode = msgspec.json.Encoder().encode

ReplySender = Callable[[Message, str | None, str, dict[str, Any] | None, str], Awaitable[Receipt]]


class AckPayload(Struct, omit_defaults=True):
    ack_id: str
    seq: int
    correlationId: str | UnsetType = UNSET
    response: Any = UNSET
    responseData: Any = UNSET
    door: str | UnsetType = UNSET
    evidence: str | UnsetType = UNSET


class AckFrame(Struct, tag_field="type", tag="ACK"):
    v: int
    id: str
    ts: int
    payload: AckPayload


class Inbox:
    def __init__(self, session: Session, send_reply: ReplySender) -> None:
        self.queue = MessageQueue()  # what `messages()` and `receive()` read
        self.questions = Questions(self._take_early)
        self._feeds: list[tuple[str, MessageQueue]] = []
        self._session = session
        self._send_reply = send_reply
        self._open: dict[str, Message] = {}  # waiting or being handled, by delivery id
        self._done: OrderedDict[str, int] = OrderedDict()  # answered, with their sequence numbers
        self._answers: OrderedDict[str, bytes] = OrderedDict()  # what was answered, where it was more than "got it"
        self._arrived = 0
        self._closed = False
        self._discarded: set[str] = set()  # senders whose messages nobody reads

    # --- what the session says ------------------------------------------------------------------------------------

    def on_deliver(self, frame: Deliver) -> None:
        delivery_id = frame.id
        if delivery_id in self._done:
            self._session.write(self._answers.get(delivery_id) or self._plain_ack(delivery_id, frame.delivery.seq))
            return
        waiting = self._open.get(delivery_id)
        if waiting is not None:
            waiting.attempt = frame.delivery.attempt
            return
        self._arrived += 1
        try:
            message = Message(frame, self, self._arrived)
        except (msgspec.MsgspecError, RelayError):
            _log.warning("refused a delivery whose payload cannot be read: %s", delivery_id)
            self._settle(
                delivery_id, frame.delivery.seq, self._encode_nack(delivery_id, ErrorCode.REJECTED, "unreadable payload")
            )
            return
        self._open[delivery_id] = message
        if self.questions.take_reply(message) or (self._discarded and fold_name(message.from_) in self._discarded):
            self.ack(message)
        else:
            self._queue_of(message).put(message)

    def on_closed(self, error: RelayError | None) -> None:
        self._closed = True
        for queue in [self.queue, *(queue for _, queue in self._feeds)]:
            queue.close(error)

    # --- what handlers say ----------------------------------------------------------------------------------------

    def ack(
        self,
        message: Message,
        response: Any = None,
        response_data: Any = None,
        door: str | None = None,
        evidence: str | None = None,
    ) -> None:
        if message.delivery_id not in self._open:
            return  # answered already
        if response is None and response_data is None and door is None:
            self._take_out(message)
            self._settle(message.delivery_id, message.seq, None)
            return
        payload = AckPayload(message.delivery_id, message.seq)
        if message.correlation_id is not None and (response is not None or response_data is not None):
            payload.correlationId = message.correlation_id
        if response is not None:
            payload.response = response
        if response_data is not None:
            payload.responseData = response_data
        if door is not None:
            payload.door = _within(door, MAX_DOOR, "door")
            if evidence is not None:
                payload.evidence = _within(evidence, MAX_EVIDENCE, "evidence")
        try:
            frame = encode_frame(_encode(AckFrame(2, self._session.ids.next("a_"), wall_ms(), payload)))
        except (TypeError, ValueError, RecursionError) as error:
            raise RelayError(ErrorCode.INVALID_FORMAT, f"The response cannot be written as JSON: {error}.") from None
        self._session.check_size(frame)
        self._take_out(message)
        self._settle(message.delivery_id, message.seq, frame)

    def nack(self, message: Message, code: ErrorCode, text: str | None, retry_after_ms: int | None) -> None:
        if message.delivery_id not in self._open:
            return
        self._take_out(message)
        frame = self._encode_nack(message.delivery_id, code, text, retry_after_ms)
        if code is ErrorCode.AGENT_BUSY:
            del self._open[message.delivery_id]  # it comes again, and is then handed out again
            self._session.write(frame)
        else:
            self._settle(message.delivery_id, message.seq, frame)

    async def reply(self, message: Message, body: str, data: dict[str, Any] | None, kind: str, *, ack: bool) -> Receipt:
        last = ack and message.delivery_id in self._open
        receipt = await self._send_reply(message, f"re_{message.delivery_id}" if last else None, body, data, kind)
        if ack:
            self.ack(message)
        return receipt

    def release(self, message: Message) -> None:
        """Its handler left without an answer: it is the next one to be handed out."""
        if message.delivery_id in self._open and not message.is_back and not self._closed:
            self._queue_of(message).put_back(message)

    def discard_from(self, sender: str) -> None:
        """Acknowledges what waits from this sender, and what still comes; nobody is handed it."""
        self._discarded.add(fold_name(sender))
        for queue in [self.queue, *(queue for _, queue in self._feeds)]:
            for message in queue.take_from(sender):
                message.is_back = False
                self.ack(message)

    def _take_out(self, message: Message) -> None:
        """Whoever answers it after it was put back has dealt with it."""
        if message.is_back:
            self._queue_of(message).discard(message)

    # --- feeds ----------------------------------------------------------------------------------------------------

    def open_feed(self, pattern: str) -> MessageQueue:
        """From now on messages of matching topics go there; where several match, to the one opened first."""
        queue = MessageQueue()
        self._feeds.append((pattern, queue))
        return queue

    def close_feed(self, pattern: str, queue: MessageQueue) -> bool:
        """Gives what was not read to the others who read; True if nobody listens to this pattern any more."""
        self._feeds.remove((pattern, queue))
        for message in queue.take_all():
            self._queue_of(message).put(message)
        queue.close(None)
        return all(other != pattern for other, _ in self._feeds)

    def _queue_of(self, message: Message) -> MessageQueue:
        if message.topic:
            for pattern, queue in self._feeds:
                if pattern_matches(pattern, message.topic):
                    return queue
        return self.queue

    def _take_early(self, message_id: str) -> Message | None:
        message = self.queue.take_reply(message_id)
        if message is not None:
            self.ack(message)
        return message

    # --- answers --------------------------------------------------------------------------------------------------

    def _settle(self, delivery_id: str, seq: int, answer: bytes | None) -> None:
        self._open.pop(delivery_id, None)
        self._done[delivery_id] = seq
        if len(self._done) > REMEMBERED_DELIVERIES:
            self._done.popitem(last=False)
        if answer is not None:
            self._answers[delivery_id] = answer
            if len(self._answers) > REMEMBERED_ANSWERS:
                self._answers.popitem(last=False)
        self._session.write(answer or self._plain_ack(delivery_id, seq))

    def _plain_ack(self, delivery_id: str, seq: int) -> bytes:
        return encode_frame(_encode(AckFrame(2, self._session.ids.next("a_"), wall_ms(), AckPayload(delivery_id, seq))))

    def _encode_nack(self, delivery_id: str, code: ErrorCode, text: str | None, retry_after_ms: int | None = None) -> bytes:
        payload: dict[str, Any] = {"nack_id": delivery_id, "code": code.value}
        if text is not None:
            payload["message"] = text
        if retry_after_ms is not None:
            payload["retry_after_ms"] = retry_after_ms
        return encode_envelope("NACK", self._session.ids.next("n_"), wall_ms(), payload)


def _within(text: object, most: int, field: str) -> str:
    """Raises for what the daemon would refuse: the message would come again, and be answered in the same way again."""
    if not isinstance(text, str) or len(text) > most:
        raise RelayError(ErrorCode.INVALID_FORMAT, f"`{field}` must be a text of at most {most} characters.", field=field)
    return text
