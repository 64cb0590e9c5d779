"""Ids of opencode's own form for what we hand over: a time and a tail.

The time puts a message where it belongs, should two be stored in the same millisecond. The tail is made from the message
and a secret of this run of the program, so that a later wrapper knows its own again, and takes no other agent's for it:
a message to several has the same id everywhere, and sessions of one project are seen by all.
"""

from __future__ import annotations

import hashlib
import string

from msgspec import Struct

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_TAIL = 14
_STEPS = 0x1000  # ids within a millisecond
_TIME_BITS = 48  # opencode keeps so many of the time, twelve digits


class HandedIds(Struct, frozen=True):
    message: str
    part: str


class IdMaker:
    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._last = 0

    def tail(self, uuid: str) -> str:
        number = int.from_bytes(hashlib.sha256(f"{self._secret}:{uuid}".encode()).digest(), "big")
        digits = []
        for _ in range(_TAIL):
            number, digit = divmod(number, len(_DIGITS))
            digits.append(_DIGITS[digit])
        return "".join(digits)

    def make(self, uuid: str, now_ms: int) -> HandedIds:
        """Later ones are greater, also when the clock is not."""
        self._last = max(self._last + 1, now_ms * _STEPS)
        name = f"{self._last % (1 << _TIME_BITS):012x}{self.tail(uuid)}"
        return HandedIds(f"msg_{name}", f"prt_{name}")
