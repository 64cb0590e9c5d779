"""Looking through all files once for what cannot be read, beside the work and a while after the start.

Of a packed file the checksums are compared, which takes a tenth of a second for all that is kept by default; the lines of the
others are read. What is found is noted on the shelf, for `status` and `doctor`; readers get a gap in its place either way.
"""

from __future__ import annotations

import os
from threading import Event, Thread

from agent_relay.events.record import read_record
from agent_relay.storage.jsonl.packed import is_whole, last_seq_of, list_blocks
from agent_relay.storage.jsonl.reader import note_damage
from agent_relay.storage.jsonl.segments import read_chunks, read_whole
from agent_relay.storage.jsonl.shelf import Opened, Shelf

_AFTER_S = 10.0  # somebody waits for the daemon to start, and nobody for this


class Check:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="relay-events-check", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        if self._stopping.wait(_AFTER_S):
            return
        before, ends_at = None, 0
        file = self._open(0)
        while file is not None:
            if before is not None and ends_at and file.first_seq > ends_at + 1 and _begins_well(file):
                note_damage(self._shelf, before)
            before, ends_at = file, self._look_at(file)
            file = self._open(file.first_seq)

    def _open(self, after: int) -> Opened | None:
        try:
            return None if self._stopping.is_set() else self._shelf.open_following(after)
        except OSError:
            return None  # the writer has complained, or will

    def _look_at(self, file: Opened) -> int:
        """The number it ends with; 0 where that is not known."""
        try:
            if not file.is_packed:
                self._look_at_lines(file)
                return 0
            blocks = list_blocks(file.descriptor, file.size)
            for block in blocks:
                if self._stopping.is_set():
                    return 0
                if block is None or not is_whole(file.descriptor, block):
                    note_damage(self._shelf, file)
                    break
            return last_seq_of(blocks)
        except OSError:
            note_damage(self._shelf, file)
            return 0
        finally:
            os.close(file.descriptor)

    def _look_at_lines(self, file: Opened) -> None:
        rest = b""
        for chunk in read_chunks(file.descriptor, 0, file.size):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if self._stopping.is_set():
                return
            if any(read_record(line) is None for line in lines):
                note_damage(self._shelf, file)
                return
        if rest:
            note_damage(self._shelf, file)


def _begins_well(file: Opened) -> bool:
    """False: its own beginning is damaged, or it begins by saying that numbers were passed over."""
    chunk = next(read_whole(file.descriptor, is_packed=file.is_packed), None) or b""
    record = read_record(chunk.partition(b"\n")[0])
    return record is not None and record.type != "stream.gap"
