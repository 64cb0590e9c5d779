"""Edits of text that can be undone: each format knows how to add what is ours, and several ways of taking it out.

Of these ways the one is right after which adding gives the same text again. Where a person has changed the place since, none
may be, and the first one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Add = Callable[[str], str]
BOM = "\ufeff"


class CannotEdit(Exception):  # noqa: N818 - named by the condition
    """The sentence says what is wrong with the file, and what to do."""


def undo(text: str, add: Add, candidates: Iterable[str]) -> str:
    tried = list(dict.fromkeys(candidates))
    for candidate in tried:
        try:
            if add(candidate) == text:
                return candidate
        except CannotEdit:
            continue
    return tried[0]


def newline_of(text: str) -> str:
    """The line end that the text uses, by its first one."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
