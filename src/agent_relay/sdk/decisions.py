"""Proposals whose end somebody waits for: woken by CONSENSUS, and by a connection that came back and may have missed it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator


class Wakening:
    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self, timeout_s: float) -> None:
        """Returns when there may be news, or after that time."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), timeout_s)
        self._event.clear()


class Decisions:
    def __init__(self) -> None:
        self._waiting: dict[str, list[Wakening]] = {}  # by the proposal's id

    @contextlib.contextmanager
    def watch(self, proposal_id: str) -> Iterator[Wakening]:
        wakening = Wakening()
        self._waiting.setdefault(proposal_id, []).append(wakening)
        try:
            yield wakening
        finally:
            others = self._waiting[proposal_id]
            others.remove(wakening)
            if not others:
                del self._waiting[proposal_id]

    def on_consensus(self, proposal_id: str) -> None:
        for wakening in self._waiting.get(proposal_id, ()):
            wakening.wake()

    def on_ready(self) -> None:
        self._wake_all()

    def on_closed(self) -> None:
        """Whoever waits asks once more, and hears why there is no answer."""
        self._wake_all()

    def _wake_all(self) -> None:
        for waiting in self._waiting.values():
            for wakening in waiting:
                wakening.wake()
