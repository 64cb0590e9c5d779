"""Watching one agent: bytes, screens and session records in; states, commands and observations out.

The same object serves a live agent and a replay, so what a recording proves holds for the live one. It does no input
or output and reads no clock: times are given, in seconds of any origin.

When to read. Output marks the screen as unread; `due_at` says when to call `quiet`: after a pause in the output, or
after a while of output without pause, since a spinner never pauses.

Who is believed. A transcript, once it has spoken, is the only source of commands; until then the screen is, after a
short wait where a transcript is expected. A command told by the screen is not told again by the transcript. If a whole
turn passes on the screen and the transcript stays silent, it is given up and the screen is believed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agent_relay.terminal.output.commands import Command, Found, Unfinished, sounds_like
from agent_relay.terminal.output.observations import Observation, QuestionAsked, TranscriptObserver, asked, notice
from agent_relay.terminal.output.parser import DEFAULT_PREFIX, CommandParser, Syntax
from agent_relay.terminal.output.screen_commands import ScreenListener
from agent_relay.terminal.output.transcripts.records import Record, Saying
from agent_relay.terminal.profiles.profile import Profile
from agent_relay.terminal.screen.contents import Screen
from agent_relay.terminal.screen.dialogs import OpenDialog
from agent_relay.terminal.screen.doubts import asks_for_something_else
from agent_relay.terminal.screen.emulator import Emulator
from agent_relay.terminal.screen.own_text import OwnText
from agent_relay.terminal.screen.state import ComposerSeen, ScreenState, State, look

QUIET_S = 0.1  # a frame of any CLI is drawn in less
LONGEST_UNREAD_S = 0.25
TRANSCRIPT_WAIT_S = 3.0  # how long a command seen on the screen waits for the transcript to say it better
TRANSCRIPT_SILENCE_S = 10.0
READER_S = 1.0  # a program that begins to wait for a line may do so without a sign
SETTLE_S = 3.0  # a composer, no sign of work and no output for so long: idle, whatever the layout suggests
_ROUNDING_S = 1e-6  # a time that was computed is met, though the sum is a hair off
_MAX_REMEMBERED = 200
SCREEN, TRANSCRIPT, DOOR = "screen", "transcript", "door"


class StateChanged(Struct, frozen=True):
    t: float
    state: State
    dialog: OpenDialog | None = None


class CommandSeen(Struct, frozen=True):
    t: float
    command: Command
    source: str
    place: str  # where it stands; the same place is never told twice
    is_signed: bool = False  # it carries the nonce of this run


class CommandUnfinished(Struct, frozen=True):
    t: float
    to: str
    reason: str
    source: str


class Noticed(Struct, frozen=True):
    t: float
    observation: Observation
    source: str


Event: TypeAlias = StateChanged | CommandSeen | CommandUnfinished | Noticed


class Watcher:
    """`nonce`: of this run, so that commands with it are surely the agent's. `is_strict`: nothing else on the screen is one; a
    transcript is believed anyway. `asks_for_reader`: whoever reads the screen also says whether the program waits for a line,
    see `is_waiting`."""

    def __init__(
        self,
        profile: Profile,
        *,
        prefix: str = DEFAULT_PREFIX,
        nonce: str = "",
        is_strict: bool = False,
        asks_for_reader: bool = False,
        columns: int = 120,
        rows: int = 40,
        expects_transcript: bool = False,
    ) -> None:
        self.profile = profile
        self.state = State.STARTING
        self.dialog: OpenDialog | None = None
        self.composer: ComposerSeen | None = None
        self.doubt = ""  # why it may be waiting for a decision, though no dialog was recognised
        self.is_busy = False  # a mark of work is shown
        self.asks_for_reader = asks_for_reader
        self.is_waiting = False  # the program is seen to wait for a line at its terminal
        self.has_finished = False  # the program ended by itself: nothing it said grows any more
        self._own = OwnText()
        self._emulator = Emulator(columns, rows)
        self._listener = ScreenListener(profile, prefix, nonce=nonce, is_strict=is_strict)
        self._syntax = Syntax(prefix, nonce=nonce)
        self._observer = TranscriptObserver(profile.transcript) if profile.transcript else None
        self._expects_transcript = expects_transcript
        self._is_transcript_live = False
        self._last_record_t = float("-inf")
        self._turn_began_t = float("-inf")
        self._held: list[tuple[float, Found]] = []  # seen on the screen, waiting for the transcript
        self._told_by_screen: list[Command] = []
        self._last_output_t: float | None = None
        self._unread_since_t: float | None = None
        self._last_seen_t = float("-inf")
        self._was_quiet = self._is_settled = True  # the last reading: after a pause, after a long one

    # --- output and when to read it ----------------------------------------------------------------------------------

    def feed(self, data: bytes, t: float) -> None:
        """Output of the program, for the emulation kept here."""
        self._emulator.feed(data)
        self.note_output(t)

    def note_output(self, t: float) -> None:
        """There was output, and somebody else keeps the screen."""
        self._last_output_t = t
        self._is_settled = self._was_quiet = False
        if self._unread_since_t is None:
            self._unread_since_t = t

    def resize(self, columns: int, rows: int, t: float) -> None:
        self._emulator.resize(columns, rows)
        self.note_output(t)

    @property
    def _has_screen(self) -> bool:
        return self._last_output_t is not None

    @property
    def due_at(self) -> float | None:
        """The moment to call `quiet` next, if nothing happens before."""
        times = [t + self._wait_s for t, _ in self._held[:1]]
        if self._last_output_t is not None:
            if not self._was_quiet:
                times.append(self._last_output_t + QUIET_S)
            if self._unread_since_t is not None:
                times.append(self._unread_since_t + LONGEST_UNREAD_S)
            elif self._was_quiet and not self._is_settled:
                times.append(self._last_output_t + SETTLE_S)
        if self.asks_for_reader and self.composer is None and self.state in {State.STARTING, State.WORKING}:
            times.append(self._last_seen_t + READER_S)
        return min(times, default=None)

    def quiet(self, t: float) -> list[Event]:
        """Reads the emulation kept here."""
        return self.saw(self._emulator.read(), t)

    def saw(self, screen: Screen, t: float) -> list[Event]:
        """A reading of the screen, whoever keeps it."""
        pause_s = float("inf") if self._last_output_t is None else t - self._last_output_t + _ROUNDING_S
        self._unread_since_t = None
        self._was_quiet, self._is_settled = pause_s >= QUIET_S, pause_s >= SETTLE_S
        self._last_seen_t = t
        sight = look(self.profile, screen, self.state, self._own, is_waiting=self.is_waiting)
        # While a person types the program waits on, though every key shows.
        if self.is_waiting and (self._was_quiet or self.state is State.IDLE) and _may_wait(sight, screen):
            position = screen.cursor.position if screen.cursor is not None else None
            sight = replace(sight, state=State.IDLE, waits_at=position, is_certain=True)
        state = sight.state
        if state is State.WORKING and not sight.is_certain and sight.composer is not None and self._is_settled:
            state = State.IDLE
            sight = replace(sight, state=state, is_certain=True)
        self.composer, self.doubt, self.is_busy = sight.composer, sight.doubt, sight.is_busy
        events = self._change_state(state, sight.dialog, t)
        for item in self._listener.read(screen, sight, t, is_quiet=self._was_quiet, is_last=self.has_finished):
            events += self._take_from_screen(item, t)
        if self._was_quiet:
            fresh = self._listener.fresh_lines()
            if not self._is_transcript_live:
                events += [Noticed(t, seen, SCREEN) for line in fresh for seen in notice(self.profile, line)]
        return events + self._release_held(t)

    def _change_state(self, state: State, dialog: OpenDialog | None, t: float) -> list[Event]:
        events: list[Event] = []
        is_new_dialog = dialog is not None and (self.dialog is None or self.dialog.digest != dialog.digest)
        if state is not self.state:
            if state is State.WORKING and self.state is not State.DIALOG:
                self._turn_began_t = t
            events.append(StateChanged(t, state, dialog))
        self.state, self.dialog = state, dialog
        if is_new_dialog and dialog is not None:
            events.append(Noticed(t, asked(dialog), SCREEN))
        return events

    # --- the session file --------------------------------------------------------------------------------------------

    def heard(self, records: Iterable[Record], t: float) -> list[Event]:
        """Records of the CLI's session file, in order."""
        events: list[Event] = []
        for record in records:
            self._last_record_t = t
            if not self._is_transcript_live:
                self._is_transcript_live = True
                self._held.clear()
            if self._observer is not None:
                seen = self._observer.observe(record)
                # Where there is a screen, a question is the dialog it shows: that is what can be answered.
                events += [
                    Noticed(t, each, TRANSCRIPT) for each in seen if not (isinstance(each, QuestionAsked) and self._has_screen)
                ]
            if isinstance(record, Saying):
                events += self._take_saying(record, t)
        return events

    def _take_saying(self, saying: Saying, t: float) -> list[Event]:
        parser = CommandParser(self._syntax)
        events: list[Event] = []
        for item in (*parser.feed_text(saying.text), *parser.end()):
            if isinstance(item, Unfinished):
                events.append(CommandUnfinished(t, item.to, item.reason, TRANSCRIPT))
            elif not _take_equal(self._told_by_screen, item.command):
                events.append(CommandSeen(t, item.command, TRANSCRIPT, f"{saying.id}:{item.place}", item.is_signed))
        return events

    # --- the screen as a source --------------------------------------------------------------------------------------

    def _take_from_screen(self, item: Found, t: float) -> list[Event]:
        if self._is_transcript_live or self._expects_transcript:
            self._held.append((t, item))
            return []
        return self._tell(item, t)

    @property
    def _wait_s(self) -> float:
        return TRANSCRIPT_SILENCE_S if self._is_transcript_live else TRANSCRIPT_WAIT_S

    def _release_held(self, t: float) -> list[Event]:
        """Tells what waited for the transcript long enough. If the transcript records this turn, it decides; the rest is told."""
        events: list[Event] = []
        while self._held and t + _ROUNDING_S >= self._held[0][0] + self._wait_s:
            seen_t, item = self._held.pop(0)
            if self._is_transcript_live:
                if self._last_record_t >= min(self._turn_began_t, seen_t) - TRANSCRIPT_WAIT_S:
                    continue
                self._is_transcript_live = False
            events += self._tell(item, t)
        return events

    def _tell(self, item: Found, t: float) -> list[Event]:
        if isinstance(item, Unfinished):
            return [CommandUnfinished(t, item.to, item.reason, SCREEN)]
        if self._expects_transcript:
            self._told_by_screen.append(item.command)
            del self._told_by_screen[:-_MAX_REMEMBERED]
        return [CommandSeen(t, item.command, SCREEN, f"line:{item.place}", item.is_signed)]

    # --- what the hands do -------------------------------------------------------------------------------------------

    def expect_echo(self, text: str) -> None:
        """This text is about to be typed in; its echo is nobody's command, and no dialog."""
        self._own.add(text)
        self._listener.expect_echo(text)

    def note_person(self) -> None:
        """A person pressed a key."""
        self._listener.note_person()

    def is_own(self, screen: Screen) -> bool:
        """Whether the cursor stands in, or right behind, what we typed."""
        return screen.cursor is not None and self._own.holds(screen.visible, screen.cursor.position)

    def shows(self, words: str) -> bool:
        """Whether they stand in the conversation, as far as it is remembered; what is still in the composer is not part of it."""
        return self._listener.shows(words)

    def adopt(self) -> None:
        """Everything seen so far was said before we came."""
        self._listener.adopt()


def _may_wait(sight: ScreenState, screen: Screen) -> bool:
    """Nothing on the screen says that it waits for something else than a message."""
    if sight.composer is not None or sight.is_busy or sight.doubt or sight.state is State.DIALOG or screen.cursor is None:
        return False
    position = screen.cursor.position
    return not asks_for_something_else(next((line.text for line in screen.visible if line.position == position), ""))


def _take_equal(told: list[Command], command: Command) -> bool:
    for known in told:
        if sounds_like(known, command):
            told.remove(known)
            return True
    return False
