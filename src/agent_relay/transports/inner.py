"""A client of the relay that lives in the daemon's own process: the same frames as over a socket, without the socket.

What serves people over HTTP speaks to the core through this. So it can do what a client can do and nothing else, is checked
as one, and gets the same answers. Answers are matched to questions by the id the question had.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.relay import PeerHandle
from agent_relay.protocol import envelope as e
from agent_relay.protocol.decode import decode_daemon_frame
from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.errors import ErrorCode, RelayError, parse_error
from agent_relay.protocol.framing import HEADER_BYTES
from agent_relay.protocol.payloads import ByePayload
from agent_relay.protocol.states import CloseReason
from agent_relay.transports.pump import Pump

_DOOR = "http"  # messages to us can be read over HTTP from the moment they are acknowledged
_OWN_WINDOW = 64

log = logging.getLogger(__name__)


class InnerClient:
    """Implements `ports.Connection`. Opened by the first question, and again by the next one after it was closed."""

    def __init__(
        self, pump: Pump, uid: int, name: str, *, observer: bool, wall_ms: Callable[[], int], owner_token: str | None = None,
        superseded: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.is_full = False
        self.notify_drained = False
        self._pump = pump
        self._uid = uid
        self._observer = observer
        self._wall_ms = wall_ms
        self._owner_token = owner_token  # what our name is ours by
        self._superseded = superseded  # called when somebody took the name; without, nobody can
        self._peer: PeerHandle | None = None
        self._opening: asyncio.Task[None] | None = None
        self._count = 0
        self._waiting: dict[str, asyncio.Queue[e.DaemonFrame]] = {}
        self._caller = OWNER  # for whom we speak right now

    # --- asking ---------------------------------------------------------------------------------------------------------

    async def ask(self, kind: str, payload: Any, caller: Caller = OWNER, **fields: Any) -> e.DaemonFrame:
        """The answer; raises the RelayError that came in its place. `caller`: whose wish it is."""
        async with Answers(self) as answers:
            await self.open()
            self._caller = caller
            try:
                self._say(kind, payload, answers.id, **fields)
            finally:
                self._caller = OWNER
            return await answers.next()

    def follow(self, id_: str | None = None) -> Answers:
        """For a question with several answers: an id to tell it under, and what comes back for that id. One that is given has no
        space, and is nobody else's meanwhile."""
        return Answers(self, id_)

    async def tell(self, kind: str, payload: Any, id_: str, **fields: Any) -> None:
        await self.open()
        self._say(kind, payload, id_, **fields)

    def say_unheard(self, kind: str, payload: Any) -> None:
        """Without waiting, and without an answer; not at all where we are not connected."""
        if self._peer is not None and self._opening is None:
            self._say(kind, payload, self.next_id())

    async def open(self) -> None:
        while self._peer is None or self._opening is not None:
            if self._opening is None:
                self._opening = asyncio.create_task(self._greet())
            await asyncio.shield(self._opening)

    async def _greet(self) -> None:
        try:
            self._pump.begin_turn()
            self._peer = self._pump.relay.accepted(self, self._uid)
            payload: dict[str, Any] = {
                "agent": self.name, "cli": "http", "version": 2,
                "capabilities": {"ack": True, "max_inflight": _OWN_WINDOW}, "session": {"owner_token": self._owner_token},
            }  # fmt: skip
            if self._observer:
                payload["mode"] = "observer"
            elif self._superseded is not None:
                payload["meta"] = {"transient": True}
            async with Answers(self) as answers:
                self._say("HELLO", payload, answers.id)
                await answers.next()
        finally:
            self._opening = None

    def _say(self, kind: str, payload: Any, id_: str, **fields: Any) -> None:
        peer = self._peer
        if peer is None:
            raise _gone()
        frame = encode_envelope(kind, id_, self._wall_ms(), payload, **fields)
        self._pump.begin_turn()
        try:
            self._pump.relay.received(peer, [frame[HEADER_BYTES:]])
        except Exception:
            log.exception("internal_error")
            self._pump.relay.crashed(peer)
            raise RelayError(ErrorCode.INTERNAL_ERROR) from None

    def leave(self) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            self._pump.begin_turn()
            self._pump.relay.disconnected(peer, CloseReason.CLIENT_BYE)
        self.close(CloseReason.CLIENT_BYE)

    # --- from the relay -------------------------------------------------------------------------------------------------

    @property
    def yields(self) -> bool:
        """Not while somebody waits for what becomes of a message."""
        return self._superseded is not None and not self._waiting

    def caller(self) -> Caller:
        return self._caller

    def runs(self, agent: str, pid: int | None) -> None:
        """Nothing is wrapped here."""

    def send(self, frame: bytes) -> None:
        """The relay is in the middle of its turn: what has to be answered is answered in another."""
        found = decode_daemon_frame(frame[HEADER_BYTES:])
        match found:
            case e.Ping():
                self._answer_later("PONG", {"nonce": found.payload.nonce})
            case e.Deliver():
                self._answer_later("ACK", {"ack_id": found.id, "seq": found.delivery.seq, "door": _DOOR})
            case _:
                waiting = self._waiting.get(_question_of(found) or "")
                if waiting is not None:
                    waiting.put_nowait(found)

    def send_all(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.send(frame)

    def close(self, reason: CloseReason) -> None:
        self._peer = None
        if reason is CloseReason.SUPERSEDED and self._superseded is not None:
            asyncio.get_running_loop().call_soon(self._superseded)
        for waiting in self._waiting.values():
            waiting.put_nowait(_GONE)

    def _answer_later(self, kind: str, payload: Any) -> None:
        peer = self._peer

        def answer() -> None:
            if self._peer is not None and self._peer is peer:
                self._say(kind, payload, self.next_id())

        asyncio.get_running_loop().call_soon(answer)

    # --- ids ------------------------------------------------------------------------------------------------------------

    def next_id(self) -> str:
        self._count += 1
        """Never again the same, over restarts too, since SENDs are known by it; and none that a client can give."""
        return f"i {self._wall_ms():x} {self._count:x}"

    def begin(self, id_: str) -> asyncio.Queue[e.DaemonFrame]:
        queue = self._waiting[id_] = asyncio.Queue()
        return queue

    def forget(self, id_: str) -> None:
        self._waiting.pop(id_, None)


class Answers:
    """What the relay says about one question, in order."""

    def __init__(self, client: InnerClient, id_: str | None = None) -> None:
        self._client = client
        self.id = id_ or client.next_id()
        self._queue = client.begin(self.id)

    async def __aenter__(self) -> Answers:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._client.forget(self.id)

    async def next(self) -> e.DaemonFrame:
        return read_answer(await self._queue.get())


def read_answer(frame: e.DaemonFrame) -> e.DaemonFrame:
    """Raises the RelayError that the frame is."""
    if isinstance(frame, e.Error | e.Nack):
        said = frame.payload
        raise parse_error(said.code, said.message, retry_after_ms=said.retry_after_ms, details=said.details)
    if frame is _GONE:
        raise _gone()
    return frame


def _question_of(frame: e.DaemonFrame) -> str | None:
    payload: Any = frame.payload
    for name in ("ack_id", "nack_id", "reply_to"):
        found = getattr(payload, name, None)
        if found is not None:
            return str(found)
    return None


def _gone() -> RelayError:
    return RelayError(ErrorCode.SERVICE_UNAVAILABLE, "The daemon is stopping.", retry_after_ms=1_000)


_GONE = e.Bye(v=2, id="bye", ts=0, payload=ByePayload())
