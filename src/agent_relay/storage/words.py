"""Words that a person typed into a search box: for SQLite's full-text index, and for comparing in plain Python.

A word is what stands between spaces and has a letter or digit in it. `auth.py` is one word of two parts that must occur
side by side. All words must occur; the last may be the beginning of one, as people type. Nothing typed is ever syntax.
"""

from __future__ import annotations

import re
import unicodedata

import msgspec

from agent_relay.ports.store import MessageRow
from agent_relay.protocol.encode import read_tail

MAX_WORDS = 64  # nobody types more; a pasted page is searched by its first words rather than refused
MAX_WORD_LENGTH = 256

_PART = re.compile(r"[^\W_]+")


def split_words(search: str) -> list[str]:
    clean = search.encode("utf-8", "replace").decode().replace("\0", " ")
    return [word[:MAX_WORD_LENGTH] for word in clean.split() if any(map(str.isalnum, word[:MAX_WORD_LENGTH]))][:MAX_WORDS]


def build_match(words: list[str]) -> str:
    """The same as an FTS5 expression: every word quoted, so that AND, NEAR, `*` and `:` are only text."""
    quoted = ['"' + word.replace('"', '""') + '"' for word in words]
    return " ".join(quoted) + " *"


def words_occur(words: list[str], text: str) -> bool:
    """Whether the full-text index would find this text, up to the finer points of Unicode."""
    parts = split_parts(text)
    wanted = [phrase for word in words if (phrase := split_parts(word))]
    if not wanted:
        return False
    return all(_occurs(phrase, parts, phrase is wanted[-1]) for phrase in wanted)


def split_parts(text: str) -> list[str]:
    """The parts of words as they are compared: without accents and regard to case."""
    if text.isascii():  # nothing to take apart
        return _PART.findall(text.lower())
    plain = "".join(character for character in unicodedata.normalize("NFD", text) if not unicodedata.combining(character))
    return _PART.findall(plain.casefold())


def _occurs(phrase: list[str], parts: list[str], may_begin: bool) -> bool:
    size = len(phrase)
    for start in range(len(parts) - size + 1):
        if parts[start : start + size - 1] == phrase[:-1]:
            last = parts[start + size - 1]
            if last == phrase[-1] or (may_begin and last.startswith(phrase[-1])):
                return True
    return False


def body_of(row: MessageRow) -> str:
    """The text that is searched; "" for a message without one."""
    try:
        body = read_tail(row.tail)["payload"]["body"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, RecursionError):
        return ""
    return body if isinstance(body, str) else ""
