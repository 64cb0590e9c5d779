"""A whole database from one host to another, for one that is new or has been away for longer than the log remembers.

The one that needs it asks the host that has the seat, over `relay.P.ask.<host>.copy`: first for an offer, which takes a while to
prepare, then for one piece after the other. A question without an answer is asked again. Whatever goes wrong, everything begins
anew with the next offer: half a copy is never used.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import msgspec
from msgspec import Struct

from agent_relay.cluster.jetstream import Names
from agent_relay.ports.cluster import Wire, WireMessage
from agent_relay.ports.log import Log

PIECE_BYTES = 256 * 1024  # a server takes at least a mebibyte
_PIECES_AT_ONCE = 8  # between two ticks of 50 ms, 40 MiB/s: the seat has other work to do
_LARGEST_BYTES = 256 * 1024**3
_ASK_AGAIN_MS = 500
_BEGIN_AGAIN_MS = 5_000  # after a failure that may last
_UNANSWERED = 20  # questions in a row: then whoever has the seat by now is asked
_IDLE_MS = 120_000  # a copy that nobody asks for any more is removed
_NOTED_EVERY = 10  # parts of the whole
_PIECE = b"P"


class OfferState(StrEnum):
    PREPARING = "preparing"
    READY = "ready"
    REFUSED = "refused"


class Offer(Struct, frozen=True):
    state: OfferState
    copy: str = ""  # its name
    size: int = 0  # compressed
    raw_bytes: int = 0
    sha256: str = ""
    position: int = 0
    why: str = ""


class CopyRequest(Struct, frozen=True):
    copy: str = ""  # "": an offer is asked for
    offset: int = 0
    needed: int = 0  # the least position that helps


class CopySource(Protocol):
    """The database of this host. Nothing waits: answers come as calls, from the loop."""

    def prepare(self, done: Callable[[Offer], None]) -> None: ...

    def read(self, offset: int, length: int) -> bytes: ...

    def remove(self) -> None: ...


class CopyGiver:
    """Prepares one copy at a time, for whoever asks while it is there."""

    def __init__(self, wire: Wire, names: Names, host: str, source: CopySource, log: Log, now: int) -> None:
        self._wire = wire
        self._source = source
        self._log = log
        self._now = now
        self._asked_at = now
        self._offer: Offer | None = None
        self._renewed_at = 0  # from when on another is made, if this one does not help
        wire.subscribe(names.ask_copy(host), self._heard)

    def clock_says(self, now: int) -> None:
        self._now = now
        if self._offer is not None and self._offer.state is OfferState.READY and now - self._asked_at >= _IDLE_MS:
            self.forget()

    def forget(self) -> None:
        """Removes what is prepared: whoever is in the middle of it begins anew."""
        if self._offer is not None and self._offer.state is OfferState.READY:
            self._offer = None
            self._source.remove()

    def _heard(self, message: WireMessage) -> None:
        try:
            request = msgspec.json.decode(message.payload, type=CopyRequest)
        except msgspec.MsgspecError:
            return
        if not message.reply:
            return
        self._asked_at = self._now
        if not request.copy:
            self._wire.publish(message.reply, msgspec.json.encode(self._make_offer(request.needed)))
        elif self._offer is not None and request.copy == self._offer.copy and 0 <= request.offset < self._offer.size:
            self._wire.publish(message.reply, _PIECE + self._source.read(request.offset, PIECE_BYTES))
        else:
            self._wire.publish(
                message.reply, msgspec.json.encode(Offer(OfferState.REFUSED, why="there is no such copy any more"))
            )

    def _make_offer(self, needed: int) -> Offer:
        """One that was refused, or is too old for whoever asks, is made again after a moment."""
        is_old = self._now >= self._renewed_at
        if self._offer is not None and self._offer.position < needed and is_old:
            self.forget()
        if self._offer is None or (self._offer.state is OfferState.REFUSED and is_old):
            self._offer = Offer(OfferState.PREPARING)
            self._source.prepare(self._prepared)
        return self._offer

    def _prepared(self, offer: Offer) -> None:
        self._log.note(
            "cluster_copy_prepared", state=offer.state.value, size_bytes=offer.size, position=offer.position, why=offer.why
        )
        self._offer = offer
        self._renewed_at = self._now + _BEGIN_AGAIN_MS


class CopySink(Protocol):
    """The place the pieces go to. Each call may raise `SinkFailed`."""

    def begin(self, offer: Offer) -> None: ...

    def write(self, piece: bytes) -> None: ...

    def finish(self, done: Callable[[str], None]) -> None:
        """Checks it in the background; `done` hears "" or what is wrong with it."""
        ...

    def discard(self) -> None: ...


class SinkFailed(Exception):  # noqa: N818 - named by the condition
    """This host cannot take the copy; the text says why."""


class CopyTaker:
    """`find_holder` names the host to ask, or ""; `arrived` is called once a whole copy is there."""

    def __init__(
        self, wire: Wire, names: Names, sink: CopySink, find_holder: Callable[[], str], arrived: Callable[[], None], log: Log,
        now: int,
    ) -> None:  # fmt: skip
        self._wire = wire
        self._names = names
        self._sink = sink
        self._find_holder = find_holder
        self._arrived = arrived
        self._log = log
        self._now = now
        self._host = ""
        self._offer: Offer | None = None
        self._offset = 0
        self._burst = 0  # pieces since the last tick
        self._unanswered = 0
        self._needed = 0  # the least position that helps
        self._turn = 0  # answers to questions of an earlier attempt are not ours
        self._again_at: int | None = None
        self.is_taking = False
        self.trouble = ""

    @property
    def progress(self) -> str:
        """The work under way, for whoever looks; "" for nothing."""
        if not self.is_taking:
            return ""
        if self._offer is None:
            return f"It waits for a copy of the database of {f'host {self._host}' if self._host else 'a host that has the seat'}."
        done = self._offset * 100 // max(self._offer.size, 1)
        return f"It copies the database of host {self._host}: {done} % of {self._offer.size / 1e6:,.1f} MB."

    def begin(self, needed: int) -> None:
        """A copy that reaches at least to that position; nothing if one is under way."""
        if not self.is_taking:
            self.is_taking = True
            self._needed = needed
            self._ask_offer()

    def stop(self) -> None:
        if self.is_taking:
            self.is_taking = False
            self._turn += 1
            self._again_at = None
            self._sink.discard()

    def clock_says(self, now: int) -> None:
        self._now = now
        self._burst = 0
        if self.is_taking and self._again_at is not None and now >= self._again_at:
            self._again_at = None
            if self._offer is None:
                self._ask_offer()
            else:
                self._ask_piece()

    # --- the offer ------------------------------------------------------------------------------------------------------

    def _ask_offer(self) -> None:
        self._host = self._find_holder()
        if not self._host:
            self._again_at = self._now + _ASK_AGAIN_MS
            return
        turn = self._turn
        self._wire.ask(
            self._names.ask_copy(self._host),
            msgspec.json.encode(CopyRequest(needed=self._needed)),
            lambda message: self._offered(message) if turn == self._turn else None,
        )

    def _offered(self, message: WireMessage | None) -> None:
        offer = _read_offer(message)
        if offer is None or offer.state is OfferState.PREPARING:
            self._again_at = self._now + _ASK_AGAIN_MS
        elif offer.state is OfferState.REFUSED:
            self._fail(f"host {self._host} gives none: {offer.why}")
        elif offer.position < self._needed:
            self._fail(f"the copy of host {self._host} ends at record {offer.position:,}, and {self._needed:,} are needed")
        elif not 0 < offer.size <= _LARGEST_BYTES or not 0 < offer.raw_bytes <= _LARGEST_BYTES:
            self._fail(f"the copy of host {self._host} is too large")
        else:
            self._start(offer)

    def _start(self, offer: Offer) -> None:
        try:
            self._sink.begin(offer)
        except SinkFailed as error:
            self._fail(str(error))
            return
        self._log.note("cluster_copy_begun", host=self._host, size_bytes=offer.size, position=offer.position)
        self._offer, self._offset, self._unanswered = offer, 0, 0
        self._ask_piece()

    # --- the pieces -----------------------------------------------------------------------------------------------------

    def _ask_piece(self) -> None:
        assert self._offer is not None
        turn = self._turn
        self._wire.ask(
            self._names.ask_copy(self._host),
            msgspec.json.encode(CopyRequest(self._offer.copy, self._offset)),
            lambda message: self._given(message) if turn == self._turn else None,
        )

    def _given(self, message: WireMessage | None) -> None:
        assert self._offer is not None
        if message is None or message.status:
            self._unanswered += 1
            if self._unanswered >= _UNANSWERED:
                self._fail(f"host {self._host} does not answer")
            else:
                self._again_at = self._now + (0 if message is None else _ASK_AGAIN_MS)
            return
        self._unanswered = 0
        piece = message.payload[1:]
        if message.payload[:1] != _PIECE or not piece or len(piece) > min(PIECE_BYTES, self._offer.size - self._offset):
            refusal = _read_offer(message)
            self._fail(f"host {self._host} stopped giving it: {refusal.why if refusal is not None else 'an invalid piece'}")
            return
        try:
            self._sink.write(piece)
        except SinkFailed as error:
            self._fail(str(error))
            return
        before, self._offset = self._offset, self._offset + len(piece)
        if self._offset == self._offer.size:
            self._finish()
            return
        if before * _NOTED_EVERY // self._offer.size != self._offset * _NOTED_EVERY // self._offer.size:
            self._log.note("cluster_copy_progress", host=self._host, done_bytes=self._offset, size_bytes=self._offer.size)
        self._burst += 1
        if self._burst < _PIECES_AT_ONCE:
            self._ask_piece()
        else:
            self._again_at = self._now

    def _finish(self) -> None:
        turn = self._turn

        def checked(trouble: str) -> None:
            if turn != self._turn:
                return
            if trouble:
                self._fail(trouble)
                return
            self._log.note("cluster_copy_arrived", host=self._host)
            self._turn += 1
            self.is_taking, self._offer, self.trouble = False, None, ""
            self._arrived()

        self._sink.finish(checked)

    def _fail(self, why: str) -> None:
        self._turn += 1
        self._offer = None
        self._sink.discard()
        text = f"This host needs a copy of another host's database, and {why}."
        if text != self.trouble:
            self.trouble = text
            self._log.note("cluster_copy_failed", why=why)
        self._again_at = self._now + _BEGIN_AGAIN_MS


def _read_offer(message: WireMessage | None) -> Offer | None:
    if message is None or message.status:
        return None
    try:
        return msgspec.json.decode(message.payload, type=Offer)
    except msgspec.MsgspecError:
        return None
