"""A person's line at the console: what keys make of it, and what they ask for.

Pasted text is one line with line breaks in it, as long as the terminal marks it as pasted.
"""

from __future__ import annotations

import codecs
import re
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

BRACKETED_PASTE_ON, BRACKETED_PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
_LAST_WORD = re.compile(r"\S+\s*\Z")
_ENTER, _ERASE, _CLEAR, _DROP_WORD, _CANCEL, _END = "\r\n", "\x7f\x08", "\x15", "\x17", "\x03", "\x04"


class Key(StrEnum):
    CANCEL = "cancel"
    END = "end"


class Line(Struct, frozen=True):
    text: str


Typed: TypeAlias = Line | Key


class LineInput:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""  # of a key that has not come whole
        self._is_pasting = False
        self.draft = ""

    def feed(self, data: bytes) -> list[Typed]:
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        found: list[Typed] = []
        position = 0
        while position < len(text):
            if text[position] == "\x1b":
                sequence = _SEQUENCE.match(text, position)
                if sequence is None and _UNFINISHED.match(text, position):
                    self._rest = text[position:]
                    break
                self._take_sequence(sequence[0] if sequence else "")
                position += len(sequence[0]) if sequence else 1
                continue
            typed = self._take(text[position])
            if typed is not None:
                found.append(typed)
            position += 1
        return found

    def _take_sequence(self, sequence: str) -> None:
        if sequence == _PASTE_BEGINS:
            self._is_pasting = True
        elif sequence == _PASTE_ENDS:
            self._is_pasting = False

    def _take(self, character: str) -> Typed | None:
        if self._is_pasting:
            self.draft += "\n" if character in _ENTER else character if character.isprintable() or character == "\t" else ""
        elif character in _ENTER:
            text, self.draft = self.draft.strip("\n"), ""
            return Line(text) if text.strip() else None
        elif character in _ERASE:
            self.draft = self.draft[:-1]
        elif character == _CLEAR:
            self.draft = ""
        elif character == _DROP_WORD:
            self.draft = _LAST_WORD.sub("", self.draft)
        elif character == _CANCEL:
            self.draft = ""
            return Key.CANCEL
        elif character == _END:
            return None if self.draft else Key.END
        elif character.isprintable() or character == "\t":
            self.draft += character
        return None
