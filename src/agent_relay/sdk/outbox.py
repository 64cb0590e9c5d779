"""Messages on their way out: what is unanswered, what is not acknowledged yet, and what must be sent again.

A SEND is kept until the daemon has answered it. After a reconnect everything unanswered goes first, in its original
order and under its own ids, so the daemon knows what it has seen. A message that is stored is kept only as long as
somebody holds its receipt: sending it again makes the daemon repeat the acknowledgements that were lost on the way.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.framing import encode_frame
from agent_relay.protocol.payloads import NackPayload, ReceiptPayload, SyncRequest
from agent_relay.sdk.errors import ConnectionLost, read_error
from agent_relay.sdk.ids import wall_ms
from agent_relay.sdk.receipts import Receipt
from agent_relay.sdk.session import Session


class Window:
    """Room for `max_count` frames of `max_bytes` together; one frame larger than that may pass alone."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._count = 0
        self._bytes = 0
        self._waiters: deque[tuple[asyncio.Future[None], int]] = deque()

    async def enter(self, size: int) -> None:
        """Returns when there is room, and has taken it."""
        if not self._waiters and self._fits(size):
            self._take(size)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((waiter, size))
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.leave(size)  # the room was given to this one in the same moment
            elif (waiter, size) in self._waiters:
                self._waiters.remove((waiter, size))
                self._admit()
            raise

    def leave(self, size: int) -> None:
        self._count -= 1
        self._bytes -= size
        self._admit()

    def refuse(self, error: RelayError) -> None:
        """Everybody who waits for room is told that there will be none."""
        while self._waiters:
            waiter, _ = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(error)

    def _fits(self, size: int) -> bool:
        return self._count < self._max_count and (self._bytes + size <= self._max_bytes or not self._count)

    def _take(self, size: int) -> None:
        self._count += 1
        self._bytes += size

    def _admit(self) -> None:
        while self._waiters and self._fits(self._waiters[0][1]):
            waiter, size = self._waiters.popleft()
            if not waiter.done():
                self._take(size)
                waiter.set_result(None)


MAX_UNANSWERED = 1_000
MAX_UNANSWERED_BYTES = 64 * 1024 * 1024
# Sending a stored message again is only safe while the daemon remembers its id: 24 hours or 100,000 ids by default.
# Far below both, a lost acknowledgement is not asked for any more; the receipt then waits for a later one.
ASK_AGAIN_MS = 3_600_000
ASK_AGAIN_SENDS = 20_000
_ASK_LATER_MS = 1_000

_encode = msgspec.json.Encoder().encode


class SendPayload(Struct, omit_defaults=True):
    body: str
    kind: str = "message"
    thread: str | None = None
    data: Any = None


class SendMeta(Struct, omit_defaults=True):
    requires_ack: bool = False
    ttl_ms: int | None = None
    priority: int | None = None
    reply_to: str | None = None
    sync: SyncRequest | None = None
    heard: str | None = None


class SendFrame(Struct, omit_defaults=True, tag_field="type", tag="SEND"):
    v: int
    id: str
    ts: int
    payload: SendPayload
    to: str | Sequence[str] | None = None
    topic: str | None = None
    payload_meta: SendMeta | None = None


