"""Rewriting files of events without what is about one agent, one file at a time."""

from __future__ import annotations

from agent_relay.events.erasing import erase_from, stand_in
from agent_relay.events.record import read_record


def erase_in(data: bytes, last_seq: int, agent: str, *, keeps_last: bool) -> tuple[bytes, int]:
    """The lines that are left, and how many were removed or changed. `last_seq` is the number the file ends with, 0 where nobody
    knows; `keeps_last`: of the last line the number stays. What cannot be read may be about the agent: it goes, a gap stays."""
    kept: list[bytes] = []
    changed = seq = ts = 0
    is_damaged = False
    lines = data.split(b"\n")[:-1]  # what follows the last newline is being written, or was torn
    for place, line in enumerate(lines):
        record = read_record(line)
        if record is None:
            is_damaged = True
            changed += 1
            continue
        if is_damaged and record.seq > seq + 1:
            kept.append(stand_in(record.seq - 1, record.ts, "damaged"))
        is_damaged, seq, ts = False, record.seq, record.ts
        left = erase_from(line, agent)
        changed += left is not line
        if left is None and keeps_last and place == len(lines) - 1:
            left = stand_in(record.seq, record.ts)
        if left is not None:
            kept.append(left)
    if is_damaged and last_seq > seq:
        kept.append(stand_in(last_seq, ts, "damaged"))
    return b"".join(line + b"\n" for line in kept), changed
