"""Text that PostgreSQL does not take: it has no NUL character. Ours may have one, so it is written with another one before it."""

from __future__ import annotations

from typing import Any

_MARK, _NUL = "\x01", "\x00"


def escape_text(text: str) -> str:
    if _NUL in text or _MARK in text:
        return text.replace(_MARK, "\x01\x01").replace(_NUL, "\x01\x02")
    return text


def restore_text(text: str) -> str:
    if _MARK not in text:
        return text
    return _MARK.join(part.replace("\x01\x02", _NUL) for part in text.split("\x01\x01"))


def escape_column(texts: tuple[str | None, ...]) -> list[str | None]:
    return [text and escape_text(text) for text in texts]


def escape_all(value: Any) -> Any:
    """Every text in a value made of lists and dictionaries."""
    match value:
        case str():
            return escape_text(value)
        case list() | tuple():
            return [escape_all(each) for each in value]
        case dict():
            return {key: escape_all(each) for key, each in value.items()}
        case _:
            return value
