"""Who is let in: checked before anything else is looked at, for every request.

A browser shows a page of another site while a daemon listens on this machine, so a request must name a host that is ours
(no DNS rebinding), must not come from a foreign page, and says what it is: JSON. Where a token is set, it must be known.
"""

from __future__ import annotations

import hmac
import ipaddress
from urllib.parse import urlsplit

from msgspec import Struct

from agent_relay.protocol.errors import ErrorCode
from agent_relay.transports.http.errors import FORBIDDEN, UNAUTHORIZED, HttpError

NOT_JSON = "Bodies must be JSON, with `Content-Type: application/json`."
_OWN_NAMES = frozenset({"localhost"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_PORTS = {"http": 80, "https": 443}


class Rules(Struct, frozen=True):
    host: str  # what the server is bound to
    port: int
    token: str | None
    origins: frozenset[str]  # other pages that may come in
    max_body_bytes: int
    open_paths: frozenset[str]  # ask for no token
    open_folders: tuple[str, ...] = ()  # nor does anything in these
    bare_paths: frozenset[str] = frozenset()  # look themselves at what kind of body they are given
    scheme: str = "http"


def check(rules: Rules, method: str, path: str, headers: list[tuple[bytes, bytes]]) -> None:
    """Raises HttpError."""
    found = _Headers(headers)
    _check_host(rules, found)
    _check_origin(rules, method, found)
    if not is_preflight(rules, method, found.one(b"origin")):  # a browser asks it without the token
        _check_token(rules, path, found)
    _check_body(rules, method, path, found)


class _Headers:
    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._all: dict[bytes, list[str]] = {}
        for name, value in headers:
            self._all.setdefault(name.lower(), []).append(value.decode("latin-1"))

    def one(self, name: bytes) -> str | None:
        """None where it is not there; two of them are as good as a wrong one."""
        values = self._all.get(name)
        return None if values is None else values[0] if len(values) == 1 else "\0"


# --- hosts and origins -------------------------------------------------------------------------------------------------


def _check_host(rules: Rules, headers: _Headers) -> None:
    said = headers.one(b"host")
    if said is None or not is_own_host(rules, said):
        raise HttpError(FORBIDDEN, ErrorCode.PERMISSION_DENIED, "The Host of this request is not this server.", reason="host")


def is_own_host(rules: Rules, said: str) -> bool:
    try:
        parts = urlsplit(f"//{said}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if (port or _PORTS[rules.scheme]) != rules.port or parts.path or parts.query or parts.fragment or parts.username is not None:
        return False
    name = name.lower()
    if name in _OWN_NAMES or name == rules.host.lower():
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False  # a name that is not ours, wherever it leads today
    return address.is_loopback or not is_loopback(rules.host)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in _OWN_NAMES


def _check_origin(rules: Rules, method: str, headers: _Headers) -> None:
    origin = headers.one(b"origin")
    if origin is None:
        site, mode = headers.one(b"sec-fetch-site"), headers.one(b"sec-fetch-mode")
        if site in {"cross-site", "same-site"} and not (mode == "navigate" and method in _SAFE_METHODS):
            raise _foreign()
    elif not is_own_origin(rules, origin) and origin not in rules.origins:
        raise _foreign()


def is_own_origin(rules: Rules, origin: str) -> bool:
    scheme, _, host = origin.partition("://")
    return scheme == rules.scheme and is_own_host(rules, host)


def _foreign() -> HttpError:
    return HttpError(
        FORBIDDEN, ErrorCode.PERMISSION_DENIED, "Pages of other sites may not ask this server; see cors_origins.", reason="origin"
    )


def is_preflight(rules: Rules, method: str, origin: str | None) -> bool:
    return method == "OPTIONS" and origin in rules.origins


def allowed_origin(rules: Rules, headers: list[tuple[bytes, bytes]]) -> str | None:
    """The origin of a foreign page that may read the answer."""
    origin = _Headers(headers).one(b"origin")
    return origin if origin in rules.origins else None


# --- tokens and bodies -------------------------------------------------------------------------------------------------


def _check_token(rules: Rules, path: str, headers: _Headers) -> None:
    if rules.token is None or path in rules.open_paths or path.startswith(rules.open_folders):
        return
    scheme, _, token = (headers.one(b"authorization") or "").partition(" ")
    is_known = hmac.compare_digest(token.strip().encode("utf-8", "replace"), rules.token.encode())
    if scheme.lower() != "bearer" or not is_known:
        sentence = "This needs the token of AGENT_RELAY_API_TOKEN, as `Authorization: Bearer …`."
        raise HttpError(UNAUTHORIZED, ErrorCode.PERMISSION_DENIED, sentence, (("www-authenticate", "Bearer"),), reason="token")


def _check_body(rules: Rules, method: str, path: str, headers: _Headers) -> None:
    length = headers.one(b"content-length")
    if length is not None and length.isdecimal() and int(length[:20]) > rules.max_body_bytes:
        raise too_large(rules)
    if method in _SAFE_METHODS or path in rules.bare_paths:
        return
    kind = headers.one(b"content-type")
    has_body = headers.one(b"transfer-encoding") is not None or (length or "0") != "0"
    if (kind is not None or has_body) and not is_json(kind):
        raise HttpError(415, ErrorCode.INVALID_FORMAT, NOT_JSON)


def is_json(kind: str | None) -> bool:
    name, _, parameters = (kind or "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    return name.strip().lower() == "application/json" and charset in {"", "charset=utf-8", "charset=utf8"}


def too_large(rules: Rules) -> HttpError:
    return HttpError(
        413, ErrorCode.MESSAGE_TOO_LARGE, f"The body is larger than the {rules.max_body_bytes} bytes this server takes.",
        max_frame_bytes=rules.max_body_bytes,
    )  # fmt: skip
