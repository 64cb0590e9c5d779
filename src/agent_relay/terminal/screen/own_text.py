"""Text that we typed ourselves, found again on the screen: it is nobody's dialog, nobody's question and nobody's command.

The terminal, or the program, breaks a text into rows as it likes and puts prompts and borders around it; so it is looked for
by its characters alone, in order, without spaces.
"""

from __future__ import annotations

import unicodedata

from msgspec import Struct
from msgspec.structs import replace

from agent_relay.terminal.screen.contents import Line

_REMEMBERED = 32  # texts; what is on a screen is among the last of them
_HEAD = 24  # characters that tell where one begins
_PART = 16  # characters of the first row that tell that it is out of the middle of one, which begins above the screen


def echo_key(text: str) -> str:
    """Characters that every terminal shows of a text: not spaces, nor emoji and accents, which each has its own way with."""
    if text.isascii():
        return "".join(text.split())
    return "".join(each for each in unicodedata.normalize("NFKD", text) if each.isalnum() or "!" <= each <= "~")


class _Mark(Struct, frozen=True):
    """Place of a character of a key."""

    row: int
    column: int


class OwnText:
    def __init__(self) -> None:
        self._keys: list[str] = []

    def add(self, text: str) -> None:
        key = echo_key(text)
        if key:
            self._keys = [*(known for known in self._keys if known != key), key][-_REMEMBERED:]

    def hide(self, lines: tuple[Line, ...]) -> tuple[Line, ...]:
        """The same lines without what is ours: prompts and borders before and behind it stay."""
        keys = [echo_key(line.text) for line in lines]
        joined = "".join(keys)
        first = next((key for key in keys if key), "")
        ours = [key for key in self._keys if key[:_HEAD] in joined or (len(first) >= _PART and first in key)]
        if not ours:
            return lines
        marks = [
            (each, _Mark(row, column))
            for row, line in enumerate(lines)
            for column, character in enumerate(line.text)
            for each in echo_key(character)
        ]
        shown = "".join(each for each, _ in marks)
        hidden: set[_Mark] = set()
        for key in ours:
            hidden |= _find(key, shown, [mark for _, mark in marks])
        return tuple(_cut(line, {mark.column for mark in hidden if mark.row == row}) for row, line in enumerate(lines))

    def holds(self, lines: tuple[Line, ...], position: int) -> bool:
        """Whether what stands at that position is ours; of a row with nothing to tell by, whether the one above it is."""
        rows = [(line, theirs) for line, theirs in zip(lines, self.hide(lines), strict=True) if line.position <= position]
        last = next(((line, theirs) for line, theirs in reversed(rows) if echo_key(line.text)), None)
        return last is not None and last[0] is not last[1]


def _find(key: str, shown: str, marks: list[_Mark]) -> set[_Mark]:
    found: set[_Mark] = set()
    at = shown.find(key[:_HEAD])
    while at >= 0:
        size = common_length(key, shown, at)
        found |= _whole_rows(marks, at, at + size, is_over=size == len(key))
        at = shown.find(key[:_HEAD], at + max(size, 1))
    # Its beginning may have scrolled off. Further down only a beginning counts: a message may hold the very words of a dialog.
    end = next((index for index in range(len(shown)) if marks[index].row != marks[0].row), len(shown))
    inside = key.find(shown[:end]) if end >= _PART else -1
    if inside >= 0 and marks[0] not in found:
        size = common_length(key[inside:], shown, 0)
        found |= _whole_rows(marks, 0, size, is_over=inside + size == len(key))
    return found


def _whole_rows(marks: list[_Mark], start: int, end: int, *, is_over: bool) -> set[_Mark]:
    """A row of which only the beginning is ours is somebody else's, unless our text ends there."""
    while not is_over and end < len(marks) and end > start and marks[end - 1].row == marks[end].row:
        end -= 1
    return set(marks[start:end])


def common_length(words: str, text: str, start: int) -> int:
    """The number of characters, from the first, in which the words and the text from `start` on are the same."""
    longest = min(len(words), len(text) - start)
    return next((size for size in range(longest) if words[size] != text[start + size]), longest)


def _cut(line: Line, columns: set[int]) -> Line:
    if not columns:
        return line
    before, behind = line.text[: min(columns)], line.text[max(columns) + 1 :]
    return replace(line, text=(before + behind).rstrip(), ink_at=None)
