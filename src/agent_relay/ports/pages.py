"""The pages for people who watch, as whoever serves them asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class Asset(Struct, frozen=True):
    content: bytes
    media: str
    etag: str  # with its quotes
    packed: bytes = b""  # the content by gzip, where that is worth it


class Assets(Protocol):
    """Files that anybody may read. Blocks."""

    def find(self, path: str) -> Asset | None:
        """`views/terminals.js`; None where there is no such file."""
        ...


class KeyShelf(Protocol):
    """The shelf for the hashes of the page's keys, each with the time of its last use. Both are quick; neither raises."""

    def load(self) -> dict[str, int]: ...

    def save(self, keys: Mapping[str, int]) -> None: ...
