"""Rewriting files of events without what is about one agent, one file at a time."""

from __future__ import annotations

from agent_relay.events.erasing import erase_from, stand_in
from agent_relay.storage.jsonl.lines import read_head


def erase_in(data: bytes, agent: str, *, keeps_last: bool) -> tuple[bytes, int]:
    """The lines that are left, and how many were removed or changed. `keeps_last`: of the last one its number stays."""
    kept: list[bytes] = []
    changed = 0
    lines = data.split(b"\n")[:-1]  # what follows the last newline is being written, or was torn
    for place, line in enumerate(lines):
        left = erase_from(line, agent)
        if left is line:
            kept.append(line)
            continue
        changed += 1
        head = read_head(line)
        if left is None and keeps_last and place == len(lines) - 1 and head is not None:
            left = stand_in(*head)
        if left is not None:
            kept.append(left)
    return b"".join(line + b"\n" for line in kept), changed
