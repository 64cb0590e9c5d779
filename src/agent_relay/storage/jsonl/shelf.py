"""The files: which there are, opening the newest, mending it, putting it aside when it is full, removing the oldest.

The writer changes them; readers open one at a time through here, so that a file that is renamed or removed meanwhile is never
taken for another.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from agent_relay.storage.jsonl.lines import Head, first_head, last_message, last_whole_line

_ASIDE = re.compile(r"events-(\d{16})\.jsonl")
_TORN_BYTES = 1024 * 1024  # what a crash may leave of a file's only line; more than that without an event is something else
_LEAST_LINE_BYTES = 64
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


class Opened(NamedTuple):
    """A file to read: its own descriptor, what it begins with, and how much of it counts."""

    descriptor: int
    first_seq: int
    size: int
    is_newest: bool
    edition: int = 0  # another one after a file was rewritten


class Found(NamedTuple):
    last: Head  # of the newest event there is; zeros where there is none
    was_torn: bool = False  # something was at the end that was no event, and is cut off
    torn_lines: int = 0  # whole lines of that: more than a write that was cut short leaves behind
    was_damaged: bool = False  # there was no event in it at all: it was moved away, and `last` is only not too low


class Shelf:
    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = os.path.dirname(os.path.abspath(path))
        self._lock = Lock()
        self._aside: list[Head] = []  # the first event of every file that was put aside, oldest first
        self._first: Head | None = None  # of the newest file; None while it is empty
        self._descriptor = -1
        self._size = 0  # of the newest file, as far as it counts
        self._edition = 0

    # --- for the writer -------------------------------------------------------------------------------------------------

    def open(self) -> Found:
        """Raises OSError."""
        self.close()
        self._aside = self._list_aside()
        last_aside = self._last_aside()
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            size = os.fstat(descriptor).st_size
            found = last_whole_line(descriptor, size)
            is_damaged = found is None and size > _TORN_BYTES
            last, end = found or (last_aside, 0)
            torn_lines = 0
            if is_damaged:
                os.replace(self.path, f"{self.path}.damaged")
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

    def _list_aside(self) -> list[Head]:
        found: list[Head] = []
        for name in sorted(os.listdir(self._folder)):
            match = _ASIDE.fullmatch(name)
            if match is None:
                continue
            descriptor = os.open(os.path.join(self._folder, name), os.O_RDONLY | _FLAGS)
            try:
                head = first_head(descriptor, os.fstat(descriptor).st_size)
            finally:
                os.close(descriptor)
            found.append(Head(int(match[1]), head.ts if head else 0))
        return found

    def _last_aside(self) -> Head:
        if not self._aside:
            return Head(0, 0)
        descriptor = os.open(self._name_of(self._aside[-1].seq), os.O_RDONLY | _FLAGS)
        try:
            found = last_whole_line(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)
        return found[0] if found else self._aside[-1]

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
        name = self._name_of(first.seq)
        with self._lock:
            os.rename(self.path, name)
            old, self._descriptor, self._size, self._first = self._descriptor, -1, 0, None
            self._aside.append(first)
        os.close(old)
        self.open_new()

    def open_new(self) -> None:
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)
        with self._lock:
            self._descriptor, self._size, self._first = descriptor, os.fstat(descriptor).st_size, None

    def last_message(self) -> int | None:
        """The number of the newest message whose event is in the newest file. Raises OSError."""
        return last_message(self._descriptor, self._size) if self._descriptor >= 0 else None

    def prune(self, before_ms: int) -> int:
        """Removes the files that hold nothing newer; how many. The newest events always stay: they say where numbers go on."""
        removed = 0
        with self._lock:
            while self._aside:
                after = self._aside[1] if len(self._aside) > 1 else self._first
                if after is None or after.ts >= before_ms:
                    break
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._name_of(self._aside[0].seq))
                del self._aside[0]
                removed += 1
        return removed

    def rewrite(self, first_seq: int | None, change: Callable[[bytes], tuple[bytes, int]]) -> int:
        """Puts what `change` makes of a file in its place, where it makes something else of it; how much it changed. None is the
        newest file. Raises OSError."""
        path = self.path if first_seq is None else self._name_of(first_seq)
        with open(path, "rb") as file:
            data = file.read() if first_seq is not None else file.read(self._size)
        content, changed = change(data)
        if not changed:
            return 0
        temporary = f"{path}.tmp"
        descriptor = os.open(temporary, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
        try:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(content)
            os.fsync(descriptor)
            with self._lock:
                os.replace(temporary, path)
                self._edition += 1
                if first_seq is None:
                    descriptor, self._descriptor = self._descriptor, descriptor
                    self._size, self._first = len(content), first_head(self._descriptor, len(content))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            os.close(descriptor)
        return changed

    def aside(self) -> list[int]:
        """The first number of every file that was put aside."""
        return [head.seq for head in self._aside]

    def close(self) -> None:
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    # --- for readers ----------------------------------------------------------------------------------------------------

    def oldest_seq(self) -> int | None:
        with self._lock:
            first = self._aside[0] if self._aside else self._first
        return None if first is None else first.seq

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

    def _open_one(self, choose: Callable[[list[Head]], Head | None]) -> Opened | None:
        """A file that was put aside, and that somebody has removed since, is forgotten."""
        with self._lock:
            while True:
                chosen = choose([*self._aside, *([self._first] if self._first is not None else [])])
                if chosen is None:
                    return None
                try:
                    return self._open(chosen)
                except FileNotFoundError:
                    if chosen is self._first:  # the writer sees to that
                        raise
                    self._aside.remove(chosen)

    def _open(self, chosen: Head) -> Opened:
        is_newest = chosen is self._first
        path = self.path if is_newest else self._name_of(chosen.seq)
        descriptor = os.open(path, os.O_RDONLY | _FLAGS)
        size = self._size if is_newest else os.fstat(descriptor).st_size
        return Opened(descriptor, chosen.seq, size, is_newest, self._edition)

    def size_bytes(self) -> int:
        total = self._size
        for first in list(self._aside):
            with contextlib.suppress(OSError):
                total += os.stat(self._name_of(first.seq)).st_size
        return total

    def _name_of(self, first_seq: int) -> str:
        return os.path.join(self._folder, f"events-{first_seq:016d}.jsonl")
