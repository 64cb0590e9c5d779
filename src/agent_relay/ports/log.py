"""The log of the core about its own work: names, ids, codes and reasons; never bodies or tokens."""

from __future__ import annotations

from typing import Protocol


class Log(Protocol):
    def note(self, what: str, **fields: object) -> None:
        """Something a person may want to know later: who came, who went and why, what could not be delivered."""
        ...
