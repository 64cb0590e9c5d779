"""Packing files that were put aside, a block at a time, so that what is to be written never waits for more than one.

The packed file takes the place of the other when all of it is on the disk. Where that fails, such as on a full disk, the other
stays and is packed later.
"""

from __future__ import annotations

import contextlib
import os
import time

from agent_relay.storage.jsonl.packed import RAW_BYTES, pack_block
from agent_relay.storage.jsonl.segments import FLAGS, Segment
from agent_relay.storage.jsonl.shelf import Shelf

_FIRST_AFTER_S = 5.0  # somebody waits for the daemon to start, and nobody for this
_AGAIN_AFTER_S = 60.0


class Packer:
    """Used by the writer's thread alone."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._segment: Segment | None = None  # under way
        self._source = self._target = -1
        self._read_bytes = self._packed_bytes = 0
        self._resting_until = time.monotonic() + _FIRST_AFTER_S

    def due_in_s(self) -> float | None:
        """None: there is nothing to pack."""
        if self._segment is None and all(segment.is_packed for segment in self._shelf.aside()):
            return None
        return max(0.0, self._resting_until - time.monotonic())

    def step(self) -> bool:
        """One block of the oldest file that is not packed; True: all of it is packed. Raises OSError, and then rests."""
        try:
            if self._segment is None or self._segment not in self._shelf.aside():
                self.abandon()
                self._begin()
            return self._segment is not None and self._pack_next(self._segment)
        except OSError:
            self.abandon()
            self._resting_until = time.monotonic() + _AGAIN_AFTER_S
            raise

    def abandon(self) -> None:
        """Nothing is left of what was packed so far."""
        if self._segment is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary(self._segment))
        self._end()

    def _begin(self) -> None:
        segment = next((segment for segment in self._shelf.aside() if not segment.is_packed), None)
        if segment is None:
            return
        self._segment = segment
        self._source = os.open(self._shelf.path_of(segment), os.O_RDONLY | FLAGS)
        self._target = os.open(self._temporary(segment), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | FLAGS, 0o600)

    def _pack_next(self, segment: Segment) -> bool:
        lines = self._read_lines()
        if lines:
            block = pack_block(lines)
            view = memoryview(block)
            while view:
                view = view[os.write(self._target, view) :]
            self._read_bytes += len(lines)
            self._packed_bytes += len(block)
            return False
        os.fsync(self._target)
        self._shelf.put_packed(segment, self._temporary(segment), self._packed_bytes)
        self._end()
        return True

    def _read_lines(self) -> bytes:
        """As many whole lines as make a block, or one that is longer. What has no end is one as well: it is damaged."""
        wanted = RAW_BYTES
        while True:
            chunk = os.pread(self._source, wanted, self._read_bytes)
            end = chunk.rfind(b"\n") + 1
            if end:
                return chunk[:end]
            if len(chunk) < wanted:
                self._read_bytes -= 1 if chunk else 0  # the newline that is added was not read
                return chunk and chunk + b"\n"
            wanted *= 4

    def _end(self) -> None:
        for descriptor in (self._source, self._target):
            if descriptor >= 0:
                os.close(descriptor)
        self._segment, self._source, self._target = None, -1, -1
        self._read_bytes = self._packed_bytes = 0

    def _temporary(self, segment: Segment) -> str:
        return self._shelf.path_of(segment._replace(is_packed=True)) + ".tmp"
