"""Modes that a program has switched on in its terminal, read off its output: bracketed paste, mouse, alternate screen.

Two uses: a paste is bracketed only for a program that asked for it, and a program that was killed leaves its modes
behind, which `undo` puts right in the person's terminal.
"""

from __future__ import annotations

import re

APPLICATION_CURSOR = 1
SHOW_CURSOR = 25
ALTERNATE = frozenset({47, 1047, 1049})
BRACKETED_PASTE = 2004
SYNCHRONISED = 2026
# Mouse reports, focus reports, alternate scroll, bracketed paste, synchronised output, colour scheme reports, in-band resize.
_UNDONE = (9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, BRACKETED_PASTE, SYNCHRONISED, 2031, 2048)
_SEQUENCE = re.compile(rb"\x1b(?:\[\?([0-9;]*)([hl])|\[([<>=])([0-9;]*)u|([=>c])|\[!p)")
_BEGUN = re.compile(rb"\x1b(?:\[(?:[?<>=][0-9;]*|!)?)?$")


class ModeTracker:
    def __init__(self) -> None:
        self._on: set[int] = set()
        self._cursor_hidden = False
        self._keypad = False
        self._keyboard_levels = 0  # of the kitty keyboard protocol
        self._kept = b""

    def feed(self, data: bytes) -> None:
        if b"\x1b" not in data and not self._kept:
            return
        data = self._kept + data
        begun = _BEGUN.search(data, max(0, len(data) - 64))  # longer than any such sequence that means something
        self._kept = data[begun.start() :] if begun else b""
        for match in _SEQUENCE.finditer(data):
            self._obey(match)

    def _obey(self, match: re.Match[bytes]) -> None:
        if match[2]:
            numbers = [int(number) for number in match[1].split(b";") if number and len(number) < 6]
            self._switch(numbers, on=match[2] == b"h")
        elif match[3]:
            change = {b">": 1, b"<": -(int(match[4] or b"1") if len(match[4]) < 6 else 1)}.get(match[3], 0)
            self._keyboard_levels = max(0, self._keyboard_levels + change)
        elif match[5] in {b"=", b">"}:
            self._keypad = match[5] == b"="
        else:  # a full or soft reset
            self._on.clear()
            self._cursor_hidden = self._keypad = False
            self._keyboard_levels = 0

    def _switch(self, numbers: list[int], *, on: bool) -> None:
        for number in numbers:
            if number == SHOW_CURSOR:
                self._cursor_hidden = not on
            elif on:
                self._on.add(number)
            else:
                self._on.discard(number)

    @property
    def bracketed_paste(self) -> bool:
        return BRACKETED_PASTE in self._on

    @property
    def application_cursor(self) -> bool:
        return APPLICATION_CURSOR in self._on

    @property
    def alternate(self) -> bool:
        return bool(self._on & ALTERNATE)

    def undo(self) -> bytes:
        """Bytes that put a terminal back that saw all this; empty when there is nothing to undo."""
        parts = [b"\x1b[?%dl" % number for number in _UNDONE if number in self._on]
        if self._keyboard_levels:
            parts.append(b"\x1b[<%du" % self._keyboard_levels)
        parts += [b"\x1b[?%dl" % number for number in sorted(self._on & ALTERNATE)]
        if self.application_cursor:
            parts.append(b"\x1b[?1l")
        if self._keypad:
            parts.append(b"\x1b>")
        if self._cursor_hidden:
            parts.append(b"\x1b[?25h")
        if parts:
            parts.append(b"\x1b[0m")
        return b"".join(parts)

    def redo(self) -> bytes:
        """Bytes that bring another terminal, or one that was put back, to where the program believes it is."""
        parts = [b"\x1b[?%dh" % number for number in sorted(self._on & ALTERNATE)]
        parts += [b"\x1b[?%dh" % number for number in _UNDONE if number in self._on]
        parts += [b"\x1b[>1u"] * self._keyboard_levels
        if self.application_cursor:
            parts.append(b"\x1b[?1h")
        if self._keypad:
            parts.append(b"\x1b=")
        if self._cursor_hidden:
            parts.append(b"\x1b[?25l")
        return b"".join(parts)

    def redo_keys(self) -> bytes:
        """The part of it that decides what a keyboard and a mouse send."""
        parts = [b"\x1b[?%dh" % number for number in _UNDONE if number in self._on and number != SYNCHRONISED]
        return b"".join(parts) + b"\x1b[?1h" * self.application_cursor + b"\x1b=" * self._keypad

    def redo_alternate(self) -> bytes:
        """The part of it that decides which of the two screens is drawn on."""
        return b"".join(b"\x1b[?%dh" % number for number in sorted(self._on & ALTERNATE)) or b"\x1b[?1049l"
