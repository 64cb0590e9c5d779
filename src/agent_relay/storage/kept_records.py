"""The last records of a shared log, as they came: with them it can be mended where its own servers have lost some.

A folder of parts, each named by the first sequence in it; the oldest part goes when all are too large. An entry is its sequence,
length and checksum, and the record. Nothing is flushed: what a power cut takes is at the end, and is found by its checksum.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 64 * 1024 * 1024
_PART_BYTES = 8 * 1024 * 1024
_ENTRY = struct.Struct("<QII")  # sequence, length, checksum
_SUFFIX = ".records"


class KeptRecords:
    """Used by the daemon alone; others read with `read_records`. Where the disk takes nothing, nothing is kept."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES, part_bytes: int = _PART_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._part_bytes = part_bytes
        self._descriptor: int | None = None
        self._size = 0  # of the part that is written
        self.last = 0
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            self._take_up()

    def _take_up(self) -> None:
        """Goes on after the last whole entry of an earlier life."""
        parts = _list_parts(self._folder)
        if not parts:
            return
        end = 0
        for sequence, record in _read_part(parts[-1]):
            self.last = sequence
            end += _ENTRY.size + len(record)
        if not end:
            parts[-1].unlink()
            self._take_up()
            return
        self._descriptor = _open_part(parts[-1])
        os.ftruncate(self._descriptor, end)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        self._size = end

    def keep(self, sequence: int, record: bytes) -> None:
        """One that is there already stays as it is. After a gap everything begins anew: only an unbroken row can mend."""
        if self.last and sequence <= self.last:
            return
        if self.last and sequence != self.last + 1:
            self.forget()
        try:
            if self._descriptor is None or self._size >= self._part_bytes:
                self._begin_part(sequence)
            assert self._descriptor is not None
            entry = _ENTRY.pack(sequence, len(record), zlib.crc32(record)) + record
            if os.write(self._descriptor, entry) != len(entry):
                raise OSError("the disk is full")
        except OSError:
            self.forget()
            return
        self._size += len(entry)
        self.last = sequence

    def find(self, sequence: int) -> bytes | None:
        for part in reversed(_list_parts(self._folder)):
            if _first_of(part) <= sequence:
                return next((record for found, record in _read_part(part) if found == sequence), None)
        return None

    def forget(self) -> None:
        """Nothing of what was kept is left."""
        self.close()
        self.last = 0
        with contextlib.suppress(OSError):
            for part in _list_parts(self._folder):
                part.unlink()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        self._size = 0
        if descriptor is not None:
            os.close(descriptor)

    def _begin_part(self, sequence: int) -> None:
        self.close()
        parts = _list_parts(self._folder)
        total = sum(part.stat().st_size for part in parts)
        while parts and total + self._part_bytes > self._most_bytes:
            oldest = parts.pop(0)
            total -= oldest.stat().st_size
            oldest.unlink()
        self._descriptor = _open_part(self._folder / f"{sequence:020}{_SUFFIX}")


def read_records(folder: Path) -> Iterator[tuple[int, bytes]]:
    """All that are kept, by ascending sequence without a gap; nothing is changed. Raises OSError where a part goes meanwhile."""
    expected = None
    for part in _list_parts(folder):
        for sequence, record in _read_part(part):
            if expected is not None and sequence != expected:
                return
            expected = sequence + 1
            yield sequence, record


def _list_parts(folder: Path) -> list[Path]:
    return sorted(part for part in folder.glob(f"*{_SUFFIX}") if part.stem.isdigit())


def _first_of(part: Path) -> int:
    return int(part.stem)


def _open_part(part: Path) -> int:
    return os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _read_part(part: Path) -> Iterator[tuple[int, bytes]]:
    """Until the first entry that is not whole."""
    content = part.read_bytes()
    place, expected = 0, _first_of(part)
    while place + _ENTRY.size <= len(content):
        sequence, length, checksum = _ENTRY.unpack_from(content, place)
        record = content[place + _ENTRY.size : place + _ENTRY.size + length]
        if sequence != expected or len(record) != length or zlib.crc32(record) != checksum:
            return
        yield sequence, record
        place += _ENTRY.size + length
        expected += 1
