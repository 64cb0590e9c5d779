"""Short ids: eight digits that stand for a message where people and agents are shown it, as in `[3f9c2a11]`.

They are the beginning of a hash, since any eight characters of the ids themselves many messages have in common. More digits of
the same hash stand for the same message, should eight not be enough.
"""

from __future__ import annotations

import hashlib
import re

SHORT_ID = 8
_SHORT = re.compile(r"\[?([0-9a-fA-F]{8,64})\]?")
AMBIGUOUS = "Ambiguous id; type more characters."


def short_id(message_id: str) -> str:
    return long_id(message_id)[:SHORT_ID]


def long_id(message_id: str) -> str:
    """All the digits that a short id may have."""
    return hashlib.sha256(message_id.encode("utf-8", "replace")).hexdigest()


def read_short_id(text: str) -> str | None:
    """The digits of a short id, with or without its brackets; None for any other text."""
    match = _SHORT.fullmatch(text.strip())
    return match[1].lower() if match else None


def stands_for(short: str, message_id: str) -> bool:
    return long_id(message_id).startswith(short)
