"""Words of messages as the lexemes of a `tsvector`, and a search as a `tsquery`.

PostgreSQL's own parsers take `auth.py` for a host name and drop what they hold for unimportant, so the words are taken apart
here, as everywhere in this room. The index only says which messages have all the parts somewhere; `words.words_occur` decides.
"""

from __future__ import annotations

from agent_relay.ports.store import MessageRow
from agent_relay.storage.words import MAX_WORD_LENGTH, body_of, split_parts

_MOST_BYTES = 900_000  # of the words of one message; PostgreSQL takes 1 MiB. Later ones of a longer list are not found.


def list_words(row: MessageRow) -> list[str]:
    found = list(dict.fromkeys(part[:MAX_WORD_LENGTH] for part in split_parts(body_of(row))))
    if len(row.tail) <= _MOST_BYTES // 4:  # then the words are no longer than allowed, however they are encoded
        return found
    size_bytes = 0
    for place, word in enumerate(found):
        size_bytes += len(word.encode())
        if size_bytes > _MOST_BYTES:
            return found[:place]
    return found


def build_query(words: list[str]) -> str | None:
    """All parts, and the last may be the beginning of one. Parts have letters and digits alone: nothing in them is syntax."""
    parts = [part[:MAX_WORD_LENGTH] for word in words for part in split_parts(word)]
    if not parts:
        return None
    return " & ".join(f"'{part}'" for part in parts) + ":*"
