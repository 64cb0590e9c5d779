"""Reading a session file while it grows: every whole line once, whatever happens to the file.

A line without its end is left for the next time. A file that has become shorter, or is another one under the same
name, is read from its beginning; that tells nothing twice, since readers go by record id. The old format of one JSON
document (`.json`) is read whole when it has changed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from agent_relay.terminal.output.json_fields import as_list, decode_object
from agent_relay.terminal.output.transcripts.records import Record, RecordReader

MAX_LINE_BYTES = 64 * 1024 * 1024  # a record holds at most what a tool printed; a longer line is skipped
_PIECE_BYTES = 1024 * 1024


class TranscriptTail:
    def __init__(self, path: Path, reader: RecordReader, *, from_end: bool = False) -> None:
        self.path = path
        self._reader = reader
        self._rest = b""
        self._skips_line = False
        self._identity, self._offset, self._version = self._look()
        if not from_end:
            self._offset, self._version = 0, None

    def poll(self) -> list[Record]:
        """Reads what was written since the last time; nothing while the file is missing."""
        if self.path.suffix == ".json":
            return self._poll_document()
        identity, size, _ = self._look()
        if identity is None:
            return []
        if identity != self._identity or size < self._offset:
            self._identity, self._offset, self._rest, self._skips_line = identity, 0, b"", False
        found: list[Record] = []
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                while piece := file.read(_PIECE_BYTES):
                    self._offset += len(piece)
                    found += self._take(piece)
        except OSError:
            return found  # gone between the look and the reading; the next look decides
        return found

    def _take(self, piece: bytes) -> list[Record]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if self._skips_line and lines:
            lines, self._skips_line = lines[1:], False
        if len(self._rest) > MAX_LINE_BYTES:
            self._rest, self._skips_line = b"", True
        return [found for line in lines if line.strip() for found in self._read(decode_object(line))]

    def _poll_document(self) -> list[Record]:
        _, size, version = self._look()
        if version is None or version == self._version or size > MAX_LINE_BYTES:
            return []
        try:
            document = decode_object(self.path.read_bytes())
        except OSError:
            return []
        if document is None:
            return []  # in the middle of being written
        self._version = version
        return [found for record in as_list(document.get("messages")) for found in self._read(record)]

    def _read(self, record: dict[str, Any] | None) -> list[Record]:
        return self._reader.read(record) if record is not None else []

    def _look(self) -> tuple[tuple[int, int] | None, int, tuple[int, int] | None]:
        try:
            status = os.stat(self.path)
        except OSError:
            return None, 0, None
        return (status.st_dev, status.st_ino), status.st_size, (status.st_mtime_ns, status.st_size)
