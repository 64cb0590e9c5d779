"""Work that the daemon does again and again. An error of ours in one step is noted, and ends neither the others nor the next
time: without its ticks a relay looks alive, and never again tries, times out or writes down anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent_relay.daemon.logs import logger


class Pulse:
    """Steps, each with how many beats apart it is done."""

    def __init__(self, *steps: tuple[int, Callable[[], None]]) -> None:
        self._steps = steps
        self._beats = 0
        self._noted: dict[int, str] = {}  # by the step's place: the error that was noted last

    async def run(self, beat_s: float) -> None:
        while True:
            await asyncio.sleep(beat_s)
            self.beat()

    def beat(self) -> None:
        self._beats += 1
        for place, (apart, step) in enumerate(self._steps):
            if self._beats % apart == 0:
                self._do(place, step)

    def _do(self, place: int, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - whatever it is
            said = repr(error)
            if self._noted.get(place) != said:  # the same one every time would fill the log
                self._noted[place] = said
                logger.exception("internal_error")
        else:
            self._noted.pop(place, None)
