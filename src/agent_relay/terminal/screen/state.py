"""The state of an agent, from what its terminal shows.

A dialog goes before everything: whatever else is on the screen, nothing may be typed. Then what the CLI says itself
in its title, then the marks of work in progress, then the prompt. Where nothing is to be seen the state stays as it was.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from agent_relay.terminal.profiles.profile import Composer, Kind, Profile, Signs, any_of, compile_pattern
from agent_relay.terminal.screen.contents import Line, Screen
from agent_relay.terminal.screen.dialogs import OpenDialog, find_dialog
from agent_relay.terminal.screen.doubts import find_doubt
from agent_relay.terminal.screen.own_text import OwnText

_BORDER = " │┃║|"  # behind what is typed into a box
BUSY_ROWS = 16  # rows from the bottom that are searched for marks of work; a composer may grow to a third of the screen


class State(StrEnum):
    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    DIALOG = "dialog"


class ComposerSeen(Struct, frozen=True):
    top: int  # position of its first row
    draft: str


class ScreenState(Struct, frozen=True):
    """State of the screen at one look."""

    state: State
    dialog: OpenDialog | None = None
    composer: ComposerSeen | None = None
    is_certain: bool = True  # False: nothing told, or only the layout did; a pause may settle it
    is_busy: bool = False  # a mark of work says so, not merely a missing prompt
    doubt: str = ""  # why it may be waiting for a decision, though no dialog was recognised
    waits_at: int | None = None  # no composer is seen, but the program waits for a line, in the row at that position

    @property
    def conversation_end(self) -> int | None:
        """Position of the first row that is no part of the conversation."""
        return self.dialog.top if self.dialog else self.composer.top if self.composer else self.waits_at


def look(
    profile: Profile, screen: Screen, before: State = State.STARTING, own: OwnText | None = None, *, is_waiting: bool = False
) -> ScreenState:
    """`own`: what we typed, which is looked at only where a composer may hold it. `is_waiting`: the program is seen to wait for a
    line."""
    theirs = screen.visible if own is None else own.hide(screen.visible)
    dialog = find_dialog(profile, theirs)
    if dialog is not None:
        return ScreenState(State.DIALOG, dialog)
    if _shows(profile.asking, theirs):
        return ScreenState(State.DIALOG, None, None, is_certain=False)
    sight = _look_for_prompt(profile, screen, theirs, before)
    if not profile.knows_dialogs and sight.state is not State.DIALOG:
        # Behind our own text stands the composer that it was typed into, whether it is recognised any more or not.
        is_ours = own is not None and screen.cursor is not None and own.holds(screen.visible, screen.cursor.position)
        has_composer = sight.composer is not None or is_ours
        return replace(sight, doubt=find_doubt(theirs, has_composer=has_composer, is_line=is_waiting))
    return sight


def _look_for_prompt(profile: Profile, screen: Screen, theirs: tuple[Line, ...], before: State) -> ScreenState:
    lines = screen.visible
    composer = find_composer(profile.composer, lines, screen)
    if composer and profile.composer.must_hold_cursor and screen.cursor is None and composer.draft:
        # Without a cursor a row that was just submitted looks like a draft. Either way nobody should type now.
        return ScreenState(State.WORKING, None, None, is_certain=False)
    title = screen.title or ""
    if title and any_of(profile.asking.title).search(title) and composer is None:
        return ScreenState(State.DIALOG, None, None, is_certain=False)
    if _is_busy(profile, theirs, title):
        return ScreenState(State.WORKING, None, composer, is_busy=True)
    if composer is not None:
        says_idle = bool(title) and any_of(profile.idle.title).search(title) is not None
        if not says_idle and _turn_is_open(profile, lines, composer):
            return ScreenState(State.WORKING, None, composer, is_certain=False)
        return ScreenState(State.IDLE, None, composer)
    if before is State.STARTING or profile.composer.is_shown_while_busy:
        return ScreenState(before, None, None, is_certain=False)
    return ScreenState(State.WORKING, None, None)


def find_composer(composer: Composer, lines: tuple[Line, ...], screen: Screen) -> ComposerSeen | None:
    row = compile_pattern(composer.row)
    if composer.is_at_cursor:
        return _find_at_cursor(composer, lines, screen)
    below = compile_pattern(composer.below) if composer.below else None
    for index in range(len(lines) - 1, -1, -1):
        text = lines[index].text
        match = row.search(text)
        if match:
            if composer.must_hold_cursor and screen.cursor is not None and screen.cursor.position != lines[index].position:
                return None
            found = _read_composer(composer, lines, index, match.groupdict().get("draft"))
            if found is not None:
                return found
        if composer.must_hold_cursor and text:
            return None
        if below and not below.search(text):
            return None
    return None


def _find_at_cursor(composer: Composer, lines: tuple[Line, ...], screen: Screen) -> ComposerSeen | None:
    """Wherever the cursor stands; where no cursor is known, in the last row that is not empty."""
    last = next((line.position for line in reversed(lines) if line.text), -1)
    position = screen.cursor.position if screen.cursor is not None else last
    index = next((at for at, line in enumerate(lines) if line.position == position), None)
    match = compile_pattern(composer.row).search(lines[index].text) if index is not None else None
    if index is None or match is None:
        return None
    draft = match.groupdict().get("draft")
    return _read_composer(composer, lines, index, draft.rstrip(_BORDER) if draft else draft)


def _read_composer(composer: Composer, lines: tuple[Line, ...], index: int, draft: str | None) -> ComposerSeen | None:
    top = index
    if composer.body:
        body = compile_pattern(composer.body)
        while top > 0 and body.search(lines[top - 1].text):
            top -= 1
        typed = [body.sub("", line.text).strip() for line in lines[top:index]]
        draft = " ".join(text for text in (typed[:-1] if composer.has_footer else typed) if text)
    if composer.above:
        above, first = compile_pattern(composer.above), top
        reach = 2 if composer.body else 4  # a border stands right above the body
        found = next((at for at in range(first - 1, max(first - reach, -1), -1) if above.search(lines[at].text)), None)
        if found is None:
            return None
        top = found
    draft = (draft or "").strip(" \u00a0")
    return ComposerSeen(lines[top].position, "" if any_of(composer.placeholder).search(draft) else draft)


def _is_busy(profile: Profile, lines: tuple[Line, ...], title: str) -> bool:
    if title and any_of(profile.busy.title).search(title):
        return True
    return _shows(profile.busy, lines)


def _shows(signs: Signs, lines: tuple[Line, ...]) -> bool:
    if not signs.rows:
        return False
    marks = any_of(signs.rows)
    shown = [line.text for line in lines if line.text][-BUSY_ROWS:]
    return any(marks.search(text) for text in shown)


def _turn_is_open(profile: Profile, lines: tuple[Line, ...], composer: ComposerSeen) -> bool:
    """Something was asked, and the row that ends a turn has not come yet."""
    if not profile.rows.ends_every_turn:
        return False
    patterns = profile.compiled
    for line in reversed(lines):
        if line.position >= composer.top or not line.text:
            continue
        if patterns[Kind.STATUS].search(line.text):
            return False
        asked = patterns[Kind.USER].search(line.text)
        if asked:
            # An empty composer of an earlier drawing may be left above.
            return not any_of(profile.composer.placeholder).search(line.text[asked.end() :])
    return False
