"""Answers that are waited for. An answer is told by its `ref`, or, from a relay that does not repeat it, by its type."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from agent_relay.arc.errors import ArcRejected
from agent_relay.arc.frames import ArcMessage
from agent_relay.protocol.arc.ids import RELAY

ERROR = "error"


class Lost(Exception):  # noqa: N818 - named by the condition
    """The connection broke before the answer; whether the relay took the question is not known."""


def _new_future() -> asyncio.Future[ArcMessage]:
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False, slots=True)
class PendingAnswer:
    ref: str
    type: str | None = None  # of the answer; None: our own copy of a message, told by its key
    key: str | None = None
    answer: asyncio.Future[ArcMessage] = field(default_factory=_new_future)


class PendingAnswers:
    def __init__(self) -> None:
        self._open: list[PendingAnswer] = []
        self._repeats_refs = False  # seen of this relay

    def __len__(self) -> int:
        return len(self._open)

    def open(self, wait: PendingAnswer) -> PendingAnswer:
        self._open.append(wait)
        return wait

    def close(self, wait: PendingAnswer) -> None:
        if wait in self._open:
            self._open.remove(wait)
        wait.answer.cancel()

    def lose_all(self) -> None:
        for wait in self._open:
            if not wait.answer.done():
                wait.answer.set_exception(Lost())
                wait.answer.exception()  # whoever asked may be gone by now, and nobody else needs to hear of it

    def take(self, message: ArcMessage) -> bool:
        """True if somebody waited for it."""
        wait = self._find(message)
        if wait is None:
            return False
        self._open.remove(wait)
        if message.type == ERROR and message.from_ == RELAY:
            wait.answer.set_exception(read_error(message))
        else:
            wait.answer.set_result(message)
        return True

    def _find(self, message: ArcMessage) -> PendingAnswer | None:
        waits = [wait for wait in self._open if not wait.answer.done()]
        if message.from_ != RELAY:
            return next((wait for wait in waits if wait.key is not None and wait.key == message.key), None)
        if message.ref is not None:
            found = next((wait for wait in waits if wait.ref == message.ref), None)
            self._repeats_refs |= found is not None
            return found
        if message.type == ERROR:
            return waits[0] if len(waits) == 1 and not self._repeats_refs else None
        return next((wait for wait in waits if wait.type is not None and wait.type == message.type), None)


def read_error(message: ArcMessage) -> ArcRejected:
    said = message.payload if isinstance(message.payload, dict) else {}
    code = message.fields.get("error") or said.get("code") or said.get("error")
    text = message.fields.get("message") or said.get("message")
    return ArcRejected(str(text or "The relay refused the request."), code=str(code or ""))
