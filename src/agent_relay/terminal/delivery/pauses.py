"""Keeping messages from an agent for a while: until somebody says otherwise, or until a time that was given has passed.

The second is for whoever takes the keyboard. They ask again and again; when they are gone, the agent gets its messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Pauses:
    """`tell` is called with whether the agent is kept from its messages, by whom, and whether only while somebody has its
    keyboard, whenever that may have changed."""

    def __init__(self, tell: Callable[[bool, str, bool], None]) -> None:
        self._tell = tell
        self._is_paused = False
        self._by = ""
        self._timer: asyncio.TimerHandle | None = None

    def pause(self, for_ms: int | None = None, by: str = "") -> None:
        """With a time, it takes the place of the one before; none at all ends it. The other kind of pause stays."""
        if for_ms is None:
            self._is_paused, self._by = True, by
        else:
            self._stop_timer()
            if for_ms:
                self._timer = asyncio.get_running_loop().call_later(for_ms / 1000, self._run_out)
        self._tell_all()

    def resume(self) -> None:
        """Ends both kinds."""
        self._is_paused = False
        self._stop_timer()
        self._tell_all()

    def _run_out(self) -> None:
        self._timer = None
        self._tell_all()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell_all(self) -> None:
        has_keyboard = not self._is_paused and self._timer is not None
        self._tell(self._is_paused or has_keyboard, self._by if self._is_paused else "", has_keyboard)
