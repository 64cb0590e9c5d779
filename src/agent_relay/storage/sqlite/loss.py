"""When less is in the database than there was: it was cut, damaged, or replaced by an older copy while no daemon ran.

What is lost cannot be brought back here, but it must not go unseen, and it must not do more harm: recipients may know sequence
numbers of messages that are gone. Were these given out again, a resuming client would acknowledge what it has never read. So
every stream skips as many numbers as messages are missing, and new streams begin behind them.

How far the database had come is in a mark, a small file beside it.
"""

from __future__ import annotations

import logging
import mmap
import os
import sqlite3
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_relay.ports.store import StreamRow
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.ulid import time_of_number
from agent_relay.storage.sqlite.rows import read_meta, read_streams, write_meta, write_streams
from agent_relay.storage.sqlite.snapshot import count_messages, last_number

_FORMAT = struct.Struct("<4sIQQQ")
_MAGIC = b"ARLM"

_OPEN = """
    SELECT topic, sender, recipients FROM messages
    WHERE number > (SELECT value FROM meta WHERE key = 'checkpoint') OR number IN (SELECT number FROM backlog)
"""

_log = logging.getLogger(__name__)


class Reached(Struct, frozen=True):
    number: int  # of the newest message
    stored: int  # messages there ever were
    batch: int  # the last transaction


class Mark:
    """It is changed in memory that is mapped to the file (a write would cost a turn of waiting for the interpreter lock) after
    every commit, and never flushed: it outlives the process, and after a power cut it may be old, but never says more than was
    stored."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where there is no room for it."""
        descriptor = os.open(f"{path}-mark", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            content = os.pread(descriptor, _FORMAT.size, 0)
            if len(content) < _FORMAT.size:  # written and not only made longer: what is mapped has to have its place on the disk
                os.pwrite(descriptor, bytes(_FORMAT.size), 0)
            self._memory = mmap.mmap(descriptor, _FORMAT.size)
        finally:
            os.close(descriptor)

    def read(self) -> Reached | None:
        """None: there is none yet, or it cannot be read."""
        magic, check, *values = _FORMAT.unpack(self._memory[:])
        return Reached(*values) if magic == _MAGIC and check == _check(values) else None

    def write(self, *values: int) -> None:
        """`number`, `stored`, `batch`."""
        _FORMAT.pack_into(self._memory, 0, _MAGIC, _check(values), *values)

    def close(self) -> None:
        self._memory.close()


def _check(values: tuple[int, ...] | list[int]) -> int:
    return zlib.crc32(struct.pack("<QQQ", *values))


class Loss(Struct, frozen=True):
    messages: int
    after: int  # the newest message that is there
    last: int  # the newest there was


def find_reached(connection: sqlite3.Connection) -> Reached:
    meta = read_meta(connection)
    return Reached(last_number(connection), count_messages(connection) + meta["removed"], meta["batch"])


def find_loss(there: Reached, mark: Reached | None) -> Loss | None:
    if mark is None or (there.number >= mark.number and there.stored >= mark.stored and there.batch >= mark.batch):
        return None
    return Loss(max(0, mark.stored - there.stored), there.number, max(mark.number, there.number))


def note_path(path: Path) -> Path:
    return Path(f"{path}-lost")


def read_note(path: Path) -> str:
    """Losses that an earlier start found; "" for nothing, or where somebody has seen to it."""
    try:
        return note_path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def handle_loss(connection: sqlite3.Connection, path: Path, loss: Loss, mark: Reached) -> None:
    """Says it where it is found until somebody has seen to it, and skips the numbers."""
    text = _describe(path, loss)
    _log.error("%s", text)
    note = note_path(path)
    fresh = Path(f"{note}.new")
    fresh.write_text(text + "\n", "utf-8")
    fresh.chmod(0o600)
    os.replace(fresh, note)
    connection.execute("BEGIN IMMEDIATE")
    _skip_numbers(connection, loss.messages)
    meta = read_meta(connection)
    write_meta(
        connection,
        counted=count_messages(connection),
        counted_to=loss.last,
        removed=max(meta["removed"], mark.stored - count_messages(connection)),
        batch=max(meta["batch"], mark.batch),
        first_seq=meta["first_seq"] + loss.messages,
    )
    connection.execute("COMMIT")


def _describe(path: Path, loss: Loss) -> str:
    if loss.messages:
        since = f" after {_moment(loss.after)}" if loss.after else ""
        what = f"{loss.messages} messages are missing from {path}, stored{since} and until {_moment(loss.last)}"
    else:
        what = f"Acknowledgements and other changes after {_moment(loss.after)} are missing from {path}"
    return (
        f"{what}: the file or its WAL was cut, damaged or replaced while the daemon was down. Undelivered messages among "
        "them will not arrive unless you restore a complete copy (with its -wal) and start again. When you are done, remove "
        f"{note_path(path)}."
    )


def _moment(number: int) -> str:
    if not number:
        return "the beginning"
    return datetime.fromtimestamp(time_of_number(number) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _skip_numbers(connection: sqlite3.Connection, count: int) -> None:
    """Behind everything that is still owed, which keeps its numbers."""
    if not count:
        return
    rows = {(row.topic, fold_name(row.sender), fold_name(row.recipient)): row for row in read_streams(connection)}
    newest = {key: row.last_seq for key, row in rows.items()}
    names: dict[tuple[str, str, str], tuple[str, str]] = {}
    for topic, sender, recipients in connection.execute(_OPEN):
        for recipient, seq in msgspec.json.decode(recipients):
            key = (topic, fold_name(sender), fold_name(recipient))
            newest[key] = max(newest.get(key, 0), seq)
            names[key] = (sender, recipient)
    write_streams(connection, [_skip(rows.get(key), key[0], names.get(key), last, count) for key, last in newest.items()])


def _skip(row: StreamRow | None, topic: str, names: tuple[str, str] | None, last: int, count: int) -> StreamRow:
    if row is None:
        assert names is not None
        row = StreamRow(topic, names[0], names[1], last_seq=0, wire_seq=0, heard_seq=0, done_seq=0, done_above=())
    until = last + count
    if row.done_seq == last:
        return replace(row, last_seq=until, done_seq=until)
    return replace(row, last_seq=until, done_above=(*row.done_above, last + 1, -until))
