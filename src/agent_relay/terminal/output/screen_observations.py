"""What the rows of a screen tell besides messages: tokens used, files changed. The fallback where there is no transcript."""

from __future__ import annotations

import re

from agent_relay.terminal.output.document import DocumentLine
from agent_relay.terminal.output.observations import FileTouched, Observation, TokensUsed
from agent_relay.terminal.profiles.profile import Kind, Profile, compile_pattern

MAX_NOTICED = 2_000  # characters of a line; what a CLI says of itself stands at the beginning of a short one
_FACTORS = {"k": 1_000, "K": 1_000, "M": 1_000_000}


def notice(profile: Profile, line: DocumentLine) -> list[Observation]:
    """Of one line, once. What a person typed, or a tool printed, is not the CLI's own word."""
    if line.kind is Kind.USER:
        return []
    found: list[Observation] = []
    text = line.text[:MAX_NOTICED]
    for pattern in profile.patterns.tokens if line.kind is not Kind.AGENT or not profile.rows.status else ():
        match = compile_pattern(pattern).search(text)
        if match:
            found.append(TokensUsed(*_counts(match)))
            break
    if line.kind is not Kind.AGENT:
        for pattern in profile.patterns.edits:
            match = compile_pattern(pattern).search(text)
            if match:
                found.append(FileTouched("edit", match[1].strip()))
    return found


def _counts(match: re.Match[str]) -> tuple[int, int]:
    named = match.groupdict()
    return (_count(named["input"]), _count(named["output"])) if "input" in named else (_count(match[1]), _count(match[2]))


def _count(text: str) -> int:
    """`1,500`, `2.3k`."""
    factor = _FACTORS.get(text[-1:], 1)
    return round(float(text.rstrip("kKM").replace(",", "").rstrip(".")) * factor)
