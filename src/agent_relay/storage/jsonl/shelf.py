"""The files: which there are, opening the newest, mending it, putting it aside when it is full, removing the oldest.

The writer changes them; readers open one at a time through here, so that a file that is renamed, packed or removed meanwhile is
never taken for another.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from agent_relay.storage.jsonl.lines import Head, first_head, last_message, last_whole_line
from agent_relay.storage.jsonl.packed import last_seq_of, list_blocks, pack_all
from agent_relay.storage.jsonl.segments import FLAGS, Segment, find_last, find_segments, read_blocks, read_chunks

_TORN_BYTES = 1024 * 1024  # what a crash may leave of a file's only line; more than that without an event is something else
_LEAST_LINE_BYTES = 64
DAMAGED_BLOCK = b"#\n"  # in place of lines that cannot be unpacked: a line that is no event


class Opened(NamedTuple):
    """A file to read: its own descriptor, what it begins with, and how much of it counts."""

    descriptor: int
    first_seq: int
    size: int
    is_newest: bool
    is_packed: bool = False
    edition: int = 0  # another one after a file was rewritten


class Found(NamedTuple):
    last: Head  # of the newest event there is; zeros where there is none
    was_torn: bool = False  # something was at the end that was no event, and is cut off
    torn_lines: int = 0  # whole lines of that: more than a write that was cut short leaves behind
    was_damaged: bool = False  # there was no event in it at all: it was moved away, and `last` is only not too low


class Shelf:
    def __init__(self, path: str) -> None:
        self.path = path
        self.folder = os.path.dirname(os.path.abspath(path))
        self._lock = Lock()
        self._aside: list[Segment] = []  # oldest first
        self._first: Head | None = None  # of the newest file; None while it is empty
        self._descriptor = -1
        self._size = 0  # of the newest file, as far as it counts
        self._editions = itertools.count(1)  # a file that was rewritten, or found anew, is never taken for the one before
        self._edition = 0  # of the newest file
        self._damage: dict[int, str] = {}  # what cannot be read, by the first number of its file

    # --- for the writer -------------------------------------------------------------------------------------------------

    def open(self) -> Found:
        """Raises OSError."""
        self.close()
        self._aside = [segment._replace(edition=next(self._editions)) for segment in find_segments(self.folder)]
        self._edition = next(self._editions)
        last_aside = find_last(self.folder, self._aside[-1]) if self._aside else Head(0, 0)
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | FLAGS, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            size = os.fstat(descriptor).st_size
            found = last_whole_line(descriptor, size)
            is_damaged = found is None and size > _TORN_BYTES
            last, end = found or (last_aside, 0)
            torn_lines = 0
            if is_damaged:
                os.replace(self.path, self.damaged_path)
            elif end < size:
                torn_lines = os.pread(descriptor, size - end, end).count(b"\n")
                os.ftruncate(descriptor, end)
        except BaseException:
            os.close(descriptor)
            raise
        if is_damaged:
            os.close(descriptor)
            self.open_new()
            return Found(Head(last_aside.seq + size // _LEAST_LINE_BYTES, last_aside.ts), was_damaged=True)
        with self._lock:
            self._descriptor, self._size = descriptor, end
            self._first = first_head(descriptor, end)
        return Found(last, end < size, torn_lines)

    @property
    def damaged_path(self) -> str:
        """The path for a newest file that has no event in it."""
        return f"{self.path}.damaged"

    def write(self, data: bytes, first: Head) -> None:
        """All of it, or nothing that counts; raises OSError."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        with self._lock:
            self._size += len(data)
            if self._first is None:
                self._first = first

    def sync(self) -> None:
        if self._descriptor >= 0:
            os.fsync(self._descriptor)

    @property
    def is_in_place(self) -> bool:
        """False: somebody removed or replaced the newest file."""
        try:
            return self._descriptor < 0 or os.path.samestat(os.fstat(self._descriptor), os.stat(self.path))
        except FileNotFoundError:
            return False

    @property
    def newest_size(self) -> int:
        return self._size

    @property
    def newest_began_ms(self) -> int | None:
        return self._first.ts if self._first is not None else None

    def put_aside(self) -> None:
        """The newest file is full: another takes its place. Raises OSError."""
        first = self._first
        if first is None:
            return
        self.sync()
        with self._lock:
            segment = Segment(first.seq, first.ts, size_bytes=self._size, edition=self._edition)
            os.rename(self.path, self.path_of(segment))
            old, self._descriptor, self._size, self._first = self._descriptor, -1, 0, None
            self._aside.append(segment)
        os.close(old)
        self.open_new()

    def open_new(self) -> None:
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | FLAGS, 0o600)
        with self._lock:
            self._descriptor, self._size, self._first = descriptor, os.fstat(descriptor).st_size, None

    def last_message(self) -> int | None:
        """The number of the newest message whose event is in the newest file. Raises OSError."""
        return last_message(self._descriptor, self._size) if self._descriptor >= 0 else None

    def last_message_aside(self) -> int | None:
        """The same of the file that was put aside last, unless it is packed: earlier versions did not note it. Raises OSError."""
        if not self._aside or self._aside[-1].is_packed:
            return None
        descriptor = os.open(self.path_of(self._aside[-1]), os.O_RDONLY | FLAGS)
        try:
            return last_message(descriptor, self._aside[-1].size_bytes)
        finally:
            os.close(descriptor)

    def prune(self, before_ms: int, keep_bytes: int | None = None) -> int:
        """Removes the files that hold nothing newer, and then the oldest until what is left fits; how many. The newest events
        always stay: they say where numbers go on."""
        removed = 0
        with self._lock:
            while self._aside:
                after = self._aside[1] if len(self._aside) > 1 else self._first
                is_too_much = keep_bytes is not None and self.size_bytes() > keep_bytes
                if after is None or (after.ts >= before_ms and not is_too_much):
                    break
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path_of(self._aside[0]))
                self._damage.pop(self._aside[0].seq, None)
                del self._aside[0]
                removed += 1
        return removed

    def rewrite(self, segment: Segment | None, change: Callable[[bytes, int], tuple[bytes, int]]) -> int:
        """Puts what `change` makes of a file's lines, and the number it ends with, in its place, where it makes something else of
        them; how much it changed. None is the newest file. Raises OSError."""
        path = self.path if segment is None else self.path_of(segment)
        data, last_seq = self._read(path, segment)
        content, changed = change(data, last_seq)
        if not changed:
            return 0
        stored = pack_all(content, last_seq) if segment is not None and segment.is_packed else content
        temporary = f"{path}.tmp"
        descriptor = os.open(temporary, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | FLAGS, 0o600)
        try:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(stored)
            os.fsync(descriptor)
            with self._lock:
                os.replace(temporary, path)
                first = segment or self._first
                self._damage.pop(first.seq if first is not None else 0, None)  # what could not be read of it is no longer in it
                if segment is None:
                    descriptor, self._descriptor = self._descriptor, descriptor
                    self._size, self._first = len(stored), first_head(self._descriptor, len(stored))
                    self._edition = next(self._editions)
                else:
                    self._exchange(segment, segment._replace(size_bytes=len(stored), edition=next(self._editions)))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            os.close(descriptor)
        return changed

    def _read(self, path: str, segment: Segment | None) -> tuple[bytes, int]:
        descriptor = os.open(path, os.O_RDONLY | FLAGS)
        try:
            if segment is None:
                return os.pread(descriptor, self._size, 0), 0
            if not segment.is_packed:
                return b"".join(read_chunks(descriptor, 0, segment.size_bytes)), 0
            blocks = list_blocks(descriptor, segment.size_bytes)
            parts = [DAMAGED_BLOCK if part is None else part for part in read_blocks(descriptor, blocks)]
            return b"".join(parts), last_seq_of(blocks)
        finally:
            os.close(descriptor)

    def put_packed(self, segment: Segment, temporary: str, size_bytes: int) -> None:
        """Lets what is in `temporary`, and on the disk, take the place of a file that was put aside. Raises OSError."""
        packed = segment._replace(is_packed=True, size_bytes=size_bytes, edition=next(self._editions))
        with self._lock:
            os.replace(temporary, self.path_of(packed))
            self._exchange(segment, packed)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)  # before the other goes
        finally:
            os.close(folder)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path_of(segment))

    def _exchange(self, old: Segment, new: Segment) -> None:
        """A reader may have found out meanwhile that somebody removed the file."""
        if old in self._aside:
            self._aside[self._aside.index(old)] = new

    def aside(self) -> list[Segment]:
        """Every file that was put aside, oldest first."""
        with self._lock:
            return list(self._aside)

    def close(self) -> None:
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    # --- for readers ----------------------------------------------------------------------------------------------------

    def oldest(self) -> Head | None:
        with self._lock:
            first = self._aside[0] if self._aside else self._first
        return None if first is None else Head(first.seq, first.ts)

    def open_at(self, seq: int) -> Opened | None:
        """The file that holds this number, or the first after it; None: there is nothing so new. Raises OSError."""
        return self._open_one(
            lambda firsts: next((head for head in reversed(firsts) if head.seq <= seq), firsts[0] if firsts else None)
        )

    def open_since(self, ts: int) -> Opened | None:
        """The file that holds the first event of this moment or later."""
        return self._open_one(
            lambda firsts: next((head for head in reversed(firsts) if head.ts < ts), firsts[0] if firsts else None)
        )

    def open_following(self, first_seq: int) -> Opened | None:
        """The file after the one that begins with this number."""
        return self._open_one(lambda firsts: next((head for head in firsts if head.seq > first_seq), None))

    def _open_one(self, choose: Callable[[list[Segment | Head]], Segment | Head | None]) -> Opened | None:
        """A file that was put aside, and that somebody has removed since, is forgotten."""
        with self._lock:
            while True:
                chosen = choose([*self._aside, *([self._first] if self._first is not None else [])])
                if chosen is None:
                    return None
                try:
                    return self._open(chosen)
                except FileNotFoundError:
                    if not isinstance(chosen, Segment):  # the writer sees to that
                        raise
                    self._aside.remove(chosen)

    def _open(self, chosen: Segment | Head) -> Opened:
        if not isinstance(chosen, Segment):
            return Opened(os.open(self.path, os.O_RDONLY | FLAGS), chosen.seq, self._size, True, edition=self._edition)
        descriptor = os.open(self.path_of(chosen), os.O_RDONLY | FLAGS)
        return Opened(
            descriptor, chosen.seq, os.fstat(descriptor).st_size, False, is_packed=chosen.is_packed, edition=chosen.edition
        )

    def size_bytes(self) -> int:
        return self._size + sum(segment.size_bytes for segment in list(self._aside))

    def path_of(self, segment: Segment) -> str:
        return os.path.join(self.folder, segment.name)

    # --- damage ---------------------------------------------------------------------------------------------------------

    def note_damage(self, first_seq: int, what: str) -> bool:
        """True: that is news."""
        with self._lock:
            if first_seq in self._damage:
                return False
            self._damage[first_seq] = what
            return True

    def damage(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._damage[seq] for seq in sorted(self._damage))
