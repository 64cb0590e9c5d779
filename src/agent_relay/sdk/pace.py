"""The pace of a client that slows itself down: a message to a busy recipient waits here until there is room, and never for long.

The daemon says BUSY when a recipient's queue is 80 % full, and again when it has come down to half. In between, each message to
that recipient waits for the second word, at most as long as the daemon advises and `longest_s` allows. Then it is sent: the
daemon decides whether there is room.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from agent_relay.protocol.names import fold_name
from agent_relay.protocol.payloads import BusyPayload

SLOW_DOWN_S = 5.0  # longer, and whoever sends takes the client for stuck
_log = logging.getLogger("agent_relay.sdk")


class Pace:
    def __init__(self, longest_s: float) -> None:
        self.busy: dict[str, BusyPayload] = {}  # by name, as the daemon spells it
        self._longest_s = longest_s
        self._room: dict[str, asyncio.Event] = {}  # by name; set when there is room again

    def note(self, said: BusyPayload) -> None:
        key = fold_name(said.to)
        if said.cleared:
            self.busy.pop(said.to, None)
            self._admit(key)
            return
        self.busy[said.to] = said
        if key not in self._room:
            self._room[key] = asyncio.Event()
            _log.info(
                "%s is busy, %d of %d messages wait: sending to it slows down", said.to, said.queue_depth, said.queue_capacity
            )

    def clear(self) -> None:
        """Nothing is known any more: the connection is another one, or there is none."""
        self.busy.clear()
        for key in list(self._room):
            self._admit(key)

    async def ease(self, to: str | Sequence[str] | None) -> int:
        """Returns when the next message may go, and how many milliseconds that took. What goes to many does not wait: the daemon
        skips those that are full, and says so."""
        started = asyncio.get_running_loop().time()
        for said, room in self._busy_among([to] if isinstance(to, str) else to or ()):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(started + min(said.retry_after_ms / 1000, self._longest_s)):
                    await room.wait()
        return round((asyncio.get_running_loop().time() - started) * 1000)

    def _busy_among(self, names: Sequence[str]) -> list[tuple[BusyPayload, asyncio.Event]]:
        wanted = {fold_name(name) for name in names}
        return [(said, self._room[key]) for name, said in self.busy.items() if (key := fold_name(name)) in wanted]

    def _admit(self, key: str) -> None:
        room = self._room.pop(key, None)
        if room is not None:
            room.set()
