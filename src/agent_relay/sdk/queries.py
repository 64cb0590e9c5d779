"""Questions to the daemon itself: who is there, what was said, subscribe, join. Each is asked until it is answered.

Asking twice does no harm with most of them, so after a reconnect every open one is asked again under its own id. What
would do harm twice (`ask_once`) is not: it fails with the connection.
"""

from __future__ import annotations

from typing import Any, TypeVar

from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.payloads import (
    AgentsPayload,
    HistoryResultPayload,
    ReceiptPayload,
    ReleaseResultPayload,
    SpawnResultPayload,
)
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.sdk.ids import wall_ms
from agent_relay.sdk.outcome import Outcome
from agent_relay.sdk.session import Session

Answer = ReceiptPayload | AgentsPayload | HistoryResultPayload | SpawnResultPayload | ReleaseResultPayload
A = TypeVar("A", ReceiptPayload, AgentsPayload, HistoryResultPayload, SpawnResultPayload)


class Queries:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: dict[str, tuple[bytes, Outcome[Answer]]] = {}
        self._once: set[str] = set()

    async def ask_once(self, kind: str, payload: Any) -> Answer:
        """As `ask`; raises ConnectionLost where there is no connection, or where it is lost before the answer."""
        self._session.check()
        if not self._session.ready:
            raise ConnectionLost("There is no connection to the daemon now; nothing was done.", reason="not_connected")
        id_, outcome = self.begin(kind, payload)
        self._once.add(id_)
        try:
            return await outcome.wait()
        finally:
            self._open.pop(id_, None)
            self._once.discard(id_)

    async def ask(self, kind: str, payload: Any, id_: str | None = None) -> Answer:
        """Returns the answer, or raises the RelayError that came in its place. `id_`: one that stays the same where this may be
        asked again by another process."""
        id_, outcome = self.begin(kind, payload, id_)
        try:
            return await outcome.wait()
        finally:
            self._open.pop(id_, None)

    def ask_unheard(self, kind: str, payload: Any) -> Outcome[Answer]:
        """Asks, now or after the next reconnect, without having to wait for the answer."""
        return self.begin(kind, payload)[1]

    def begin(self, kind: str, payload: Any, id_: str | None = None) -> tuple[str, Outcome[Answer]]:
        """Asks, and returns the question's id with what will become of it; `forget` it after that."""
        self._session.check()
        id_ = id_ or self._session.ids.next("q_")
        frame = encode_envelope(kind, id_, wall_ms(), payload)
        self._session.check_size(frame)
        outcome: Outcome[Answer] = Outcome()
        self._open[id_] = (frame, outcome)
        self._session.write(frame)
        return id_, outcome

    def forget(self, id_: str) -> None:
        self._open.pop(id_, None)

    def on_lost(self) -> None:
        for id_ in self._once:
            self.fail(id_, ConnectionLost("The connection broke before the answer; it may or may not have been done."))

    def on_ready(self) -> None:
        for frame, _ in self._open.values():
            self._session.write(frame)

    def on_closed(self, error: RelayError | None) -> None:
        reason = error or ConnectionLost("The client was closed.", reason="closed")
        for id_ in list(self._open):
            self.fail(id_, reason)

    def resolve(self, id_: str | None, answer: Answer) -> bool:
        """True if there was such a question."""
        entry = self._open.pop(id_, None) if id_ is not None else None
        if entry is not None:
            entry[1].resolve(answer)
        return entry is not None

    def fail(self, id_: str | None, error: RelayError) -> bool:
        entry = self._open.pop(id_, None) if id_ is not None else None
        if entry is not None:
            entry[1].fail(error)
        return entry is not None


def expect(kind: type[A], answer: Answer) -> A:
    if not isinstance(answer, kind):
        raise RelayError(ErrorCode.INTERNAL_ERROR, f"The daemon gave an unexpected answer: {type(answer).__name__}.")
    return answer
