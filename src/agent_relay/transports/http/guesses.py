"""Wrong tokens: whoever tries many is kept waiting for each answer, longer and longer.

Only guesses count: a client that shows the same wrong token again learns nothing by it. A right token is never kept waiting,
whoever else guesses from the same address, for otherwise a stranger on this machine could lock its owner out.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from msgspec import Struct

from agent_relay.protocol.errors import ErrorCode
from agent_relay.transports.http.errors import HttpError
from agent_relay.transports.source import source_of

FREE = 8  # different ones that cost nothing: people mistype
FIRST_S = 0.1
LONGEST_S = 5.0
FORGOTTEN_MS = 600_000
MOST_ADDRESSES = 1_024
MOST_WAITING = 64  # answers that are held back at the same time, in all
_REMEMBERED = 16


class _Record(Struct):
    count: int = 0
    last: list[int] = []  # the newest guesses, hashed
    at: int = 0


class Guesses:
    def __init__(self, steady_ms: Callable[[], int], sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._steady_ms = steady_ms
        self._sleep = sleep
        self._waiting = 0
        self._records: OrderedDict[str, _Record] = OrderedDict()  # whoever guessed last stands last

    async def punish(self, address: str, guess: str) -> None:
        """Returns when the answer may be given. Raises HttpError where too many wait for theirs already."""
        delay_s = self._note(source_of(address), hash(guess))
        if not delay_s:
            return
        if self._waiting >= MOST_WAITING:
            raise HttpError(
                429, ErrorCode.RATE_LIMITED, "Too many wrong tokens; wait a moment.", retry_after_ms=round(delay_s * 1_000)
            )
        self._waiting += 1
        try:
            await self._sleep(delay_s)
        finally:
            self._waiting -= 1

    def _note(self, who: str, guess: int) -> float:
        now = self._steady_ms()
        record = self._records.get(who)
        if record is None or now - record.at >= FORGOTTEN_MS:
            record = self._records[who] = _Record()
        self._records.move_to_end(who)
        if len(self._records) > MOST_ADDRESSES:
            self._records.popitem(last=False)
        record.at = now
        if guess in record.last:
            return 0.0
        record.count += 1
        record.last = [*record.last, guess][-_REMEMBERED:]
        over = record.count - FREE
        return 0.0 if over <= 0 else min(LONGEST_S, FIRST_S * 2 ** min(over - 1, 30))
