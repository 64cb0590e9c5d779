"""A view of the agent's prompt for whoever types: what was seen of it, since when, and what happened meanwhile."""

from __future__ import annotations

import asyncio

from agent_relay.terminal.output.watcher import Watcher
from agent_relay.terminal.screen.contents import Screen
from agent_relay.terminal.screen.state import State


class PromptView:
    """Told of everything that happens at the terminal, after the watcher was told."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._changed = asyncio.Event()
        self._screen: Screen | None = None
        self._seen: tuple[object, ...] = ()
        self._awaited = ""  # words that prove the text was taken when the session file has them
        self.state_since = 0.0
        self.last_output = 0.0
        self.cursor_row = ""
        self.was_ready = False  # its prompt was recognised before
        self.is_heard = False  # the session file has what was typed
        self.last_enter = float("-inf")  # when we last pressed Enter
        self.person_typed_at = float("-inf")

    # --- what happens ----------------------------------------------------------------------------------------------------

    def note_output(self, t: float) -> None:
        self.last_output = t

    def note_person(self, t: float) -> None:
        """A person pressed a key."""
        self.person_typed_at = t
        self.wake()

    def note_screen(self, screen: Screen, t: float) -> None:
        position = screen.cursor.position if screen.cursor is not None else -1
        self.cursor_row = next((line.text for line in screen.lines if line.position == position), "")
        self._screen = screen
        state, composer = self._watcher.state, self._watcher.composer
        self.was_ready = self.was_ready or state is State.IDLE
        seen = (state, composer.draft if composer else None, self._watcher.dialog, self._watcher.doubt)
        if not self._seen or self._seen[0] is not state:
            self.state_since = t
        if seen != self._seen:
            self._seen = seen
            self.wake()

    def note_taken(self, text: str) -> None:
        """The session file has this as something the agent was given."""
        if self._awaited and self._awaited in text:
            self.is_heard = True
            self.wake()

    # --- what is seen ----------------------------------------------------------------------------------------------------

    @property
    def idle_s(self) -> float:
        """For how long the screen has shown the agent at its prompt."""
        if self._watcher.state is not State.IDLE or not self._seen:
            return 0.0
        return asyncio.get_running_loop().time() - self.state_since

    @property
    def is_full_screen(self) -> bool:
        return self._screen is not None and bool(self._screen.is_alternate)

    @property
    def is_at_own(self) -> bool:
        """Whether the cursor stands in, or right behind, what we typed, at a program without a composer."""
        if self._screen is None or self._watcher.composer is not None or not self._awaited:
            return False
        return self._watcher.is_own(self._screen)

    # --- for whoever types -------------------------------------------------------------------------------------------------

    def expect(self, mark: str) -> None:
        """A text with these words is typed from now on; empty: no more."""
        self._awaited = mark
        if mark:
            self.is_heard = False

    def wake(self) -> None:
        self._changed.set()

    def note_look(self) -> None:
        """Called by whoever types and looks now: what happens later wakes them."""
        self._changed.clear()

    async def wait_until(self, until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self._changed.wait()
        except TimeoutError:
            return
