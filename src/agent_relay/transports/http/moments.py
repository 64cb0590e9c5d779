"""Moments as the clock of this machine shows them."""

from __future__ import annotations

from datetime import UTC, datetime


def show_minute(at_ms: int, now_ms: int) -> str:
    """`14:02`; with the date where that is another day."""
    try:
        at, now = (datetime.fromtimestamp(ms / 1000, UTC).astimezone() for ms in (at_ms, now_ms))
    except (OverflowError, ValueError, OSError):
        return str(at_ms)
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}"
