"""The ledger of a door: what was handed over and not read so far, and the words by which a CLI's record shows it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from msgspec import Struct

from agent_relay.protocol.short_ids import short_id
from agent_relay.terminal.doors.door import DoorListener, DoorMessage
from agent_relay.terminal.output.observations import Observation


class Handed(Struct):
    """A message that the CLI was given."""

    message: DoorMessage
    at: float = 0.0  # by the clock of the event loop
    is_taken: bool = False  # the CLI was seen to have it, so that it may be missed
    is_refused: bool = False  # a person may still let it in
    is_at_end: bool = False  # given with the end of a turn, not with a tool


H = TypeVar("H", bound=Handed)


class HandoverLedger(Generic[H]):
    """In the order of handing over, by the ids that the CLI knows them by, which are the messages' own where none is named."""

    def __init__(self, listener: DoorListener[Observation]) -> None:
        self._listener = listener
        self._handed: dict[str, H] = {}
        self._is_closed = False

    def __iter__(self) -> Iterator[H]:
        """Over a copy: what is read meanwhile may go."""
        return iter(list(self._handed.values()))

    def __bool__(self) -> bool:
        return bool(self._handed)

    def __contains__(self, key: object) -> bool:
        return key in self._handed

    def add(self, handed: H, key: str = "") -> H:
        self._handed[key or handed.message.uuid] = handed
        return handed

    def get(self, key: str) -> H | None:
        return self._handed.get(key)

    def drop(self, key: str) -> H | None:
        """It is not looked for any more."""
        return self._handed.pop(key, None)

    def take_all(self) -> list[DoorMessage]:
        """All of them, which are not looked for any more."""
        messages = [handed.message for handed in self._handed.values()]
        self._handed.clear()
        return messages

    def find(self, text: str, key: str = "") -> list[H]:
        """The one of this id; where there is none, those that this text shows."""
        named = self._handed.get(key)
        return [named] if named is not None else [handed for handed in self if is_in(handed.message, text)]

    def read(self, key: str, evidence: str) -> H | None:
        """The agent has it. It is told once, and not after the door was closed."""
        handed = self._handed.pop(key, None)
        if handed is not None and not self._is_closed:
            self._listener.door_read(handed.message.id, evidence)
        return handed

    def close(self) -> None:
        """Nothing is told any more."""
        self._is_closed = True


def mark_of(message: DoorMessage) -> str:
    """Stands in every text by which a message is handed in, and in no other."""
    return f"[{short_id(message.id)}]"


def is_in(message: DoorMessage, text: str) -> bool:
    """Notices of the relay itself have no mark, but a text of their own."""
    return mark_of(message) in text or message.text in text
