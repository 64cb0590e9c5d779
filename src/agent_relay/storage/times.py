"""Ranges of wall-clock time as ranges of message numbers.

A number holds the moment it was given out, so a time range is nearly a range of the primary key. Nearly: when the wall
clock is set back, numbers go on ascending while `ts` does not, and a number's moment lies after its `ts`. How far, at
most, is the store's `lag_ms`: ranges are widened by it at their end, and `ts` decides.
"""

from __future__ import annotations

from agent_relay.protocol.ulid import first_number_at, time_of_number

LARGEST = 2**63 - 1  # what SQLite's integers hold


def first_number_since(wall_ms: int) -> int:
    return fit(first_number_at(wall_ms))


def last_number_before(wall_ms: int, lag_ms: int) -> int:
    return fit(first_number_at(wall_ms + lag_ms) - 1)


def lag_of(number: int, ts: int) -> int:
    return fit(time_of_number(number) - ts)


def fit(number: int) -> int:
    """A number from outside, brought into the range SQLite can compare with."""
    return max(-LARGEST, min(number, LARGEST))
