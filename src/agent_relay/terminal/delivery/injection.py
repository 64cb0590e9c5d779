"""Handing one text to an agent through its terminal, step by step: wait for the moment, paste, pause, Enter, see it taken.

No input or output, no clock: `step` is given what is seen and says what to do. Rules it keeps:

- It is typed at a composer that is recognised, or to a program that is seen to wait for a line from its terminal; never to one
  that would run it, nor to an unknown one that fills the screen, or that may be waiting for a decision.
- Nothing is typed into a dialog, nor while a person types or has a half-written draft in the composer.
- Before Enter it looks again: what changed since the paste may make Enter mean something else.
- Enter is pressed again when the text is seen to be still there; the text is pasted again only when it is seen to be gone.
- Taken is what is seen to be taken: the session file has it, the composer that held it is empty, the program has read its line,
  or it stands among what was said, with the composer gone. That a program is busy proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from agent_relay.protocol.holds import HoldReason
from agent_relay.terminal.profiles.profile import Profile
from agent_relay.terminal.screen.doubts import SOMETHING_ELSE, asks_for_something_else, looks_like_shell
from agent_relay.terminal.screen.state import State

IDLE_S = 0.2  # for so long it looks idle before it is believed
PERSON_S = 2.0  # since the last key; a pause in somebody's typing
SCROLLED_BACK_S = 60.0  # a person who reads what scrolled off is not disturbed for so long
SHOW_S = 2.0  # for a paste to be seen
UNSHOWN_S = 10.0  # the same for an unknown program: what it does not show is not pasted again, nor handed in
STEADY_S = 0.15  # a screen half drawn looks like anything
VERIFY_S = (2.0, 3.0, 5.0, 8.0)  # after each Enter
AFTER_S = 0.5  # from one Enter to the next paste
AFTER_WAITING_S = 1.5  # the same where a busy agent must not be typed at, unless its work was seen to begin and to end
MAX_PASTES = 3
POLL_S = 0.1
_ROUNDING_S = 1e-6  # a time that was computed is met, though the sum is a hair off
LOOK_AGAIN_S = 5.0  # when nothing is heard: a notice may be lost
UNHEARD_S = 0.5  # the same where nothing would be heard: who reads the terminal may change without a word
QUIET_S = 1.0  # since the last output: nothing is being drawn, and no spinner turns
NOT_RECOGNISED = "its prompt was not recognised"
SHELL = "this looks like the prompt of a shell, which would run the text"
FULL_SCREEN = "an unknown full-screen program may take letters for commands"
WAITING_FOR_INPUT = "waiting for input"  # evidence: it waited for a line, and has read this one


class View(Struct, frozen=True):
    """A terminal as it is seen at one moment; times in seconds."""

    t: float
    state: State
    draft: str | None  # what stands in the composer; None: no composer is seen
    idle_s: float = 1e9  # for how long the state has been what it is
    quiet_s: float = 1e9  # since the last output
    cursor_row: str = ""
    typed_s: float | None = None  # since the person's last key
    is_reading_back: bool = False
    is_paused: bool = False
    is_heard: bool = False  # the session file has the text
    is_echoed: bool = False  # it stands in the conversation on the screen
    is_at_own: bool = False  # no composer is seen, but the cursor stands in what we typed, or right behind it
    is_busy: bool = False  # a mark of work is shown
    doubt: str = ""  # why it may be waiting for a decision
    danger: str = ""  # why whoever reads the terminal must not be given it
    is_full_screen: bool = False
    collects_lines: bool = False  # the terminal collects lines, as for plain programs
    is_reading: bool = False  # the program is seen to wait for input from it
    unread: int | None = None  # bytes that the program has not read; None: not known


class Paste(Struct, frozen=True):
    """Now; what exactly is for the caller to say, who knows what the program can be given."""


class Press(Struct, frozen=True):
    key: str


class Wait(Struct, frozen=True):
    until: float
    reason: str  # for the log; and, where `hold` needs a detail, for people
    is_stuck: bool = False  # it may never end by itself: after a while the sender is told too
    is_sure: bool = True  # False: it may be starting, or at work; people should know only after a while
    hold: HoldReason | None = None  # why people see that messages wait; None: it is over in a moment, or the state says it


class Done(Struct, frozen=True):
    evidence: str


class Failed(Struct, frozen=True):
    reason: str  # a sentence


Step: TypeAlias = Paste | Press | Wait | Done | Failed


class _Phase(Enum):
    WAITING = 1
    PASTED = 2
    PRESSED = 3


def _is_nobodys(draft: str) -> bool:
    del draft
    return False


class Injector:
    """One text. `last_enter`: when Enter was pressed for the one before it. `is_own`: whether a draft is this very text,
    which somebody who typed it before us did not live to hand in."""

    def __init__(self, profile: Profile, last_enter: float = float("-inf"), is_own: Callable[[str], bool] | None = None) -> None:
        self._profile = profile
        self._last_enter = last_enter
        self._is_own = is_own or _is_nobodys
        self._phase = _Phase.WAITING
        self._pastes = 0
        self._presses = 0
        self._pasted_t = self._pressed_t = 0.0
        self._row_before = ""
        self._shown_draft: str | None = None  # the composer as the paste left it
        self._was_shown = False
        self._is_touched = False  # a person typed before the paste was seen: whose words stand there is not known
        self._was_idle = self._has_worked = False  # when it was pasted; since then
        self._met_dialog = False  # which may have swallowed the paste
        self._armed_row = ""
        self._armed_draft: str | None = None  # what Enter was pressed on
        self._gone_t: float | None = None
        self._line: tuple[float, str] | None = None  # since when it has been seen to wait for a line, and behind which words

    @property
    def is_begun(self) -> bool:
        """Something was typed."""
        return self._pastes > 0

    def step(self, view: View) -> Step:
        if view.is_heard and self.is_begun:
            return Done("transcript")
        match self._phase:
            case _Phase.WAITING:
                return self._wait(view)
            case _Phase.PASTED:
                return self._check_paste(view)
            case _Phase.PRESSED:
                return self._verify(view)

    # --- waiting for the moment ----------------------------------------------------------------------------------------

    def _wait(self, view: View) -> Step:
        if not (view.is_reading and view.collects_lines):
            self._line = None
        elif self._line is None or self._line[1] != view.cursor_row:
            self._line = (view.t, view.cursor_row)
        obstacle = self._obstacle(view)
        if obstacle is not None:
            return obstacle
        if view.draft and not self._pastes:
            return self._go_on(view)
        if self._pastes == MAX_PASTES:
            return Failed(f"The text was pasted {MAX_PASTES} times and vanished each time.")
        self._pastes += 1
        self._phase = _Phase.PASTED
        self._pasted_t = view.t
        self._row_before = view.cursor_row
        self._was_shown, self._shown_draft = False, None
        self._is_touched = self._has_worked = self._met_dialog = False
        self._was_idle = view.state is State.IDLE
        return Paste()

    def _go_on(self, view: View) -> Step:
        """It stands in the composer already: as if we had pasted it long ago."""
        self._pastes = 1
        self._phase = _Phase.PASTED
        self._pasted_t = view.t - SHOW_S
        self._was_shown, self._shown_draft = True, view.draft
        return Wait(view.t, "the text is already in the composer")

    def _obstacle(self, view: View) -> Wait | None:
        later = view.t + LOOK_AGAIN_S
        if view.is_paused:
            return Wait(later, "paused")
        if view.state is State.DIALOG:
            return Wait(later, "a dialog is open")
        if view.t + _ROUNDING_S < self._settled_t(view):
            return Wait(self._settled_t(view), "the text before it was taken only just now")
        if view.typed_s is not None and view.typed_s < PERSON_S:
            return Wait(view.t + PERSON_S - view.typed_s, "a person is typing", hold=HoldReason.TYPING)
        if view.is_reading_back and (view.typed_s is None or view.typed_s < SCROLLED_BACK_S):
            return Wait(view.t + PERSON_S, "a person has scrolled back", hold=HoldReason.SCROLLED_BACK)
        if view.draft and not (not self._pastes and self._is_own(view.draft)):
            return Wait(later, "there is a half-written draft in the composer", hold=HoldReason.DRAFT)
        return self._forbidden(view) or self._not_ready(view)

    def _forbidden(self, view: View) -> Wait | None:
        """A reason why no key may be pressed now, whatever the screen looks like."""
        later = view.t + UNHEARD_S
        if view.danger:
            return Wait(later, view.danger, is_stuck=True, hold=HoldReason.PROGRAM)
        if self._profile.is_tried:
            return None
        is_line_read = view.is_reading and view.collects_lines
        if self._profile.is_generic and looks_like_shell(view.cursor_row, is_line_read=is_line_read):
            return Wait(later, SHELL, is_stuck=True, hold=HoldReason.PROGRAM)
        if self._profile.is_generic and view.is_full_screen:
            return Wait(later, FULL_SCREEN, is_stuck=True, hold=HoldReason.PROGRAM)
        return Wait(later, view.doubt, is_stuck=True, hold=HoldReason.DECISION) if view.doubt else None

    def _settled_t(self, view: View) -> float:
        """An agent that was given something looks idle for a moment before it begins to work."""
        if self._queues_when_busy or (view.state is State.IDLE and view.t - view.idle_s > self._last_enter):
            return self._last_enter + AFTER_S
        return self._last_enter + AFTER_WAITING_S

    def _not_ready(self, view: View) -> Wait | None:
        if view.state is State.IDLE and view.draft is not None:
            return Wait(view.t + IDLE_S - view.idle_s, "it became idle only just now") if view.idle_s < IDLE_S else None
        if view.state is State.WORKING and view.draft is not None and self._queues_when_busy:
            return None
        if self._profile.is_generic and view.draft is None and view.is_reading and view.collects_lines and not view.is_busy:
            return self._not_ready_for_line(view)
        if view.is_busy or (view.state is State.WORKING and (view.draft is not None or self._profile.is_tried)):
            return Wait(view.t + LOOK_AGAIN_S, "it is working")
        # An unknown program that waits for keys, and shows nothing new, will not come to its prompt by itself.
        is_sure = not self._profile.is_tried and view.is_reading and view.quiet_s >= QUIET_S
        return Wait(view.t + UNHEARD_S, NOT_RECOGNISED, is_stuck=True, is_sure=is_sure, hold=HoldReason.PROMPT)

    def _not_ready_for_line(self, view: View) -> Wait | None:
        """It waits for a line from its terminal; but for which?"""
        if asks_for_something_else(view.cursor_row):
            return Wait(view.t + UNHEARD_S, SOMETHING_ELSE, is_stuck=True, hold=HoldReason.DECISION)
        # The screen was read before the program was looked at. What it wrote in between, its question perhaps, is seen by a look
        # that begins when it is known to wait.
        assert self._line is not None
        waited_s = min(view.quiet_s, view.t - self._line[0] + _ROUNDING_S)
        return Wait(view.t + IDLE_S - waited_s, "it started to wait for input only just now") if waited_s < IDLE_S else None

    @property
    def _queues_when_busy(self) -> bool:
        return self._profile.submit.when_busy == "queue"

    # --- between paste and Enter ---------------------------------------------------------------------------------------

    def _check_paste(self, view: View) -> Step:
        since_s = view.t - self._pasted_t + _ROUNDING_S
        if view.state is State.DIALOG:
            self._met_dialog = True
            return Wait(view.t + LOOK_AGAIN_S, "a dialog is open")
        forbidden = self._forbidden(view)
        if forbidden is not None:
            self._met_dialog = True
            return forbidden
        self._has_worked = self._has_worked or (self._was_idle and view.state is State.WORKING)
        has_typed = view.typed_s is not None and view.typed_s < since_s
        if since_s < self._profile.submit.pause_ms / 1000:
            return Wait(self._pasted_t + self._profile.submit.pause_ms / 1000, "the program is taking in the paste")
        hidden = self._hidden(view)
        if hidden is not None:
            return hidden
        if not self._was_shown:
            self._was_shown = self._is_shown(view)
            self._shown_draft, self._is_touched = view.draft, has_typed
            if not self._was_shown and since_s < (SHOW_S if self._profile.is_tried else UNSHOWN_S):
                return Wait(view.t + POLL_S, "the paste is not visible yet")
            if not self._was_shown and view.draft == "" and (self._met_dialog or has_typed or self._profile.is_tried):
                return self._vanished(view)
            if not self._was_shown:
                return Failed("The text was typed, but the program showed no sign of taking it.")
        elif view.draft == "":
            return self._vanished(view)
        if has_typed and view.typed_s is not None:
            if view.typed_s < PERSON_S:
                return Wait(view.t + PERSON_S - view.typed_s, "a person is typing", hold=HoldReason.TYPING)
            if self._is_touched or view.draft != self._shown_draft:
                seen = "a person is editing the text in the composer"
                return Wait(view.t + POLL_S * 5, seen, hold=HoldReason.DRAFT)
        return self._press(view)

    def _is_shown(self, view: View) -> bool:
        """A line that the terminal collects is shown by the terminal, on a busy machine long after it was typed. An Enter before
        that would be judged by a row without the text."""
        is_composer_filled = view.draft != "" if self._profile.is_tried or not view.collects_lines else bool(view.draft)
        return is_composer_filled or view.cursor_row != self._row_before

    def _hidden(self, view: View) -> Wait | None:
        """No composer is seen: the screen may be half drawn, and a dialog may be what comes."""
        if view.draft is None and (view.quiet_s < STEADY_S or not self._is_where_it_stands(view)):
            return Wait(view.t + (POLL_S if self._phase is _Phase.PASTED else UNHEARD_S), "the composer is not visible")
        return None

    def _is_where_it_stands(self, view: View) -> bool:
        """A text of several rows hides the composer of some. Then the cursor is where the text ends; a line that the terminal
        itself collects is there in any case."""
        return view.is_at_own or (not self._profile.is_tried and view.collects_lines)

    def _vanished(self, view: View) -> Step:
        """Somebody emptied the composer. An agent that began to work took it; else it was removed, and comes again."""
        if self._gone_t is None:
            self._gone_t = view.t
        has_worked = self._has_worked or (view.state is State.WORKING and not self._queues_when_busy)
        if has_worked and (self._was_shown or not self._met_dialog):
            return Done("composer")
        if view.t - self._gone_t + _ROUNDING_S < PERSON_S:
            return Wait(view.t + POLL_S, "somebody emptied the composer")
        self._phase, self._gone_t = _Phase.WAITING, None
        return Wait(view.t, "somebody emptied the composer")

    def _press(self, view: View) -> Step:
        self._phase = _Phase.PRESSED
        self._presses += 1
        self._pressed_t = view.t
        self._armed_row, self._armed_draft = view.cursor_row, view.draft
        self._gone_t = None
        submit = self._profile.submit
        return Press(submit.busy_key if view.state is State.WORKING and submit.busy_key else submit.key)

    # --- after Enter ---------------------------------------------------------------------------------------------------

    def _verify(self, view: View) -> Step:
        since_s = view.t - self._pressed_t + _ROUNDING_S
        if view.state is State.DIALOG:
            # It came with the answer, or before our Enter was read. When it is closed, the composer tells.
            self._pressed_t = view.t
            return Wait(view.t + LOOK_AGAIN_S, "a dialog is open")
        evidence = self._evidence(view)
        if evidence:
            self._gone_t = view.t if self._gone_t is None else self._gone_t
            if view.t - self._gone_t + _ROUNDING_S >= STEADY_S:
                return Done(evidence)
            return Wait(self._gone_t + STEADY_S, "the screen is still changing")
        self._gone_t = None
        if since_s < VERIFY_S[min(self._presses, len(VERIFY_S)) - 1]:
            return Wait(view.t + POLL_S, "it was not seen to be taken yet")
        hidden = self._forbidden(view) or self._hidden(view)
        if hidden is not None:
            return hidden
        if view.draft is None and view.cursor_row != self._armed_row:
            seen = "it was typed, but the program does not read it"
            return Wait(view.t + UNHEARD_S, seen, is_stuck=True, hold=HoldReason.NOT_TAKEN)
        if self._presses == len(VERIFY_S):
            return Failed(f"The text is still in the composer after Enter was pressed {self._presses} times.")
        if view.typed_s is not None and view.typed_s < max(since_s, PERSON_S):
            return Wait(view.t + POLL_S * 5, "a person is typing", hold=HoldReason.TYPING)
        if self._is_another(view.draft):
            return Wait(view.t + POLL_S * 5, "there is other text in the composer now", hold=HoldReason.DRAFT)
        return self._press(view)

    def _is_another(self, draft: str | None) -> bool:
        """Words that Enter was not pressed on: ours have gone, and these are not ours to send."""
        ours = self._armed_draft
        return bool(ours and draft) and not (str(draft).startswith(str(ours)) or str(ours).startswith(str(draft)))

    def _evidence(self, view: View) -> str:
        if view.draft == "":
            return "composer"
        if view.cursor_row == self._armed_row:
            return ""  # the cursor has not left what was typed
        if view.collects_lines and view.unread == 0 and not self._profile.is_tried:
            return WAITING_FOR_INPUT
        is_gone = view.draft is None and not self._profile.composer.is_shown_while_busy
        return "screen" if is_gone and view.is_echoed and not self._forbidden(view) else ""
