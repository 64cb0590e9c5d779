"""Text of commands, read without running a shell: whether it is beyond doubt, and the words in it.

The two err on opposite sides. A command is plain only where no shell could read it as anything but words; for finding a
word everything that hides one is first taken away. So what is approved was understood, and what is feared is found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

# No quotes, no operators, no expansion, no comment, no tab, no line break, nothing beyond ASCII.
_PLAIN = re.compile(r"[A-Za-z0-9._/:=,@+ -]+")
MAX_SURE_CHARACTERS = 1_000  # what is longer may have been cut on its way here (at 2,000), and its end is not known
_HIDING = re.compile(r"[\"'\\\0\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]")
_BREAKS = re.compile(r"[;|&()<>{}`\n\r\v\f\u0085\u2028\u2029]+|\$\(")


def is_plain(command: str) -> bool:
    """One command of words with one space between them, which every shell reads alike, and all of it."""
    return len(command) <= MAX_SURE_CHARACTERS and bool(_PLAIN.fullmatch(command)) and command == " ".join(command.split())


def unhide(command: str) -> str:
    """The command as one would read it aloud: wide letters as plain ones, in lower case, without quotes and the like."""
    return unicodedata.normalize("NFKC", _HIDING.sub("", unicodedata.normalize("NFKC", command))).casefold()


def has_word(command: str, words: Iterable[str]) -> bool:
    """Whether one of the words stands in it, wherever and however it is written; `rm` is not in `format`."""
    return bool(_any_of(tuple(words)).search(unhide(command)))


@lru_cache(maxsize=256)
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(re.escape(unhide(word)) for word in words)})(?![a-z0-9])")


def parts(command: str) -> Iterator[str]:
    """The whole command, then each command of a chain, unhidden and with single spaces."""
    shown = unhide(command)
    for part in (shown, *_BREAKS.split(shown)):
        words = " ".join(part.split())
        if words:
            yield words
