"""The upgrade: an HTTP request that asks for a WebSocket, checked before anything is upgraded.

uvicorn hands over a connection whose request wants to be upgraded: it makes one of these and gives it the head of the request,
read once and written out again. Whoever may come in gets an `ArcConnection` in its place; the others get an answer in HTTP.
A token in the address is never logged: of a request only what became of it is noted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qs

from agent_relay.protocol.encode import encode_json
from agent_relay.transports.arc.desk import Desk, Unwelcome
from agent_relay.transports.arc.frames import accept_key, is_key
from agent_relay.transports.arc.hub import Hub
from agent_relay.transports.arc.registrar import Record
from agent_relay.transports.http.errors import HttpError
from agent_relay.transports.http.guard import Rules, check

ARC_PATH = "/arc"
_VERSION = b"13"

log = logging.getLogger(__name__)


class UpgradeProtocol(asyncio.Protocol):
    def __init__(self, hub: Hub | None, desk: Desk | None, rules: Rules) -> None:
        self._hub = hub
        self._desk = desk
        self._rules = rules
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """The head of the request, whole. Anything after it was sent by somebody who does not wait for an answer."""
        transport = self._transport
        if transport is None:
            return
        self._transport = None
        address = str((transport.get_extra_info("peername") or ("",))[0])
        try:
            key, record = self._check(data, address)
        except Unwelcome as refusal:
            log.info(
                "arc_refused", extra={"relay_fields": {"status": refusal.status, "error": refusal.error, "address": address}}
            )
            _refuse(transport, refusal)
            return
        hub = self._hub
        assert hub is not None
        # uvicorn makes us the connection's protocol when we return; only after that can another take our place.
        asyncio.get_running_loop().call_soon(open_connection, hub, record, transport, address, key)

    def _check(self, head: bytes, address: str) -> tuple[bytes, Record]:
        method, path, query, headers = _read_head(head)
        if path != ARC_PATH:  # first: whether the API's token is right is nothing to be found out here
            raise Unwelcome(404, "not_found", f"WebSockets are at {ARC_PATH}.")
        try:
            check(self._rules, "GET", path, headers)
        except HttpError as error:
            raise Unwelcome(error.status, "forbidden", error.message) from None
        if self._hub is None or self._desk is None or self._hub.is_stopping:
            raise _unavailable()
        found = dict(headers)
        if method != "GET":
            raise Unwelcome(405, "method_not_allowed", "Open a WebSocket with GET.", allow="GET")
        if found.get(b"sec-websocket-version") != _VERSION:
            raise Unwelcome(426, "upgrade_required", "Use WebSocket version 13.")
        key = found.get(b"sec-websocket-key", b"").strip()
        if not is_key(key):
            raise Unwelcome(400, "invalid_request", "`Sec-WebSocket-Key` is missing or invalid.")
        record = self._desk.authenticate(_read_token(found.get(b"authorization"), query), address, connects=True)
        most = self._hub.settings.connections_per_address
        if most and self._hub.count_from(address) >= most:
            raise Unwelcome(429, "rate_limit", f"Too many connections from this address ({most}).", retry_after_s=60)
        return key, record


def upgrade_protocol(hub: Hub | None, desk: Desk | None, rules: Rules) -> Callable[..., asyncio.Protocol]:
    """The function that uvicorn calls for each upgrade, with things of its own that are not needed here."""
    return lambda **_: UpgradeProtocol(hub, desk, rules)


def open_connection(hub: Hub, record: Record, transport: asyncio.Transport, address: str, key: bytes) -> None:
    if transport.is_closing():
        return
    if record.row.revoked_at is not None:  # since it was let in, a moment ago
        _refuse(transport, Unwelcome(401, "unauthorized", "The token was revoked."))
        return
    if hub.is_stopping:
        _refuse(transport, _unavailable())
        return
    connection = hub.attach(record, transport, address)
    transport.set_protocol(connection)
    transport.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept_key(key) + b"\r\n\r\n"
    )
    connection.begin()


def _unavailable() -> Unwelcome:
    return Unwelcome(503, "unavailable", "ARC is not available on this relay now.", retry_after_s=1)


def _read_head(head: bytes) -> tuple[str, str, str, list[tuple[bytes, bytes]]]:
    first, *lines = head.split(b"\r\n")
    method, target, _ = first.split(b" ", 2)
    path, _, query = target.decode("latin-1").partition("?")
    headers = [cast("tuple[bytes, bytes]", tuple(line.split(b": ", 1))) for line in lines if b": " in line]
    return method.decode("latin-1"), path, query, headers


def _read_token(header: bytes | None, query: str) -> str:
    """The header wins, even a wrong one."""
    if header is not None:
        return read_bearer(header.decode("latin-1"))
    try:
        return parse_qs(query, max_num_fields=20).get("token", [""])[0]
    except ValueError:
        return ""


def read_bearer(header: str) -> str:
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _refuse(transport: asyncio.Transport, refusal: Unwelcome) -> None:
    body = encode_json({"error": refusal.error, "message": refusal.message})
    lines = [
        f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}", "content-type: application/json",
        f"content-length: {len(body)}", "connection: close", "cache-control: no-store",
        *(f"{name}: {value}" for name, value in refusal.headers()),
    ]  # fmt: skip
    transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    transport.close()
