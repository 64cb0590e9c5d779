"""HTTP where nobody can serve it now: at a host of a cluster that has no link to the seat. Every request is answered with the
reason, in the shape that errors have everywhere; a browser gets it as a page that tries again. `/health` asks about this process
alone, which is well.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

import h11

from agent_relay.protocol.encode import encode_json
from agent_relay.transports.http.errors import encode_error, unavailable
from agent_relay.transports.http.guard import Bound, is_own_host
from agent_relay.version import __version__

_REQUEST_S = 30.0  # as long as a request may take where it is served
_LINGER_S = 2.0
_FLAT_PATHS = ("/arc", "/register", "/token/")  # as far as agents over ARC ask: errors are flat there
_AGAIN = "setTimeout(() => location.reload(), 3000)"  # a `refresh` would do nothing at an address with a #
_AGAIN_HASH = base64.b64encode(hashlib.sha256(_AGAIN.encode()).digest()).decode()
_HEADERS = {
    "cache-control": "no-store",
    "connection": "close",
    "content-security-policy": (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_AGAIN_HASH}'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
}
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><script>{again}</script>
<title>Agent Relay: not available</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:15vh auto;padding:0 1em;color-scheme:light dark}}</style>
<h1>The relay is not available here now</h1><p>{reason}</p><p>This page tries again every three seconds.</p></html>
"""


class UnservedProtocol(asyncio.Protocol):
    """One request, then it closes. `bound` is the server that the client asked."""

    def __init__(self, bound: Bound, reason: Callable[[], str], uptime_ms: Callable[[], int]) -> None:
        self._bound = bound
        self._reason = reason
        self._uptime_ms = uptime_ms
        self._said = h11.Connection(h11.SERVER)
        self._request: h11.Request | None = None
        self._is_answered = False
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._wait(_REQUEST_S)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why it ended makes no difference
        self._transport = None
        if self._deadline is not None:
            self._deadline.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_answered:
            return
        try:
            self._said.receive_data(data)
            self._read()
        except h11.RemoteProtocolError:
            self._hang_up()

    def _read(self) -> None:
        """To the end of the request: to close with unread bytes would take the answer away from its client."""
        while not self._is_answered:
            event = self._said.next_event()
            if isinstance(event, h11.Request):
                self._request = event
            if isinstance(event, h11.EndOfMessage) or self._said.they_are_waiting_for_100_continue:
                self._answer()
            elif event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                return

    def _answer(self) -> None:
        request = self._request
        assert request is not None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        path = request.target.decode("latin-1").partition("?")[0]
        is_get = request.method in {b"GET", b"HEAD"}
        reason = self._reason()
        if not is_own_host(self._bound, headers.get("host", "")):
            self._write(HTTPStatus.FORBIDDEN, "text/plain; charset=utf-8", b"The Host of this request is not this server.\n")
        elif is_get and path == "/health":
            health = {"status": "ok", "version": __version__, "uptimeMs": self._uptime_ms()}
            self._write(HTTPStatus.OK, "application/json", encode_json(health))
        elif is_get and "text/html" in headers.get("accept", ""):
            page = _PAGE.format(again=_AGAIN, reason=html.escape(reason)).encode()
            self._write(HTTPStatus.SERVICE_UNAVAILABLE, "text/html; charset=utf-8", page, [("retry-after", "3")])
        else:
            _, more, body = encode_error(unavailable(reason), flat=path.startswith(_FLAT_PATHS))
            self._write(HTTPStatus.SERVICE_UNAVAILABLE, "application/json", body, more)

    def _write(self, status: HTTPStatus, media: str, body: bytes, more: list[tuple[str, str]] | None = None) -> None:
        self._is_answered = True
        if self._transport is None:
            return
        headers = {"content-type": media, "content-length": str(len(body))} | _HEADERS | dict(more or [])
        lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        is_head = self._request is not None and self._request.method == b"HEAD"
        self._transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if is_head else body))
        self._hang_up()

    def _hang_up(self) -> None:
        self._is_answered = True
        if self._transport is not None:
            linger(self._transport)
            self._wait(_LINGER_S)

    def _wait(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def linger(transport: asyncio.Transport) -> None:
    """Ends our half alone, where that can be done: to close with unread bytes is a reset, which takes the last words away."""
    if transport.can_write_eof():
        transport.write_eof()
    else:
        transport.close()
