"""The guard at the entrance: who is let in is checked before anything else is looked at, for every request.

A browser shows a page of another site while a daemon listens on this machine, so a request must name a host that is ours
(no DNS rebinding), must not come from a foreign page, and says what it is: JSON. It must show the API's token, or be of a page
that somebody let in with a code.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.places import API_TOKEN_FILE
from agent_relay.transports.http.errors import FORBIDDEN, UNAUTHORIZED, HttpError
from agent_relay.transports.http.page_keys import PAGE_HEADER, PageKeys

NOT_JSON = "Bodies must be JSON, with `Content-Type: application/json`."
_OWN_NAMES = frozenset({"localhost"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_PORTS = {"http": 80, "https": 443}
_OPEN_BODY_BYTES = 16_384  # of somebody who has shown no token


_CHALLENGE = (("www-authenticate", "Bearer"),)


class Rules(Struct, frozen=True):
    host: str  # what the server is bound to
    port: int
    token_hash: str | None  # None: nobody is asked for one
    keys: PageKeys
    origins: frozenset[str]  # other pages that may come in
    max_body_bytes: int
    open_paths: frozenset[tuple[str, str]]  # methods and paths that ask for no token
    open_folders: tuple[str, ...] = ()  # nor does it to read anything in these
    bare_paths: frozenset[str] = frozenset()  # look themselves at what kind of body they are given
    scheme: str = "http"


class Bound(Protocol):
    """The address a server is bound to."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def scheme(self) -> str: ...


class WrongToken(HttpError):  # noqa: N818 - named by the condition
    """A token that is not the one, or a code that is not good: `guess`."""

    def __init__(self, sentence: str, guess: str) -> None:
        super().__init__(UNAUTHORIZED, ErrorCode.PERMISSION_DENIED, sentence, _CHALLENGE, reason="token")
        self.guess = guess


def check(rules: Rules, method: str, path: str, headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether whoever asks is known, by the token or a page's key. Raises HttpError where they must be and are not."""
    found = _Headers(headers)
    _check_host(rules, found)
    _check_origin(rules, method, found)
    is_known = False
    if not is_preflight(rules, method, found.one(b"origin")):  # a browser asks it without the token
        is_known = _check_token(rules, method, path, found)
    _check_body(rules, method, path, found)
    return is_known


def is_open(rules: Rules, method: str, path: str) -> bool:
    return (method, path) in rules.open_paths or (method == "GET" and path.startswith(rules.open_folders))


def body_limit(rules: Rules, method: str, path: str) -> int:
    return min(_OPEN_BODY_BYTES, rules.max_body_bytes) if is_open(rules, method, path) else rules.max_body_bytes


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


def is_own_host(bound: Bound, said: str) -> bool:
    try:
        parts = urlsplit(f"//{said}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if (port or _PORTS[bound.scheme]) != bound.port or parts.path or parts.query or parts.fragment or parts.username is not None:
        return False
    name = name.lower()
    if name in _OWN_NAMES or name == bound.host.lower():
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False  # a name that is not ours, wherever it leads today
    return address.is_loopback or not is_loopback(bound.host)


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
        FORBIDDEN, ErrorCode.PERMISSION_DENIED, "Pages of other sites may not use this server; see cors_origins.", reason="origin"
    )


def is_preflight(rules: Rules, method: str, origin: str | None) -> bool:
    return method == "OPTIONS" and origin in rules.origins


def allowed_origin(rules: Rules, headers: list[tuple[bytes, bytes]]) -> str | None:
    """The origin of a foreign page that may read the answer."""
    origin = _Headers(headers).one(b"origin")
    return origin if origin in rules.origins else None


# --- tokens and bodies -------------------------------------------------------------------------------------------------


def _check_token(rules: Rules, method: str, path: str, headers: _Headers) -> bool:
    if rules.token_hash is None:
        return True
    if is_open(rules, method, path):
        return False
    said = headers.one(b"authorization")
    if said is None and _is_of_a_page(rules, headers):
        return True
    scheme, _, token = (said or "").partition(" ")
    if scheme.lower() == "bearer" and is_token(rules.token_hash, token.strip()):
        return True
    # Not where it lies: whoever reads this may be anybody, and need not learn the owner's folders.
    where = f"It is in the file {API_TOKEN_FILE} of the daemon's state directory; for the dashboard run `agent-relay open`."
    if said is not None:
        raise WrongToken(f"That is not this relay's token. {where}", said)
    sentence = f"This needs the relay's token, as `Authorization: Bearer …`. {where}"
    raise HttpError(UNAUTHORIZED, ErrorCode.PERMISSION_DENIED, sentence, _CHALLENGE, reason="token")


def hash_token(token: str) -> str:
    """As it is compared: of another host's token nobody here has more."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def is_token(token_hash: str, said: str) -> bool:
    return hmac.compare_digest(hash_token(said), token_hash)


def _is_of_a_page(rules: Rules, headers: _Headers) -> bool:
    """Of our own alone: what a browser says of itself, where it does, and a header that no page of another site can send."""
    if headers.one(b"sec-fetch-site") not in {None, "same-origin"}:
        return False
    cookies, half = headers.one(b"cookie"), headers.one(PAGE_HEADER.encode())
    return cookies is not None and half is not None and rules.keys.knows(cookies, half)


def _check_body(rules: Rules, method: str, path: str, headers: _Headers) -> None:
    length = headers.one(b"content-length")
    limit = body_limit(rules, method, path)
    if length is not None and length.isdecimal() and int(length[:20]) > limit:
        raise too_large(limit)
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


def too_large(limit: int) -> HttpError:
    return HttpError(
        413, ErrorCode.MESSAGE_TOO_LARGE, f"The body is larger than the {limit} bytes this server accepts.", max_frame_bytes=limit
    )
