"""A client in the daemon's own process. It is heard and answered as any other, but in structs: nothing becomes a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from agent_relay.core.context import Context
from agent_relay.core.frame_dispatch import stopping_error
from agent_relay.core.peer import Peer
from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.store import MessageRow
from agent_relay.protocol.errors import RelayError, parse_error
from agent_relay.protocol.states import CloseReason

# What the relay says: the payload of an answer, the message that a repeated SEND became before, or what went wrong.
Said: TypeAlias = dict[str, Any] | MessageRow | RelayError
Hear: TypeAlias = Callable[[Said], None]


class InsidePeer(Peer):
    """Implements `ports.Connection`: it is its own. `delivered` is called in the middle of a turn, when messages are on the wire
    to it; `ended` when the relay has closed it."""

    is_full = False
    notify_drained = False

    def __init__(
        self, context: Context, uid: int, delivered: Callable[[], None] | None = None,
        ended: Callable[[CloseReason], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(context, self, uid)
        self.speaks_for = OWNER  # right now
        self._delivered = delivered
        self._ended = ended
        self._waiting: dict[str, Hear] = {}  # for one answer, by the id of what was asked;
        self._following: dict[str, Hear] = {}  # for everything that is said about it

    def expect(self, id_: str, hear: Hear) -> None:
        """Hears the one answer."""
        self._waiting[id_] = hear

    def follow(self, id_: str, hear: Hear) -> None:
        """Hears all that is said about it, until `forget`."""
        self._following[id_] = hear

    def forget(self, id_: str, hear: Hear | None = None) -> None:
        self._waiting.pop(id_, None)
        if self._following.get(id_) == hear:  # else somebody else follows the same by now
            self._following.pop(id_, None)

    # --- what it is told --------------------------------------------------------------------------------------------------

    def say(self, kind: str, payload: Any) -> None:
        if self.closed:
            return
        if kind == "PING":
            self.pinged = False
            self.last_heard = self.context.steady_ms
        elif kind == "NACK":
            said = payload.get("retry_after_ms"), payload.get("details")
            error = parse_error(payload["code"], payload["message"], retry_after_ms=said[0], details=said[1])
            self._tell(payload["nack_id"], error)
        else:
            self._tell(payload.get("ack_id") or payload.get("reply_to"), payload)

    def say_error(self, error: RelayError, reply_to: str | None = None, *, fatal: bool = False) -> None:
        del fatal
        if not self.closed:
            self._tell(reply_to, error)

    def say_nack(self, error: RelayError, nack_id: str, **more: Any) -> None:
        del more
        if not self.closed:
            self._tell(nack_id, error)

    def say_stored_again(self, row: MessageRow) -> None:
        if not self.closed:
            self._tell(row.client_id, row)

    def _tell(self, id_: str | None, said: Said) -> None:
        hear = self._waiting.pop(id_ or "", None) or self._following.get(id_ or "")
        if hear is not None:
            hear(said)

    # --- ports.Connection, and ports.StandIn -------------------------------------------------------------------------------

    @property
    def yields(self) -> bool:
        """Not while somebody waits for what becomes of a message."""
        return self._ended is not None and not self._waiting and not self._following

    def caller(self) -> Caller:
        return self.speaks_for

    def runs(self, agent: str, pid: int | None) -> None:
        """Nothing is wrapped here."""

    def send(self, frame: bytes) -> None:
        self.send_all([frame])

    def send_all(self, frames: list[bytes]) -> None:
        """Only messages are ever frames here, and those can be read in the history."""
        if frames and self._delivered is not None:
            self._delivered()

    def close(self, reason: CloseReason) -> None:
        if self._ended is not None:
            self._ended(reason)
        waiting, self._waiting = self._waiting, {}
        for hear in [*waiting.values(), *self._following.values()]:
            hear(stopping_error())
