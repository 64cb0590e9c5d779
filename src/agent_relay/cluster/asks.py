"""Questions from host to host: one request, one answer, over `relay.P.ask.<host>`.

An answer may be lost, so a question is asked again until there is one or patience ends, and whoever answers must not mind hearing
it twice: everything that is asked names what it is about, and is done once for each name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from agent_relay.cluster.jetstream import Names
from agent_relay.ports.cluster import Wire, WireMessage
from agent_relay.ports.log import Log
from agent_relay.protocol.errors import ErrorCode, RelayError, parse_error

PATIENCE_MS = 15_000  # a host that is not heard for ten seconds is lost
_AGAIN_MS = 250
ANSWER_BYTES = 512 * 1024  # a server takes at least a mebibyte

Told: TypeAlias = Callable[[bytes | RelayError], None]
Handler: TypeAlias = Callable[[str, bytes, Told], None]  # who asks, what; `told` may be called later, or never


class _Question(Struct, frozen=True, array_like=True):
    host: str  # who asks
    kind: str
    body: bytes


class _Answer(Struct, frozen=True, array_like=True):
    body: bytes = b""
    code: str = ""  # of an error; "" for none
    message: str = ""
    details: dict[str, Any] = {}


class _Asked(Struct):
    host: str
    payload: bytes
    told: Told
    until: int
    again_at: int = 0  # 0: an answer is waited for


class Asks:
    def __init__(self, wire: Wire, names: Names, host: str, log: Log, now: int) -> None:
        self._wire = wire
        self._names = names
        self._host = host
        self._log = log
        self._now = now
        self._handlers: dict[str, Handler] = {}
        self._asked: list[_Asked] = []

    def start(self) -> None:
        self._wire.subscribe(self._names.ask(self._host), self._heard)

    def answer(self, kind: str, handler: Handler) -> None:
        """From now on questions of that kind go to the handler."""
        self._handlers[kind] = handler

    def ask(self, host: str, kind: str, body: bytes, told: Told, patience_ms: int = PATIENCE_MS) -> None:
        """`told` is called once, never from inside this call: with the answer, or an error, that host's or since none came.
        Without patience it is asked once: for a question that is out of date when it is asked again."""
        payload = msgspec.msgpack.encode(_Question(self._host, kind, body))
        asked = _Asked(host, payload, told, self._now + patience_ms)
        self._asked.append(asked)
        self._send(asked)

    def clock_says(self, now: int) -> None:
        self._now = now
        for asked in [asked for asked in self._asked if asked.again_at and now >= asked.again_at]:
            if now < asked.until:
                self._send(asked)
            else:
                self._end(asked, no_answer(asked.host))

    def _send(self, asked: _Asked) -> None:
        asked.again_at = 0
        self._wire.ask(self._names.ask(asked.host), asked.payload, lambda message: self._answered(asked, message))

    def _answered(self, asked: _Asked, message: WireMessage | None) -> None:
        answer = None if message is None or message.status else _read(message.payload)
        if answer is None:  # nobody was there, or it was lost
            asked.again_at = self._now + _AGAIN_MS
        elif answer.code:
            self._end(asked, parse_error(answer.code, answer.message, details=answer.details))
        else:
            self._end(asked, answer.body)

    def _end(self, asked: _Asked, answer: bytes | RelayError) -> None:
        self._asked.remove(asked)
        asked.told(answer)

    def _heard(self, message: WireMessage) -> None:
        try:
            question = msgspec.msgpack.decode(message.payload, type=_Question)
        except msgspec.MsgspecError:
            return
        handler = self._handlers.get(question.kind)
        reply = message.reply

        def tell(answer: bytes | RelayError) -> None:
            if isinstance(answer, RelayError):
                said = _Answer(b"", answer.code.value, answer.message, answer.details)
            else:
                said = _Answer(answer)
            self._wire.publish(reply, msgspec.msgpack.encode(said))

        if not reply:
            return
        if handler is None:
            tell(RelayError(ErrorCode.FEATURE_UNSUPPORTED, f"Host {self._host} runs another version, which cannot do this."))
            return
        try:
            handler(question.host, question.body, tell)
        except RelayError as error:
            tell(error)
        except msgspec.MsgspecError as error:
            self._log.note("cluster_question_unreadable", host=question.host, kind=question.kind, error=str(error))


def no_answer(host: str) -> RelayError:
    return RelayError(
        ErrorCode.SERVICE_UNAVAILABLE, f"Host {host} does not answer; `agent-relay hosts` shows when it was last heard.",
        reason="host_silent", host=host,
    )  # fmt: skip


def _read(payload: bytes) -> _Answer | None:
    try:
        return msgspec.msgpack.decode(payload, type=_Answer)
    except msgspec.MsgspecError:
        return None
