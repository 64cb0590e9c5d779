"""Requests that come again, because the first answer was lost on the way: they get that answer, and nothing is done twice.

The client names what it wants done once: by the header `Idempotency-Key`, or by `id` in the body of a message. Here the answers
of this life of the daemon are kept. Messages are known under their key in the store as well, as those of the socket are under
their id, so a repeat after a crash is found there (`core.owner_message`).
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from agent_relay.ports.service import KeyReused
from agent_relay.protocol.encode import encode_json
from agent_relay.transports.http.errors import invalid

KEY_HEADER = "Idempotency-Key"
KEY = "[!-~]{1,120}"  # what an id on the wire may be, and no space, which those that the daemon makes for itself have
_KEY = re.compile(KEY, re.ASCII)
_MOST = 4_096  # answers that are kept, of a few hundred bytes each; of messages the store knows the older ones
_LOOKED_AT = 64  # of the oldest, at each new one
_KEPT_MS = 24 * 3_600_000  # as long as ids of messages are remembered by default


def read_key(headers: Mapping[str, str], body: Any) -> str | None:
    """None: nothing is said of repeats. A structured header puts its text in quotes; both ways are read."""
    said: str | None = headers.get(KEY_HEADER.lower())
    named: str | None = getattr(body, "id", None)
    if said is None:
        return named
    key = said[1:-1] if len(said) > 1 and said[0] == said[-1] == '"' else said
    if _KEY.fullmatch(key) is None:
        raise invalid(KEY_HEADER, f"`{KEY_HEADER}` must be 1 to 120 visible ASCII characters; a UUID will do.")
    if named is not None and named != key:
        raise invalid("id", f"`id` and `{KEY_HEADER}` differ; send one of them, or the same in both.")
    return key


class _Kept(Struct):
    mark: bytes  # of what was asked
    at_ms: int
    answer: asyncio.Future[bytes]


class Repeats:
    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._kept: dict[str, _Kept] = {}  # by key; the oldest first

    def __len__(self) -> int:
        return len(self._kept)

    async def answer(self, key: str, address: str, body: Any, make: Callable[[], Awaitable[Any]]) -> bytes:
        """The first answer that `make` made for this key, as JSON. A refusal is not kept, since nothing was done."""
        mark = hashlib.sha256(address.encode() + b"\0" + _encode(body)).digest()
        found = self._kept.get(key)
        if found is not None and not self._is_old(found):
            if found.mark != mark:
                raise KeyReused(key)
            return await asyncio.shield(found.answer)
        self._make_room()
        answer = asyncio.ensure_future(_encoded(make))
        kept = self._kept[key] = _Kept(mark, self._wall_ms(), answer)
        answer.add_done_callback(lambda done: self._done(key, kept, done))
        return await asyncio.shield(answer)  # whoever asked may be gone; what they asked for is done all the same

    def _done(self, key: str, kept: _Kept, answer: asyncio.Future[bytes]) -> None:
        if (answer.cancelled() or answer.exception() is not None) and self._kept.get(key) is kept:
            del self._kept[key]

    def _make_room(self) -> None:
        for key, kept in list(islice(self._kept.items(), _LOOKED_AT)):
            if kept.answer.done() and (len(self._kept) >= _MOST or self._is_old(kept)):
                del self._kept[key]

    def _is_old(self, kept: _Kept) -> bool:
        return kept.answer.done() and self._wall_ms() - kept.at_ms > _KEPT_MS


async def _encoded(make: Callable[[], Awaitable[Any]]) -> bytes:
    return encode_json(await make())


def _encode(body: Any) -> bytes:
    """The same for two bodies that say the same, however they were written and wherever the key stood."""
    if getattr(body, "id", None) is not None:
        body = msgspec.structs.replace(body, id=None)
    return msgspec.json.encode(body, order="deterministic")
