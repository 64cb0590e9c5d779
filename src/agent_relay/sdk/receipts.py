"""Receipts: a message was accepted, then acknowledged by each of its recipients."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.payloads import ReceiptPayload
from agent_relay.sdk.errors import TimedOut
from agent_relay.sdk.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Generator

    from agent_relay.sdk.outbox import Outbox


@dataclass(frozen=True, slots=True)
class Delivered:
    """One recipient's acknowledgement."""

    by: str
    seq: int | None
    response: Any = None
    data: Any = None
    response_message_id: str | None = None
    door: str | None = None  # the way it went into the recipient's program, where that was said
    evidence: str | None = None  # what was seen of that


class Receipt:
    """The fields below `id` are known once the message is stored: after `send`, or after `await receipt`."""

    __slots__ = (
        "__weakref__", "_acknowledged", "_delivered", "_outbox", "_stored", "asked_on", "duplicate", "frame", "held_ms",
        "id", "message_id", "number", "queued", "recipients", "requires_ack", "sent_at_ms", "size_bytes", "skipped", "written",
    )  # fmt: skip

    def __init__(self, outbox: Outbox, id_: str, frame: bytes, *, requires_ack: bool) -> None:
        self.id = id_  # our own id of the SEND: the same id sent again is the same message
        self.message_id = ""  # the relay's id, which history and replies use
        self.recipients = 0
        self.queued = 0  # how many of them were offline
        self.skipped: list[str] = []  # recipients of a broadcast whose queue was full
        self.duplicate = False  # True: the daemon had this id already, and nothing was sent twice
        self.held_ms = 0  # how long it waited here, because a recipient was busy
        self.requires_ack = requires_ack
        self.frame: bytes | None = frame  # kept as long as it may have to be sent again
        self.size_bytes = len(frame)
        self.number = 0  # how many were sent before it, and when it was: the daemon remembers an id for a while only
        self.sent_at_ms = 0
        self.written = False  # it was on a wire at least once
        self.asked_on = 0  # the number of the connection it was last sent on
        self._outbox = outbox
        self._stored: Outcome[None] = Outcome()
        self._delivered: Outcome[list[Delivered]] = Outcome()
        self._acknowledged: dict[str, Delivered] = {}

    def __await__(self) -> Generator[Any, None, Receipt]:
        return self.stored().__await__()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message_id or self.id}, recipients={self.recipients}, queued={self.queued})"

    async def stored(self) -> Receipt:
        """Returns when the message is durable; raises the RelayError it was refused with."""
        await self._stored.wait()
        return self

    async def delivered(self, timeout: float | None = None) -> list[Delivered]:  # noqa: ASYNC109
        """Returns when every recipient has acknowledged, in the order they did.

        Raises the RelayError of the first one that refused (REJECTED) or whose time ran out (DELIVERY_TIMEOUT), and
        TimedOut after `timeout` seconds: this does not withdraw the message, and you can wait again.
        """
        if not self.requires_ack:
            raise RelayError(
                ErrorCode.INVALID_FORMAT, "The message was sent with requires_ack=False, so its delivery is not reported."
            )
        try:
            async with asyncio.timeout(timeout):
                await self._stored.wait()
                self._outbox.ask_again(self)
                return await self._delivered.wait()
        except TimeoutError as error:
            if isinstance(error, RelayError):
                raise
            missing = self.recipients - len(self._acknowledged)
            late = TimedOut(f"{missing} of {self.recipients} recipients have not acknowledged within {timeout:g} s.")
            late.details["message_id"] = self.message_id
            raise late from None

    # --- for the outbox -------------------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Nothing more can be learnt about it."""
        return self._stored.error is not None or (self._stored.done and (not self.requires_ack or self._delivered.done))

    @property
    def accepted(self) -> bool:
        return self._stored.done and self._stored.error is None

    @property
    def awaited(self) -> bool:
        return self._delivered.awaited

    def take_stored(self, said: ReceiptPayload) -> None:
        self.message_id = said.message_id or ""
        self.recipients = said.recipients or 0
        self.queued = said.queued or 0
        self.skipped = said.skipped
        self.duplicate = said.duplicate
        self._stored.resolve(None)
        self._check_complete()

    def take_delivered(self, said: ReceiptPayload) -> None:
        by = said.by or ""
        one = Delivered(
            by, said.seq, said.response, said.responseData, said.response_message_id, said.door, said.evidence
        )  # fmt: skip
        self._acknowledged.setdefault(by, one)
        self._check_complete()

    def take_refusal(self, error: RelayError) -> None:
        """Nothing of it was stored."""
        self._stored.fail(error)
        self._delivered.fail(error)
        self.frame = None

    def take_failure(self, error: RelayError) -> None:
        """It was stored, and one recipient will not get it or does not want it."""
        self._delivered.fail(error)
        self._drop_frame()

    def _check_complete(self) -> None:
        if self._stored.done and len(self._acknowledged) >= self.recipients:
            self._delivered.resolve(list(self._acknowledged.values()))
        self._drop_frame()

    def _drop_frame(self) -> None:
        if self.settled:
            self.frame = None
