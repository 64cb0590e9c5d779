"""Times, spans, sizes and numbers as people read them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def format_time(at_ms: int, now_ms: int, *, exact: bool = False) -> str:
    """The time of day; with the date where that is another day than today's."""
    try:
        at = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone()
        today = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().date()
    except (OverflowError, ValueError, OSError):
        return str(at_ms)
    day = "" if at.date() == today else f"{at:%Y-%m-%d} "
    return f"{day}{at:%H:%M:%S}" + (f".{at_ms % 1000:03d}" if exact else "")


def format_minute(at_ms: int, now_ms: int) -> str:
    """`14:02`; with the date where that is another day than today's."""
    return format_time(at_ms, now_ms).rpartition(":")[0]


def format_span(span_ms: int) -> str:
    """The two units that matter: `840 ms`, `2.4 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    if span_ms < _SECOND_MS:
        return f"{span_ms} ms"
    if span_ms < 10 * _SECOND_MS:
        return f"{span_ms / _SECOND_MS:.1f}".removesuffix(".0") + " s"
    for unit_ms, unit, part_ms, part in (
        (_DAY_MS, "d", _HOUR_MS, "h"),
        (_HOUR_MS, "h", _MINUTE_MS, "min"),
        (_MINUTE_MS, "min", _SECOND_MS, "s"),
    ):
        if span_ms >= unit_ms:
            rest = span_ms % unit_ms // part_ms
            return f"{span_ms // unit_ms} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{span_ms // _SECOND_MS} s"


def format_bytes(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TiB"


def join_names(names: Sequence[str], word: str = "and") -> str:
    """`Ann`, `Ann and Bob`, `Ann, Bob and Cid`."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" {word} " + names[-1]


def count(number: int, one: str, many: str = "") -> str:
    """`1 message`, `2,000 messages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
