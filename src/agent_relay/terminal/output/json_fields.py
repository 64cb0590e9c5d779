"""Fields of JSON that another program wrote, in whatever version: each is what it should be, or empty."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


def decode_object(line: bytes | str) -> dict[str, Any] | None:
    """None for anything that is no JSON object."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict) else None


def time_ms(value: object) -> int:
    """Milliseconds since 1970, of a number or an ISO time; 0 for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value if value > 1e11 else value * 1000)
    if not isinstance(value, str):
        return 0
    try:
        return int(datetime.fromisoformat(value).timestamp() * 1000)
    except ValueError:
        return 0


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def as_list(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts_of(content: object, *types: str) -> list[str]:
    """The texts of a content that is a string, or a list of typed parts."""
    if isinstance(content, str):
        return [content]
    return [as_text(part.get("text")) for part in as_list(content) if part.get("type") in types or (not types)]
