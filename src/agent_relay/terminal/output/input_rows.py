"""Rows that hold what somebody typed, and not what the program said: known by where the prompt stood before it was typed.

A mark such as `>` or `$` before a line may be a prompt, a quotation or a bullet. It is a prompt where the composer was seen in
that very row, or held the same words; and what is typed to a program without a prompt stands where it waited for a line.
"""

from __future__ import annotations

from collections import deque

from agent_relay.terminal.profiles.profile import Composer, compile_pattern
from agent_relay.terminal.screen.contents import Screen
from agent_relay.terminal.screen.state import ScreenState

_REMEMBERED = 500  # rows, and drafts; what is on a screen is among the last of them
_LEAST_DRAFT = 3  # characters that tell a draft; fewer stand anywhere


class InputRows:
    def __init__(self, composer: Composer) -> None:
        self._row = compile_pattern(composer.row)
        self._prompts: deque[int] = deque(maxlen=_REMEMBERED)
        self._typed: deque[int] = deque(maxlen=_REMEMBERED)
        self._drafts: deque[str] = deque(maxlen=_REMEMBERED)
        self._waiting: int | None = None  # the row in which a program without a prompt waits for a line
        self._shown = ""  # what stood in it when it began to
        self.is_known = False  # rows keep their positions

    def note(self, screen: Screen, sight: ScreenState) -> None:
        self.is_known = screen.is_alternate is False and screen.cursor is not None
        self._note_waiting(screen, sight.waits_at)
        if sight.composer is None:
            return
        if sight.composer.top not in self._prompts:
            self._prompts.append(sight.composer.top)
        draft = sight.composer.draft
        if len(draft) >= _LEAST_DRAFT and draft not in self._drafts:
            self._drafts.append(draft)

    def _note_waiting(self, screen: Screen, position: int | None) -> None:
        """Takes what comes to stand in that row while the program waits on as typed."""
        text = next((line.text for line in screen.visible if line.position == position), "")
        if position is None or position != self._waiting:
            self._waiting, self._shown = position, text
        elif len(text) > len(self._shown):
            self.note_person()

    def note_person(self) -> None:
        """A person pressed a key."""
        if self._waiting is not None and self._waiting not in self._typed:
            self._typed.append(self._waiting)

    def holds(self, position: int, text: str) -> bool:
        """Whether that row was typed by somebody, as far as it can be told."""
        if position in self._typed:
            return True
        match = self._row.search(text)
        if match is None:
            return False
        draft = (match.groupdict().get("draft") or "").strip()
        return position in self._prompts or any(draft.startswith(known) for known in self._drafts)
