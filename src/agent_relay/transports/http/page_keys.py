"""Keys by which the dashboard's page gets in, and stays in: a code that works once and for a minute, exchanged for a key.

A key has two halves. One is a cookie that scripts cannot read. A browser sends the cookies of 127.0.0.1 to every port of this
machine, also to a server of another user; so the page keeps the other half where only pages of this very port find it, and
sends it in a header. Of both together only a hash is kept, so that a key is good over restarts and cannot be read from disk.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

from msgspec import Struct

from agent_relay.ports.pages import KeyShelf

CODE_MS = 60_000
DAY_MS = 86_400_000
UNUSED_MS = 30 * DAY_MS
COOKIE_S = 400 * 86_400  # as long as browsers allow; we end it earlier
PAGE_HEADER = "x-relay-page"
_MOST_CODES = 32
_MOST_KEYS = 64  # browsers of one person
_MOST_COOKIES = 4  # of that name that are looked at in one request


class PageCode(Struct, frozen=True):
    code: str
    expires_at: int  # by the wall clock, as people are told it


class PageKey(Struct, frozen=True):
    cookie: str
    half: str


class PageKeys:
    """`name` is the cookie's, and must be this relay's own: relays at other ports of the same host share cookies."""

    def __init__(self, shelf: KeyShelf, name: str, steady_ms: Callable[[], int], wall_ms: Callable[[], int]) -> None:
        self.name = name
        self._shelf = shelf
        self._steady_ms = steady_ms
        self._wall_ms = wall_ms
        self._codes: dict[str, int] = {}  # hash → until when, by the steady clock
        self._used: dict[str, int] = shelf.load()  # hash → when it was used last, to the day

    def new_code(self) -> PageCode:
        code = secrets.token_urlsafe(16)
        now = self._steady_ms()
        self._codes = {each: until for each, until in self._codes.items() if until > now}
        while len(self._codes) >= _MOST_CODES:
            del self._codes[next(iter(self._codes))]
        self._codes[_hash(code)] = now + CODE_MS
        return PageCode(code, self._wall_ms() + CODE_MS)

    def take_code(self, code: str) -> bool:
        """Whether it was good. It is not any more."""
        until = self._codes.pop(_hash(code), None)
        return until is not None and until > self._steady_ms()

    def new_key(self) -> PageKey:
        key = PageKey(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        self._used[_hash(key.cookie, key.half)] = self._wall_ms()
        while len(self._used) > _MOST_KEYS:
            del self._used[min(self._used, key=self._used.__getitem__)]
        self._shelf.save(self._used)
        return key

    def knows(self, cookies: str, half: str) -> bool:
        """`cookies` as the browser sends them."""
        return any(self._is_good(_hash(cookie, half)) for cookie in self._values(cookies))

    def _values(self, cookies: str) -> list[str]:
        pairs = (part.strip().partition("=") for part in cookies.split(";"))
        return [value for name, _, value in pairs if name == self.name][:_MOST_COOKIES]

    def _is_good(self, key: str) -> bool:
        used, now = self._used.get(key), self._wall_ms()
        if used is None:
            return False
        if now - used >= UNUSED_MS:
            del self._used[key]
            self._shelf.save(self._used)
            return False
        if now - used >= DAY_MS:
            self._used[key] = now
            self._shelf.save(self._used)
        return True

    def forget(self) -> int:
        """Every browser has to come in anew; how many there were."""
        count = len(self._used)
        self._used.clear()
        self._codes.clear()
        self._shelf.save(self._used)
        return count

    def cookie(self, key: PageKey, *, secure: bool) -> str:
        """The value of Set-Cookie."""
        tail = "; Secure" if secure else ""
        return f"{self.name}={key.cookie}; Path=/; Max-Age={COOKIE_S}; HttpOnly; SameSite=Strict{tail}"


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
