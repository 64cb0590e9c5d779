"""`JsonlEventCopy`: events that were numbered elsewhere, in the same files as one's own.

The log that brings them is the truth, so nothing is passed over or told as lost after a crash: whatever is missing comes again,
from the last position that was noted, and what is there already is known by its number.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from typing import NamedTuple

from agent_relay.events.drafts import Draft
from agent_relay.events.record import gap_record
from agent_relay.ports.events import NumberedEvents
from agent_relay.storage.jsonl.life import Ending, Life
from agent_relay.storage.jsonl.lines import Head, read_head
from agent_relay.storage.jsonl.shelf import Found
from agent_relay.storage.jsonl.store import JsonlEvents
from agent_relay.storage.jsonl.writer import Rotation, Writer

_NOTED_EVERY_S = 10.0  # so much comes again after a crash, at most
_ALONE = "events-alone"  # the folder for events of a time before

_log = logging.getLogger(__name__)


class _Adopted(NamedTuple):
    numbering: str


class JsonlEventCopy(JsonlEvents):
    """Implements `ports.events.EventCopy`."""

    _writer: CopyWriter

    def _make_writer(self, life: Life, rotation: Rotation, *, syncs: bool) -> CopyWriter:
        return CopyWriter(self._shelf, life, rotation, self._post, syncs=syncs)

    @property
    def numbering(self) -> str:
        return self._writer.numbering

    @property
    def position(self) -> int:
        return self._writer.position

    @property
    def is_whole(self) -> bool:
        return self._writer.is_whole

    @property
    def last_ts(self) -> int:
        return self._writer.last.ts

    @property
    def waiting(self) -> int:
        return self._writer.waiting

    def append(self, drafts: list[Draft]) -> None:  # noqa: ARG002
        raise AssertionError("a copy is given events with numbers")

    def adopt(self, numbering: str) -> None:
        if self._is_open:
            self._writer.give(_Adopted(numbering), 0)

    def put(self, events: NumberedEvents) -> None:
        if self._is_open:
            self._writer.give(events, len(events.data))


class CopyWriter(Writer):
    """A writer of lines that another host made: they wait in the place of drafts, one at a time."""

    _noted_at = 0.0
    is_whole = True

    def give(self, item: NumberedEvents | _Adopted, size: int) -> None:
        with self._lock:
            self.waiting += 1
            self._waiting_bytes += size
        self._queue.put(([item], size))  # type: ignore[list-item]

    @property
    def numbering(self) -> str:
        return self._life.numbering

    @property
    def position(self) -> int:
        return self._life.position

    def _begin_life(self) -> None:
        self._life.begin()

    def _go_on_after(self, ending: Ending, found: Found) -> None:
        self.is_whole = ending is Ending.FAREWELL
        if found.last.seq < self._life.last_seq:  # something was taken away: the log may still have it
            self._life.position = 0

    def _write(self, drafts: list[Draft]) -> None:
        items: list[NumberedEvents | _Adopted] = drafts  # type: ignore[assignment]
        for item in items:
            if isinstance(item, _Adopted):
                self._life.numbering = item.numbering
                self._note_progress()
            elif isinstance(item, NumberedEvents):
                self._write_numbered(item)

    def _write_numbered(self, events: NumberedEvents) -> None:
        if events.numbering != self._life.numbering:
            self._begin_anew(events.numbering)
        first_seq, count, data, last = events.first_seq, events.count, events.data, self.last.seq
        if first_seq <= last:  # it came before
            known = min(count, last + 1 - first_seq)
            data = data.split(b"\n", known)[known] if known < count else b""
            first_seq, count = first_seq + known, count - known
        elif last and first_seq > last + 1:
            gap = gap_record(first_seq, (read_head(data) or Head(0, events.ts)).ts)
            first_seq, count, data = first_seq - 1, count + 1, gap.line + b"\n" + data
        if count:
            self._put(first_seq, count, data, events.ts)
        self._life.position = events.position

    def _begin_anew(self, numbering: str) -> None:
        """Raises OSError."""
        if self.last.seq:
            folder = os.path.join(self._shelf.folder, f"{_ALONE}-{time.time_ns() // 1_000_000}")
            os.mkdir(folder, 0o700)
            self._packer.abandon()
            self._shelf.close()
            for name in [*(segment.name for segment in self._shelf.aside()), os.path.basename(self._shelf.path)]:
                with contextlib.suppress(FileNotFoundError):  # somebody removed it, or the first try moved it
                    os.rename(os.path.join(self._shelf.folder, name), os.path.join(folder, name))
            _log.warning("This host's events are those of the cluster from here on; earlier ones were moved to %s.", folder)
            self._shelf.open()
        self.last, self.message = Head(0, 0), None
        self._life.numbering, self._life.position = numbering, 0
        self._life.note(0, None)

    def _sync(self) -> None:
        super()._sync()
        if self._shelf.is_open and time.monotonic() - self._noted_at >= _NOTED_EVERY_S:
            self._noted_at = time.monotonic()
            try:
                self._note_progress()
            except OSError as error:
                self._complain(error)