def encode_send(frame: SendFrame) -> bytes:
    try:
        return encode_frame(_encode(frame))
    except (TypeError, ValueError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        raise RelayError(ErrorCode.INVALID_FORMAT, f"The message cannot be written as JSON: {error}.", field="payload") from None


class Outbox:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._window = Window(MAX_UNANSWERED, MAX_UNANSWERED_BYTES)
        self._unanswered: dict[str, Receipt] = {}  # in the order of sending
        self._tracked: WeakValueDictionary[str, Receipt] = WeakValueDictionary()  # until their receipts are forgotten
        self._sends = 0
        self._empty = asyncio.Event()
        self._empty.set()

    # --- sending --------------------------------------------------------------------------------------------------

    async def submit(self, receipt: Receipt) -> None:
        """Waits until there is room, no longer."""
        frame = receipt.frame
        assert frame is not None
        self._session.check()
        self._session.check_size(frame)
        if receipt.id in self._unanswered:
            raise RelayError(ErrorCode.INVALID_FORMAT, "A message with this id is already being sent.", field="id")
        await self._window.enter(receipt.size_bytes)
        try:
            self._session.check()
        except RelayError:
            self._window.leave(receipt.size_bytes)
            raise
        self._sends += 1
        receipt.number, receipt.sent_at_ms = self._sends, wall_ms()
        self._unanswered[receipt.id] = receipt
        self._tracked[receipt.id] = receipt
        self._empty.clear()
        self._write(receipt, frame)

    def withdraw(self, receipt: Receipt) -> bool:
        """Takes a message back that was never on a wire; False: too late."""
        if receipt.written or self._unanswered.get(receipt.id) is not receipt:
            return False
        self._answered(receipt)
        receipt.take_refusal(ConnectionLost("The message was withdrawn before it was sent.", reason="withdrawn"))
        return True

    def ask_again(self, receipt: Receipt) -> None:
        """Has the acknowledgements of a stored message repeated that may have been lost with an earlier connection."""
        if receipt.frame is None or not receipt.accepted or receipt.asked_on == self._session.connections:
            return
        if wall_ms() - receipt.sent_at_ms < ASK_AGAIN_MS and self._sends - receipt.number < ASK_AGAIN_SENDS:
            self._write(receipt, receipt.frame)

    async def drain(self, within_s: float) -> None:
        """Waits until everything is answered, or no longer than `within_s` seconds."""
        if self._unanswered:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), within_s)

    def _write(self, receipt: Receipt, frame: bytes) -> None:
        if self._session.write(frame):
            receipt.written = True
            receipt.asked_on = self._session.connections

    # --- what the session and the daemon say ----------------------------------------------------------------------

    def on_ready(self) -> None:
        for receipt in list(self._unanswered.values()):
            assert receipt.frame is not None
            try:
                self._session.check_size(receipt.frame)  # a daemon that came back may have other limits
            except RelayError as error:
                self._answered(receipt)
                receipt.take_refusal(error)
            else:
                self._write(receipt, receipt.frame)
        for receipt in list(self._tracked.values()):
            if receipt.awaited:
                self.ask_again(receipt)

    def on_closed(self, error: RelayError | None) -> None:
        base = error or ConnectionLost("The client was closed.", reason="closed")
        self._window.refuse(base)
        for receipt in list(self._unanswered.values()):
            self._answered(receipt)
            fate = "may or may not have been stored" if receipt.written else "was not sent"
            lost = ConnectionLost(f"{base.message} The message {receipt.id} {fate}.", code=base.code)
            lost.details = dict(base.details)
            receipt.take_refusal(lost)
        for receipt in list(self._tracked.values()):
            receipt.take_failure(base)

    def on_receipt(self, said: ReceiptPayload) -> None:
        if said.stage == "stored":
            receipt = self._unanswered.get(said.ack_id)
            if receipt is not None:
                self._answered(receipt)
                receipt.take_stored(said)
        elif said.stage == "delivered":
            receipt = self._tracked.get(said.ack_id)
            if receipt is not None:
                receipt.take_delivered(said)

    def on_nack(self, said: NackPayload) -> None:
        error = read_error(said)
        if said.message_id is not None or said.correlationId is not None:  # it was stored; a recipient's fate
            receipt = self._tracked.get(said.nack_id)
            if receipt is not None:
                receipt.take_failure(error)
            return
        self.refuse(said.nack_id, error)

    def refuse(self, id_: str, error: RelayError) -> bool:
        """The daemon did not take the SEND with this id; False if there is none."""
        receipt = self._unanswered.get(id_)
        if receipt is not None:
            self._answered(receipt)
            receipt.take_refusal(error)
            return True
        receipt = self._tracked.get(id_)
        if receipt is not None and error.code.retryable:  # only the question was refused: the message is stored
            receipt.asked_on = 0
            delay_s = (error.retry_after_ms or _ASK_LATER_MS) / 1000
            asyncio.get_running_loop().call_later(delay_s, self.ask_again, receipt)
        return receipt is not None

    def _answered(self, receipt: Receipt) -> None:
        del self._unanswered[receipt.id]
        self._window.leave(receipt.size_bytes)
        if not self._unanswered:
            self._empty.set()
