"""Answering a dialog on the screen, as a person would: move the selection to an option, see it there, press Enter.

`DialogAnswer` decides and does no input or output: `step` is given what is seen and says what to do. Rules it keeps:

- Nothing is pressed unless the dialog on the screen is the one that was asked about. When it is another, or gone, it is over.
- One key at a time. What each one did is seen before the next is pressed, so that none can meet something it was not meant for.
- Enter is pressed when the option that is meant is seen to be selected, or its letter to stand there.
- A second Enter is pressed only after the selection was seen to move away and back: then the first one was read and lost. One
  that is merely late would answer whatever comes next.
- A person who types is faster, and right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from agent_relay.terminal.backends.terminal import Key, Terminal, TerminalEnded
from agent_relay.terminal.delivery.injection import PERSON_S, POLL_S, SCROLLED_BACK_S
from agent_relay.terminal.doors.door import Decision, DoorError, NotOpen
from agent_relay.terminal.output.watcher import Watcher
from agent_relay.terminal.profiles.profile import Dialog, Profile
from agent_relay.terminal.requests.choices import choose, word_for
from agent_relay.terminal.screen.contents import Screen
from agent_relay.terminal.screen.dialogs import OpenDialog, looks_of

PATIENCE_S = 10.0  # for a person to stop typing
STEADY_S = 0.5  # a screen half drawn shows no dialog, or another one; slow CLIs take as long for a drawing
KEY_S = 5.0  # for what a key did to be seen
CLOSE_S = 5.0  # for the dialog to close after Enter
MAX_ENTERS = 2
_ROUNDING_S = 1e-6  # a time that was computed is met, though the sum is a hair off


class DialogView(Struct, frozen=True):
    """A dialog as it is seen at one moment; times in seconds."""

    t: float
    dialog: OpenDialog | None
    typed_s: float | None = None  # since the person's last key
    is_reading_back: bool = False


class Press(Struct, frozen=True):
    key: Key


class Type(Struct, frozen=True):
    characters: str  # one, or a whole text of one's own


class Wait(Struct, frozen=True):
    until: float


class Answered(Struct, frozen=True):
    """The dialog closed after our answer."""


class Gone(Struct, frozen=True):
    """There is nothing to answer any more."""

    reason: str


class Failed(Struct, frozen=True):
    """The dialog is still open, and nothing more is pressed."""

    reason: str


Step: TypeAlias = Press | Type | Wait | Answered | Gone | Failed


class _Phase(Enum):
    READY = 1  # every key that was pressed has been seen to work
    MOVING = 2
    TYPING = 3
    ENTERED = 4


class DialogAnswer:
    """One answer to one dialog. Choosing the option may raise DoorError."""

    def __init__(self, profile: Profile, digest: str, decision: Decision) -> None:
        self._profile = profile
        self._digest = digest
        self._decision = decision
        self._phase = _Phase.READY
        self._began_t: float | None = None
        self._first_key_t: float | None = None
        self._key_t = 0.0
        self._other_t: float | None = None  # since when the dialog is not to be seen
        self._moved_from: int | None = None
        self._moves = 0
        self._typed = ""
        self._enters = 0
        self._entered_top = 0
        self._has_left_reason_out = False

    def step(self, sight: DialogView) -> Step:
        self._began_t = sight.t if self._began_t is None else self._began_t
        dialog = sight.dialog
        if dialog is None or dialog.digest != self._digest:
            return self._miss(sight)
        self._other_t = None
        look = looks_of(self._profile)[dialog.look]
        word = word_for(look, dialog, self._decision)
        if self._phase is _Phase.ENTERED:
            return self._check_closed(sight, dialog, look)
        person = self._check_person(sight)
        if person is not None:
            return person
        if word:
            return self._type(sight, dialog, word)
        target = choose(look, dialog, self._decision)
        if look.escape_denies and not self._decision.is_allowed:
            return self._end_with(Key.ESCAPE, sight, dialog)
        return self._move(sight, dialog, look, target)

    def _miss(self, sight: DialogView) -> Step:
        was_refused = self._enters > 0 and not self._decision.is_allowed
        if was_refused and sight.dialog is not None and looks_of(self._profile)[sight.dialog.look].asks_for_reason:
            return self._leave_reason_out(sight)
        self._other_t = sight.t if self._other_t is None else self._other_t
        if sight.t - self._other_t + _ROUNDING_S < STEADY_S:
            return Wait(sight.t + POLL_S)
        if self._enters or self._typed:  # some programs take the letter and do not wait for Enter
            return Answered()
        return Gone("The dialog is no longer on the screen.")

    def _leave_reason_out(self, sight: DialogView) -> Step:
        """The question that came up after our refusal: it is over once that is gone as well."""
        if self._check_person(sight) is not None:
            return Answered()  # whoever is there gives the reason
        if self._has_left_reason_out:
            return self._await(sight, "It was refused, and the question for the reason is still open.")
        self._has_left_reason_out = True
        self._note_key(sight)
        return Press(Key.ENTER)

    def _check_person(self, sight: DialogView) -> Step | None:
        typed_s = sight.typed_s
        if self._first_key_t is not None:
            has_typed = typed_s is not None and typed_s < sight.t - self._first_key_t
            return Failed("A person typed at the terminal meanwhile and decides.") if has_typed else None
        is_typing = typed_s is not None and typed_s < PERSON_S
        is_reading = sight.is_reading_back and (typed_s is None or typed_s < SCROLLED_BACK_S)
        if not is_typing and not is_reading:
            return None
        if self._began_t is not None and sight.t - self._began_t + _ROUNDING_S >= PATIENCE_S:
            return Failed("A person is at the terminal and decides.")
        return Wait(sight.t + POLL_S)

    # --- a selection that is moved -------------------------------------------------------------------------------------

    def _move(self, sight: DialogView, dialog: OpenDialog, look: Dialog, target: int) -> Step:
        selected = dialog.selected
        if self._phase is _Phase.MOVING and (selected is None or selected == self._moved_from):
            return self._await(sight, "A key was pressed, but the selection did not move.")
        if selected is None:
            self._key_t = self._began_t if self._began_t is not None else sight.t
            return self._await(sight, "It cannot be seen which option is selected.")
        if selected == target:
            return self._enter(sight, dialog)
        if self._moves == 3 * len(dialog.options):
            return Failed("The selection moves, but not to the chosen option.")
        return self._press_arrow(sight, look, selected, is_forward=target > selected)

    def _press_arrow(self, sight: DialogView, look: Dialog, selected: int, *, is_forward: bool) -> Step:
        self._phase = _Phase.MOVING
        self._moves += 1
        self._moved_from = selected
        self._note_key(sight)
        if look.option_row:
            return Press(Key.RIGHT if is_forward else Key.LEFT)
        return Press(Key.DOWN if is_forward else Key.UP)

    # --- a letter, a word or a number ----------------------------------------------------------------------------------

    def _type(self, sight: DialogView, dialog: OpenDialog, word: str) -> Step:
        if _seen(dialog.typed) != _seen(self._typed):
            if not self._typed:
                return Failed(f"{dialog.typed!r} is already typed after the question: a person began to answer it.")
            return self._await(sight, "A letter was typed, but it did not appear.")
        if self._typed == word:
            return self._enter(sight, dialog)
        self._phase = _Phase.TYPING
        characters = word if dialog.takes_text else word[len(self._typed)]
        self._typed += characters
        self._note_key(sight)
        return Type(characters)

    # --- Enter, and what comes of it -----------------------------------------------------------------------------------

    def _enter(self, sight: DialogView, dialog: OpenDialog) -> Step:
        return self._end_with(Key.ENTER, sight, dialog)

    def _end_with(self, key: Key, sight: DialogView, dialog: OpenDialog) -> Step:
        self._phase = _Phase.ENTERED
        self._enters += 1
        self._entered_top = dialog.top
        self._note_key(sight)
        return Press(key)

    def _check_closed(self, sight: DialogView, dialog: OpenDialog, look: Dialog) -> Step:
        if dialog.top != self._entered_top:
            return Answered()  # the same question, asked again further down
        if sight.t - self._key_t + _ROUNDING_S < CLOSE_S:
            return Wait(sight.t + POLL_S)
        selected = dialog.selected
        is_escape = look.escape_denies and not self._decision.is_allowed  # one that is late would end what comes next
        is_lost = not is_escape and self._enters < MAX_ENTERS and selected is not None and len(dialog.options) > 1
        if is_lost and selected is not None and self._check_person(sight) is None:
            return self._press_arrow(sight, look, selected, is_forward=selected == 0)
        return Failed(f"{'Escape' if is_escape else 'Enter'} was pressed, but the dialog is still open.")

    def _note_key(self, sight: DialogView) -> None:
        self._key_t = sight.t
        self._first_key_t = sight.t if self._first_key_t is None else self._first_key_t

    def _await(self, sight: DialogView, complaint: str) -> Step:
        return Wait(sight.t + POLL_S) if sight.t - self._key_t + _ROUNDING_S < KEY_S else Failed(complaint)


def _seen(typed: str) -> str:
    """Text of it that can be compared: marks at its end may be the prompt's own."""
    return " ".join(typed.split()).strip(" :>?")


