"""Text from others, made fit for a terminal: no message moves the cursor, sets the title or turns its line around.

What is dangerous is shown as an escape rather than dropped, so that a reader sees that something was there.
"""

from __future__ import annotations

import unicodedata

from agent_relay.protocol.visible_text import reveal

# Format characters that only join or break letters; scripts and emoji need them, and they move nothing.
_HARMLESS_FORMAT = frozenset("\u00ad\u200c\u200d")
_DANGEROUS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_LINE_END = " ⏎ "


def clean_line(text: str) -> str:
    """On one line; ends of lines become a sign."""
    text = text.replace("\r\n", "\n").rstrip("\n")
    return text if text.isprintable() else _escape(text).replace("\n", _LINE_END).replace("\t", " ")


def clean_block(text: str) -> str:
    """Ends of lines and tabs are kept."""
    return _escape(text.replace("\r\n", "\n")).expandtabs(4)


def reveal_line(text: str) -> str:
    """`clean_line` for what a person decides on: look-alikes and everything unseen stand there as tokens."""
    return clean_line(reveal(text))


def reveal_block(text: str) -> str:
    """`clean_block` for what a person decides on."""
    return clean_block(reveal(text.replace("\r\n", "\n")))


def clean_json(text: str) -> str:
    """JSON as it was, only with what could harm a terminal written as `\\u…`; a program reads the same from it."""
    return "".join(character if _is_safe(character) else _json_escape(character) for character in text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _escape(text: str) -> str:
    return "".join(character if _is_safe(character) else _show(character) for character in text)


def _is_safe(character: str) -> bool:
    if character in "\n\t" or character in _HARMLESS_FORMAT:
        return True
    return unicodedata.category(character) not in _DANGEROUS


def _show(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
