"""Prompts for an ACP agent: messages and a person's lines, one turn each, in the order they came.

A message is read once its turn has begun, which the first sign of that turn shows, or its end. It is given to the agent once:
what was given when the agent ended is looked for in the session that is gone on with, and only given again if it is not there.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable

from msgspec import Struct

from agent_relay.terminal.doors.acp import wire
from agent_relay.terminal.doors.door import DoorMessage, Whereabouts
from agent_relay.terminal.doors.ledger import mark_of

TURN, HISTORY = "turn", "history"  # by what it was seen to be read
_REMEMBERED = 2_000

Tell = Callable[[wire.Event], None]


class Prompt(Struct, eq=False):
    """`message`: none for what a person typed here."""

    text: str
    message: DoorMessage | None = None
    is_read: bool = False


class Prompts:
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._waiting: deque[Prompt] = deque()
        self._woken = asyncio.Event()
        self._over: OrderedDict[str, str] = OrderedDict()  # messages that the agent has; with a reason: that were given up
        self.current: Prompt | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    async def next(self) -> Prompt:
        """The one whose turn it is from now on."""
        while not self._waiting:
            self._woken.clear()
            await self._woken.wait()
        self.current = self._waiting.popleft()
        return self.current

    # --- what comes in ---------------------------------------------------------------------------------------------------

    def add_line(self, text: str) -> None:
        self._add(Prompt(text))

    def add_message(self, message: DoorMessage) -> str:
        """In a few words, what was done with it. It is taken once, however often it comes."""
        if message.id in self._over:
            reason = self._over[message.id]
            self._tell(wire.Rejected(message.id, reason) if reason else wire.Read(message.id, TURN))
            return "refused before" if reason else "the agent had it before"
        if self._find(message.id) is None:
            self._add(Prompt(message.text, message))
        return "next prompt" if len(self._waiting) == 1 and self.current is None else "waits for the end of the turn"

    def _add(self, prompt: Prompt) -> None:
        self._waiting.append(prompt)
        self._woken.set()

    def look_up(self, message: DoorMessage) -> Whereabouts:
        if self._over.get(message.id) == "":
            return Whereabouts.READ
        return Whereabouts.HELD if self._find(message.id) is not None else Whereabouts.NOWHERE

    def _find(self, message_id: str) -> Prompt | None:
        mine = [*self._waiting, *([self.current] if self.current is not None else [])]
        return next((each for each in mine if each.message is not None and each.message.id == message_id), None)

    # --- what becomes of it ----------------------------------------------------------------------------------------------

    def note_read(self, evidence: str = TURN) -> None:
        """The turn of the current one has begun."""
        prompt = self.current
        if prompt is None or prompt.is_read:
            return
        prompt.is_read = True
        if prompt.message is not None:
            self._remember(prompt.message.id)
            self._tell(wire.Read(prompt.message.id, evidence))

    def end(self) -> None:
        self.current = None

    def give_up(self, reason: str) -> None:
        """The agent refused the current one before it did anything for it: the sender is told."""
        prompt, self.current = self.current, None
        if prompt is not None and prompt.message is not None and not prompt.is_read:
            self._remember(prompt.message.id, reason)
            self._tell(wire.Rejected(prompt.message.id, reason))

    def begin_again(self, history: list[str]) -> None:
        """The agent was started again, in a session that was given this before. What it has not had comes first again."""
        prompt = self.current
        if prompt is not None and _was_given(prompt, history):
            self.note_read(HISTORY)
        self.current = None
        if prompt is not None and not prompt.is_read:
            self._waiting.appendleft(prompt)
            self._woken.set()

    def is_in(self, prompt: Prompt, history: list[str]) -> bool:
        """Whether the session was given it before, by a console that has died since; then it is read."""
        if not _was_given(prompt, history):
            return False
        self.note_read(HISTORY)
        self.current = None
        return True

    def _remember(self, message_id: str, reason: str = "") -> None:
        self._over[message_id] = reason
        if len(self._over) > _REMEMBERED:
            self._over.popitem(last=False)


def _was_given(prompt: Prompt, history: list[str]) -> bool:
    """By the mark that stands in every text by which a message is handed in, and in no other."""
    if prompt.message is None:
        return False
    mark = mark_of(prompt.message)
    return any(mark in text for text in history)
