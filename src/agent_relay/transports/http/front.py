"""The front of the application: the checks, the request's id, the log, and the last resort when something fails."""

from __future__ import annotations

import itertools
import logging
import re
import time

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.transports.http.application import Application, Message, Receive, Scope, Send, send_whole
from agent_relay.transports.http.connections import Connections
from agent_relay.transports.http.errors import HttpError, encode_error, unavailable, wrong_method
from agent_relay.transports.http.guard import Rules, WrongToken, allowed_origin, body_limit, check, too_large
from agent_relay.transports.http.guesses import Guesses
from agent_relay.transports.http.metrics import Metrics
from agent_relay.transports.http.route import JSON
from agent_relay.transports.http.table import FLAT_PATHS, methods_at

_TOO_LARGE = 413
_READ_PAST_BYTES = 64 * 1024 * 1024  # whoever writes more than that is cut off
_GIVEN_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_SHOWN_PATH = 200
_QUIET = frozenset({"/health", "/ready", "/metrics"})  # asked every few seconds by machines
_PAGE_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

log = logging.getLogger(__name__)


class Front:
    def __init__(
        self, application: Application, rules: Rules, metrics: Metrics, guesses: Guesses, connections: Connections
    ) -> None:
        self._application = application
        self._rules = rules
        self._metrics = metrics
        self._guesses = guesses
        self._connections = connections
        self._ids = itertools.count(1)
        self.is_stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"This server does not support {scope['type']}.")
        exchange = _Exchange(self._request_id(scope), scope, receive, send, self._rules)
        try:
            if self.is_stopping:
                raise unavailable("The daemon is stopping.")
            await self._check(scope)
            if scope["method"] == "OPTIONS":
                await exchange.answer_options()
            else:
                await self._application(scope, exchange.receive, exchange.send)
        except RelayError as error:
            await exchange.answer(error)
        except Exception:
            log.exception("http_failed", extra={"relay_fields": {"request": exchange.id, "path": scope["path"][:_SHOWN_PATH]}})
            await exchange.answer(RelayError(ErrorCode.INTERNAL_ERROR))
        finally:
            self._note(exchange)

    async def _check(self, scope: Scope) -> None:
        client = scope.get("client")
        try:
            is_known = check(self._rules, scope["method"], scope["path"], scope["headers"])
        except WrongToken as wrong:
            await self._guesses.punish(client[0] if client else "", wrong.guess)
            raise
        if is_known and client:
            self._connections.know(client)

    def _request_id(self, scope: Scope) -> str:
        given = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"x-request-id"), "")
        return given if _GIVEN_ID.fullmatch(given) else f"r{next(self._ids):x}"

    def _note(self, exchange: _Exchange) -> None:
        """Never a query or a body: they hold what people write."""
        method, path = exchange.method, exchange.path
        seconds = time.monotonic() - exchange.began
        self._metrics.answered(method, exchange.status, seconds, exchange.received, exchange.sent)
        if exchange.code:
            self._metrics.failed(exchange.code)
        level = logging.DEBUG if path in _QUIET else logging.INFO
        if log.isEnabledFor(level):
            fields = {
                "request": exchange.id, "method": method, "path": path[:_SHOWN_PATH], "status": exchange.status,
                "ms": round(seconds * 1000, 1), "code": exchange.code or None,
            }  # fmt: skip
            log.log(level, "http", extra={"relay_fields": fields})


class _Exchange:
    """One request and its answer, counted on the way through."""

    def __init__(self, id_: str, scope: Scope, receive: Receive, send: Send, rules: Rules) -> None:
        self.id = id_
        self.method: str = scope["method"] if scope["method"] in _KNOWN_METHODS else "OTHER"
        self.path: str = scope["path"]
        self.origin = allowed_origin(rules, scope["headers"])
        self.began = time.monotonic()
        self.status = 0
        self.code = ""  # of the error that was answered
        self.received = 0
        self.sent = 0
        self._receive = receive
        self._send = send
        self._is_whole = False  # the request: there is nothing more to read of it
        self._waits_to_send = any(name == b"expect" for name, _ in scope["headers"])
        self._limit = body_limit(rules, scope["method"], self.path)

    async def receive(self) -> Message:
        message = await self._receive()
        self._is_whole = not message.get("more_body")
        self.received += len(message.get("body", b""))
        if self.received > self._limit:
            raise too_large(self._limit)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"]
            message = message | {"headers": [*headers, *self._common_headers(headers)]}
        elif message["type"] == "http.response.body":
            self.sent += len(message["body"])
            if self.status == _TOO_LARGE and not message.get("more_body"):
                await self._send(message | {"more_body": True})
                await self._read_past()
                message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    async def _read_past(self) -> None:
        """Reads on when the answer is out already: to close with unread bytes is a reset, and takes the answer away from a
        client that writes all of its body first. The time that a request has (`connections`) ends this too."""
        left = 0 if self._waits_to_send else _READ_PAST_BYTES
        while left > 0 and not self._is_whole:
            message = await self._receive()
            left -= len(message.get("body", b""))
            self._is_whole = not message.get("more_body")

    def _common_headers(self, given: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        names = {name.lower() for name, _ in given}
        headers = [
            (b"x-request-id", self.id.encode()),
            (b"x-content-type-options", b"nosniff"),
        ]
        if b"content-security-policy" not in names:
            headers.append((b"content-security-policy", _PAGE_POLICY))
        if b"cache-control" not in names:
            headers.append((b"cache-control", b"no-store"))
        if self.origin is not None:
            headers += [(b"access-control-allow-origin", self.origin.encode("latin-1")), (b"vary", b"Origin")]
            headers.append((b"access-control-expose-headers", b"X-Request-Id, Retry-After"))
        return headers

    async def answer(self, error: RelayError) -> None:
        """Nothing can be said any more where an answer has begun: the connection ends."""
        if self.status:
            return
        self.code = error.code.value
        status, headers, body = encode_error(error, flat=self.path in FLAT_PATHS)
        await send_whole(self.send, status, JSON, body, headers)

    async def answer_options(self) -> None:
        allowed = methods_at(self.path)
        if not allowed:
            raise HttpError(404, ErrorCode.ROUTE_NOT_FOUND)
        if self.origin is None:
            raise wrong_method(allowed)
        headers = [
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (b"access-control-allow-headers", b"Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-Id"),
            (b"access-control-max-age", b"600"),
        ]
        await self.send({"type": "http.response.start", "status": 204, "headers": headers})
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})


_KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})  # a label must not grow without end