class ScreenAnswerer:
    """`read` reads the screen and tells the watcher. `keyboard` is held from each look to the key that follows from it: whoever
    else types at this terminal holds it in the same way."""

    def __init__(
        self,
        terminal: Terminal[Screen],
        watcher: Watcher,
        profile: Profile,
        read: Callable[[], Awaitable[None]],
        keyboard: asyncio.Lock | None = None,
    ) -> None:
        self._terminal = terminal
        self._watcher = watcher
        self._profile = profile
        self._read = read
        self._keyboard = keyboard or asyncio.Lock()
        self._turn = asyncio.Lock()

    async def answer(self, digest: str, decision: Decision) -> None:
        """Returns when the dialog was seen to close. Raises NotOpen when it is not there (any more), DoorError when it is, but
        could not be answered."""
        answering = DialogAnswer(self._profile, digest, decision)
        async with self._turn:
            try:
                await self._carry_out(answering)
            except TerminalEnded:
                raise NotOpen("The program has ended.") from None

    async def _carry_out(self, answering: DialogAnswer) -> None:
        while True:
            async with self._keyboard:
                step = answering.step(await self._look())
                match step:
                    case Press(key):
                        await self._terminal.press(key)
                    case Type(characters):
                        await self._terminal.write(characters.encode())
            match step:
                case Wait(until):
                    await asyncio.sleep(until - asyncio.get_running_loop().time())
                case Answered():
                    return
                case Gone(reason):
                    raise NotOpen(reason)
                case Failed(reason):
                    raise DoorError(reason)

    async def _look(self) -> DialogView:
        person = await self._terminal.person()
        await self._read()  # last: nothing may stand between the reading and the key
        return DialogView(
            t=asyncio.get_running_loop().time(),
            dialog=self._watcher.dialog,
            typed_s=None if person.typed_ms_ago is None else person.typed_ms_ago / 1000,
            is_reading_back=person.is_attached and person.is_scrolled_back,
        )
