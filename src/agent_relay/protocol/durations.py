"""Spans of time as people write them: `30s`, `5m`, `1h`, or plain milliseconds."""

from __future__ import annotations

import re

_UNITS_MS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d{1,16})\s*(ms|s|m|h|d|)", re.ASCII)


def parse_duration_ms(text: str) -> int:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write 30s, 5m, 1h, 7d, or a number of milliseconds")
    return int(match[1]) * _UNITS_MS[match[2]]


def format_duration(milliseconds: int) -> str:
    """The shortest spelling that `parse_duration_ms` reads back as the same number."""
    for unit in ("d", "h", "m", "s"):
        if milliseconds and milliseconds % _UNITS_MS[unit] == 0:
            return f"{milliseconds // _UNITS_MS[unit]}{unit}"
    return str(milliseconds)
