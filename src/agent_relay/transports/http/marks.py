"""Marks of what the owner has seen and put aside, the same in each of their browsers: names, each with a moment.

What the names mean is the page's: how far a conversation was read, what is done, what is to come back later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from agent_relay.ports.documents import Shelf
from agent_relay.protocol.errors import ErrorCode, RelayError

MOST_MARKS = 5_000  # about half a megabyte; beyond that the oldest are forgotten, which shows old messages as new


class Mark(Struct, frozen=True, omit_defaults=True):
    """Of two marks of one name the later counts, whichever browser says it first. `until`: it comes back then."""

    at: int
    until: int | None = None


class Marks:
    def __init__(self, shelf: Shelf, wall_ms: Callable[[], int]) -> None:
        self._shelf = shelf
        self._found: dict[str, Mark] | None = None
        self._version = wall_ms()  # another daemon's marks have another one

    @property
    def version(self) -> int:
        """Goes up with every change."""
        return self._version

    def all(self) -> dict[str, Mark]:
        if self._found is None:
            self._found = self._load()
        return self._found

    def change(self, said: Mapping[str, Mark], gone: list[str]) -> None:
        """Raises RelayError."""
        before = self.all()
        newer = {name: mark for name, mark in said.items() if name not in before or before[name].at <= mark.at}
        after = {name: mark for name, mark in (before | newer).items() if name not in gone}
        if after == before:
            return
        if len(after) > MOST_MARKS:
            after = dict(sorted(after.items(), key=lambda item: item[1].at)[-MOST_MARKS:])
        try:
            self._shelf.save(msgspec.json.encode(after) + b"\n")
        except OSError as error:
            sentence = f"What you have seen could not be saved ({error.strerror or error})."
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, sentence) from None
        self._found = after
        self._version += 1

    def _load(self) -> dict[str, Mark]:
        """Unreadable ones are as good as none: everything is new once more."""
        try:
            return msgspec.json.decode(self._shelf.load() or b"{}", type=dict[str, Mark])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}
