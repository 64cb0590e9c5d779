"""Which rule of a profile no longer fits a screen: the hint beside a scene that failed.

A scene fails because something is expected that the relay did not see: a prompt, a permission, its command. So the rules that
lead there are held against the rows one by one, as the relay does it, and the first that fails is named as in the profile's file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_relay.terminal.profiles.profile import Dialog, Profile, any_of, compile_pattern
from agent_relay.terminal.screen.contents import Screen
from agent_relay.terminal.screen.dialogs import NEAR_BOTTOM, find_dialog, looks_of
from agent_relay.terminal.screen.state import BUSY_ROWS, State, find_composer, look

_LONGEST = 60


def hint_for_prompt(profile: Profile, screen: Screen) -> str:
    """Why no prompt is seen here."""
    lines = screen.visible
    dialog = find_dialog(profile, lines)
    if dialog is not None:
        return f"`dialogs` sees {_quote(dialog.question)}"
    rows = [line.text for line in lines if line.text]
    for name, patterns in (("asking.rows", profile.asking.rows), ("busy.rows", profile.busy.rows)):
        if shown := next((row for row in rows[-BUSY_ROWS:] if any_of(patterns).search(row)), ""):
            return f"`{name}` fits {_quote(shown)}"
    composer = profile.composer
    if find_composer(composer, lines, screen) is not None:
        state = look(profile, screen).state
        return "" if state is State.IDLE else f"the prompt is seen, and it counts as {state}: `rows.status` or a title"
    if not any(compile_pattern(composer.row).search(row) for row in rows):
        return "`composer.row` fits no row"
    if composer.above and not any(compile_pattern(composer.above).search(row) for row in rows):
        return "`composer.above` fits no row"
    if composer.below and not compile_pattern(composer.below).search(rows[-1]):
        return f"`composer.below` does not fit {_quote(rows[-1])}"
    return "`composer.row` and `composer.above` fit rows that do not belong together"


def hint_for_permission(profile: Profile, screen: Screen, command: str) -> str:
    """Why no permission for this command is seen here, or cannot be given."""
    dialog = find_dialog(profile, screen.visible)
    rows = [line.text for line in screen.visible if line.text]
    if dialog is None:
        misses = [_miss(index, entry, rows) for index, entry in enumerate(profile.dialogs) if entry.kind == "permission"]
        if not misses:
            return "the profile has no permission in `dialogs`"
        return min(misses, key=lambda miss: miss[0])[1]
    entry = looks_of(profile)[dialog.look]
    where = f"dialogs[{dialog.look}]"
    if dialog.kind != "permission":
        return f"`{where}` takes it for a question"
    if command not in (dialog.subject or ""):
        return f"`{where}.subject` reads {_quote(dialog.subject or 'nothing')}"
    return "; ".join(_unanswerable(where, entry, dialog.options))


def _miss(index: int, entry: Dialog, rows: list[str]) -> tuple[int, str]:
    """How many of its marks are missing, and the first of them."""
    places = [_last_of(mark, rows) for mark in entry.marks]
    missing = [number for number, place in enumerate(places) if place is None]
    if missing:
        return len(missing), f"`dialogs[{index}].marks[{missing[0]}]` fits no row"
    lowest = max(place for place in places if place is not None)
    return 0, f"below the marks of `dialogs[{index}]` are {len(rows) - 1 - lowest} rows, more than {NEAR_BOTTOM - 1}"


def _last_of(pattern: str, rows: list[str]) -> int | None:
    return next((at for at in range(len(rows) - 1, -1, -1) if compile_pattern(pattern).search(rows[at])), None)


def _unanswerable(where: str, entry: Dialog, options: tuple[str, ...]) -> Iterator[str]:
    for name, patterns in (("approve", entry.approve), ("deny", entry.deny)):
        if not any(re.search(pattern, option) for pattern in patterns for option in options):
            yield f"`{where}.{name}` fits none of {_quote(' | '.join(options) or 'no options')}"


def _quote(text: str) -> str:
    words = " ".join(text.replace("|", "/").replace("`", "'").split())
    return f"“{words if len(words) <= _LONGEST else words[: _LONGEST - 1] + '…'}”"
