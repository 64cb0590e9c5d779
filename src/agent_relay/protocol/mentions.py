"""Mentions: `@Bob` in a message to a channel is meant for Bob in particular; `@all` and `@everyone` for everybody in it."""

from __future__ import annotations

import re

from agent_relay.protocol.names import fold_name

_MENTION = re.compile(r"(?<![A-Za-z0-9_.@/-])@([A-Za-z0-9][A-Za-z0-9_.-]{0,63})", re.ASCII)
EVERYBODY = frozenset({"all", "everyone"})


def find_mentions(text: str) -> frozenset[str]:
    """The names, as they are compared. A name may end a sentence: the full stop or dash behind it is not part of it."""
    found = (fold_name(match[1]) for match in _MENTION.finditer(text))
    return frozenset(each for name in found for each in (name, name.rstrip(".-")) if each)


def is_mentioned(name: str, text: str) -> bool:
    if "@" not in text:
        return False
    mentioned = find_mentions(text)
    return fold_name(name) in mentioned or not EVERYBODY.isdisjoint(mentioned)
