"""The `ref`s of a client's last messages, for a refusal that comes later than the message."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
from msgspec import Raw

_MOST = 64
_MOST_BYTES = 65_536  # as they were written: what they would take once they are read can be thirty times that

_decode = msgspec.json.Decoder().decode


class Refs:
    """By the id that the relay knows a message under. Beyond the limits the oldest are forgotten, never the newest."""

    __slots__ = ("_by_id", "_bytes", "_order")

    def __init__(self) -> None:
        self._by_id: dict[str, bytes] = {}
        self._order: deque[str] = deque()
        self._bytes = 0

    def keep(self, message_id: str, ref: Raw) -> None:
        text = bytes(ref)  # a copy of its own: `ref` keeps the whole frame alive
        self._by_id[message_id] = text
        self._order.append(message_id)
        self._bytes += len(text)
        while len(self._order) > _MOST or (self._bytes > _MOST_BYTES and len(self._order) > 1):
            self._bytes -= len(self._by_id.pop(self._order.popleft()))

    def find(self, message_id: str) -> Any:
        text = self._by_id.get(message_id)
        return None if text is None else _decode(text)
