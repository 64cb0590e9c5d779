"""The hands at one terminal: types one text at a time, in order, and says what was seen of it.

Thin: `injection` decides, this module looks and types.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from agent_relay.protocol.holds import Hold, HoldReason
from agent_relay.terminal.backends.terminal import Key, Terminal
from agent_relay.terminal.delivery.consoles import danger_at
from agent_relay.terminal.delivery.injection import Done, Failed, Injector, Paste, Press, Step, View, Wait
from agent_relay.terminal.delivery.message_text import MAX_UNBRACKETED_CHARACTERS, Room
from agent_relay.terminal.delivery.prompt_view import PromptView
from agent_relay.terminal.output.watcher import Watcher
from agent_relay.terminal.profiles.profile import Profile
from agent_relay.terminal.screen.contents import Screen
from agent_relay.terminal.screen.state import State

HOLD_S = 1.0  # so long a text waits before people see why: most reasons are over in a moment
SOON_S = 2.0  # so long before its sender is told as well, where it will not end by itself
STUCK_S = 30.0  # the same where the agent was ready before: it may be at work, with a shell of its own
TOO_LATE = "It expired before it could be given to the agent."
_KEYS = {"\r": Key.ENTER, "\t": Key.TAB}
_log = logging.getLogger("agent_relay.terminal")

Render = Callable[[Room], str]
Tell = Callable[[Hold | None, bool], None]


class HoldReport:
    """Tells why a text waits, once for each reason, as soon as that has lasted a moment; that it waits long; and that it waits
    no more."""

    def __init__(self, tell: Tell | None) -> None:
        self._tell = tell
        self._hold: Hold | None = None
        self._since = 0.0
        self._told: tuple[Hold | None, bool] = (None, False)
        self._stuck_since: float | None = None

    def note(self, step: Step, t: float, *, was_ready: bool) -> None:
        """`was_ready`: its prompt was recognised before, so that it may come back by itself."""
        hold = _hold_of(step)
        is_stuck, is_sure = (step.is_stuck, step.is_sure) if isinstance(step, Wait) else (False, True)
        if hold != self._hold:
            self._hold, self._since = hold, t
        if not is_stuck:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = t
        patience_s = SOON_S if is_sure and not was_ready else STUCK_S
        is_long = self._stuck_since is not None and t - self._stuck_since >= patience_s
        # What was told of this reason is not taken back by looking again.
        told = (hold, hold is not None and (is_long or (hold == self._told[0] and self._told[1])))
        is_due = hold is None or is_long or t - self._since >= (HOLD_S if is_sure else STUCK_S)
        if self._tell is not None and told != self._told and is_due:
            self._told = told
            self._tell(*told)


def _hold_of(step: Step) -> Hold | None:
    if not isinstance(step, Wait) or not (step.hold or step.is_stuck):
        return None
    return Hold((step.hold or HoldReason.OTHER).value, step.reason)


class Typist:
    """`read` reads the screen, and tells the watcher and the view."""

    def __init__(
        self, terminal: Terminal[Screen], watcher: Watcher, view: PromptView, profile: Profile,
        read: Callable[[], Awaitable[None]], keyboard: asyncio.Lock | None = None,
    ) -> None:  # fmt: skip
        self._terminal = terminal
        self._watcher = watcher
        self._view = view
        self._profile = profile
        self._read = read
        self._keyboard = keyboard or asyncio.Lock()  # shared with whoever else presses keys
        self._is_paused = False

    def pause(self) -> None:
        self._is_paused = True
        self._view.wake()

    def resume(self) -> None:
        self._is_paused = False
        self._view.wake()

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    @property
    def idle_s(self) -> float:
        return self._view.idle_s

    # --- typing ----------------------------------------------------------------------------------------------------------

    async def type_in(
        self, render: Render, mark: str, *, until: float | None = None, is_own: Callable[[str], bool] | None = None,
        tell: Tell | None = None,
    ) -> Done | Failed:  # fmt: skip
        """`mark`: words of the text that no other has. `until`: it is not typed after that moment. `is_own`: whether a draft
        in the composer is this text. `tell` is given the reason why it waits, and whether that has lasted long; None when it
        goes on. Raises TerminalEnded when the program ends first."""
        injector = Injector(self._profile, self._view.last_enter, is_own)
        self._view.expect(mark)
        report = HoldReport(tell)
        reason = ""
        while True:
            self._view.note_look()
            async with self._keyboard:  # from the look to the key that follows from it, and not while waiting
                view = await self._look(mark if injector.is_begun else "")
                is_late = until is not None and view.t >= until and not injector.is_begun
                step: Step = Failed(TOO_LATE) if is_late else injector.step(view)
                await self._carry_out(step, render)
            report.note(step, view.t, was_ready=self._view.was_ready)
            match step:
                case Wait(moment, why):
                    if why != reason:
                        _log.info("%s waits: %s", mark, why)
                        reason = why
                    await self._view.wait_until(moment if until is None else min(moment, max(until, view.t)))
                case Done() | Failed():
                    self._view.expect("")
                    return step

    async def _carry_out(self, step: Step, render: Render) -> None:
        match step:
            case Paste():
                text = render(self._room())
                self._watcher.expect_echo(text)
                await self._terminal.paste(text)
            case Press(key):
                self._view.last_enter = asyncio.get_running_loop().time()
                await self._press(key)

    async def _look(self, mark: str) -> View:
        """`mark`: of a text that was typed."""
        person = await self._terminal.person()
        await self._read()
        # Last, in the same breath as the key: what reads the terminal now gets it.
        reader = await self._terminal.foreground() if self._watcher.state is not State.DIALOG and not self._is_paused else None
        t = asyncio.get_running_loop().time()
        composer = self._watcher.composer
        return View(
            t=t,
            state=self._watcher.state,
            draft=composer.draft if composer is not None else None,
            idle_s=t - self._view.state_since,
            quiet_s=t - self._view.last_output,
            cursor_row=self._view.cursor_row,
            typed_s=None if person.typed_ms_ago is None else person.typed_ms_ago / 1000,
            is_reading_back=person.is_attached and person.is_scrolled_back,
            is_paused=self._is_paused,
            is_heard=self._view.is_heard,
            is_echoed=bool(mark) and composer is None and self._watcher.shows(mark),
            is_at_own=self._view.is_at_own,
            is_busy=self._watcher.is_busy,
            doubt=self._watcher.doubt,
            danger=danger_at(reader) if reader is not None else "",
            is_full_screen=self._view.is_full_screen,
            collects_lines=reader is not None and reader.collects_lines,
            is_reading=reader is not None and reader.is_reading,
            unread=reader.unread if reader is not None else None,
        )

    def _room(self) -> Room:
        takes_paste = self._terminal.takes_paste
        if takes_paste is None:  # taken up again; a program that is known is known to ask for it
            takes_paste = self._profile.is_tried and self._profile.submit.is_bracketed
        limit = self._profile.submit.max_characters or None
        if takes_paste:
            return Room(max_characters=limit)
        return Room(is_bracketed=False, max_characters=min(limit or MAX_UNBRACKETED_CHARACTERS, MAX_UNBRACKETED_CHARACTERS))

    async def _press(self, key: str) -> None:
        if key in _KEYS:
            await self._terminal.press(_KEYS[key])
        else:
            await self._terminal.write(key.encode())
