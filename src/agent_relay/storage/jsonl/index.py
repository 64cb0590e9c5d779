"""Places to begin to read in a file: the sparse index of one line in every 64 KiB, or the blocks of a file that is packed.

The sparse index is made by looking at those places and nothing between them, when somebody asks for the first time, and grows
with the file.
Numbers and times both ascend, so either finds the place to read on from.
"""

from __future__ import annotations

import os
from bisect import bisect_right

from agent_relay.storage.jsonl.lines import HEAD_BYTES, Head, next_line, read_head
from agent_relay.storage.jsonl.packed import Block, last_seq_of, list_blocks

STEP_BYTES = 64 * 1024


class SparseIndex:
    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._heads: list[Head] = []
        self._looked_to = 0
        self.probes = 0  # places looked at, over its life

    def extend(self, descriptor: int, size: int) -> None:
        """Takes in what the file has grown by. `size`: so much of it is written for good."""
        if not self._offsets and size > 0:
            self._note(descriptor, 0)
            self._looked_to = STEP_BYTES
        while self._looked_to < size:
            offset = next_line(descriptor, self._looked_to, size)
            if offset is None:
                return  # one long line so far; the next time may show its end
            self._note(descriptor, offset)
            self._looked_to = (offset // STEP_BYTES + 1) * STEP_BYTES

    def _note(self, descriptor: int, offset: int) -> None:
        self.probes += 1
        head = read_head(os.pread(descriptor, HEAD_BYTES, offset))
        if head is not None:  # a damaged line is passed over
            self._offsets.append(offset)
            self._heads.append(head)

    def place_after(self, seq: int) -> int:
        """An offset at or before the line after this number, by at most one step."""
        found = bisect_right(self._heads, seq, key=lambda head: head.seq)
        return self._offsets[found - 1] if found else 0

    def place_since(self, ts: int) -> int:
        """The same for the first line of this moment or later."""
        found = bisect_right(self._heads, ts - 1, key=lambda head: head.ts)
        return self._offsets[found - 1] if found else 0


class BlockIndex:
    """Places are those of blocks in `blocks`."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.blocks: list[Block | None] = list_blocks(descriptor, size)
        self.last_seq = last_seq_of(self.blocks)
        known = [(place, block.first) for place, block in enumerate(self.blocks) if block is not None and block.first.seq]
        self._places = [place for place, _ in known]
        self._heads = [head for _, head in known]

    def place_after(self, seq: int) -> int:
        found = bisect_right(self._heads, seq, key=lambda head: head.seq)
        return self._places[found - 1] if found else 0

    def place_since(self, ts: int) -> int:
        found = bisect_right(self._heads, ts - 1, key=lambda head: head.ts)
        return self._places[found - 1] if found else 0
