"""Findings of a check."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Verdict(StrEnum):
    OK = "ok"
    NOTE = "note"  # works, and could be better
    BAD = "bad"
    ABSENT = "absent"  # and need not be there


class Finding(Struct, frozen=True):
    about: str
    verdict: Verdict
    text: str
    mend: str = ""  # what to do about it
