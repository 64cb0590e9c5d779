"""Rewriting files of events without what is about one agent, one file at a time."""

from __future__ import annotations

from agent_relay.events.erasure import erase_from, stand_in
from agent_relay.events.record import read_record
from agent_relay.protocol.names import fold_name
from agent_relay.storage.jsonl.lines import count_heads, read_head


def erase_in(data: bytes, last_seq: int, agent: str, *, keeps_last: bool) -> tuple[bytes, int]:
    """The lines that are left, and how many were removed or changed. `last_seq` is the number the file ends with, 0 where nobody
    knows; `keeps_last`: of the last line the number stays. What cannot be read may be about the agent: it goes, a gap stays."""
    key = fold_name(agent).encode()
    if key not in data.lower() and count_heads(data) == data.count(b"\n"):
        return data, 0  # as most files are, and it takes a fraction of the time
    kept: list[bytes] = []
    changed = seq = ts = 0
    is_damaged = False
    lines = data.split(b"\n")[:-1]  # what follows the last newline is being written, or was torn
    for place, line in enumerate(lines):
        head, is_named = read_head(line), key in line.lower()
        if head is None or (is_named and read_record(line) is None):
            is_damaged = True
            changed += 1
            continue
        if is_damaged and head.seq > seq + 1:
            kept.append(stand_in(head.seq - 1, head.ts, "damaged"))
        is_damaged, (seq, ts) = False, head
        left = erase_from(line, agent) if is_named else line
        changed += left is not line
        if left is None and keeps_last and place == len(lines) - 1:
            left = stand_in(seq, ts)
        if left is not None:
            kept.append(left)
    if is_damaged and last_seq > seq:
        kept.append(stand_in(last_seq, ts, "damaged"))
    return b"".join(line + b"\n" for line in kept), changed
