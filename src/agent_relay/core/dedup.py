"""The ids a sender has used: the same SEND twice is one message and two identical answers."""

from __future__ import annotations

from agent_relay.protocol.ulid import time_of_number


class DedupWindow:
    """From client id to the number of the message it became; what its receipt said is in the store, under that number.

    Kept in two generations: when the younger one is full it becomes the older one and the oldest ids are let go all at
    once. So at least `capacity` ids are remembered, at the price of two dictionaries and nothing per message.

    After a restart those of an agent are read from the store when it comes.
    """

    __slots__ = ("capacity", "is_complete", "older", "younger")

    def __init__(self, capacity: int, *, is_complete: bool = True) -> None:
        self.capacity = capacity
        self.is_complete = is_complete  # no other id was used
        self.younger: dict[str, int] = {}
        self.older: dict[str, int] = {}

    def find(self, client_id: str, since_wall_ms: int) -> int | None:
        """The message's number, unless it is older than `since_wall_ms`: then the id may be used anew."""
        number = self.younger.get(client_id)
        if number is None:
            number = self.older.get(client_id)
            if number is None:
                return None
        return number if time_of_number(number) >= since_wall_ms else None

    def remember(self, client_id: str, number: int) -> None:
        self.younger[client_id] = number
        if len(self.younger) >= self.capacity:
            self.older, self.younger = self.younger, {}

    def complete(self, ids: dict[str, int], first_number: int) -> None:
        """These were used before any that is here; those of messages before that number are somebody else's."""
        self.older = {client_id: number for client_id, number in ids.items() if number >= first_number} | self.older
        self.is_complete = True

    def __len__(self) -> int:
        return len(self.younger) + len(self.older)
