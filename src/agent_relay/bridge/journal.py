"""The memory of a bridge over restarts: which messages went over, how far it has read, and who stands for whom.

A small database of its own beside the daemon's. One bridge at a time has it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
from collections import deque

from agent_relay.protocol.errors import ErrorCode, RelayError

REMEMBERED = 50_000  # messages; far more than can be on their way when a bridge stops
_PRUNE_EVERY = 1_000
_LAG = 64  # the relay is asked again for so many: messages of several senders may come a little out of order
_TABLES = """
CREATE TABLE IF NOT EXISTS done (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS cursor (agent TEXT PRIMARY KEY, since TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS peer (remote TEXT PRIMARY KEY, local TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bridge (id TEXT NOT NULL);
"""


class Journal:
    """Raises RelayError if another bridge has it."""

    def __init__(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self._lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise RelayError(
                ErrorCode.PERMISSION_DENIED, "Another bridge from this project to that relay is already running."
            ) from None
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        self._database = sqlite3.connect(path, isolation_level=None)
        # Every commit is on the disk before the other side is told: there are few, and each stands for a message.
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;" + _TABLES)
        self._recent: dict[str, deque[str]] = {}
        self._until_prune = _PRUNE_EVERY
        self.bridge_id = self._read_id()

    def is_done(self, key: str) -> bool:
        return self._database.execute("SELECT 1 FROM done WHERE key = ?", (key,)).fetchone() is not None

    def note_done(self, key: str) -> None:
        self._database.execute("INSERT OR IGNORE INTO done (key) VALUES (?)", (key,))
        self._until_prune -= 1
        if self._until_prune <= 0:
            self._until_prune = _PRUNE_EVERY
            self._database.execute("DELETE FROM done WHERE number <= (SELECT max(number) FROM done) - ?", (REMEMBERED,))

    def since(self, agent: str) -> str | None:
        """The message after which the relay is asked for what came."""
        row = self._database.execute("SELECT since FROM cursor WHERE agent = ?", (agent,)).fetchone()
        return row[0] if row is not None else None

    def begin_at(self, agent: str, message_id: str) -> None:
        """Sets the place to read from, where nothing was read yet."""
        if message_id and self.since(agent) is None:
            self._write_cursor(agent, message_id)

    def note_read(self, agent: str, message_id: str) -> None:
        recent = self._recent.setdefault(agent, deque(maxlen=_LAG))
        recent.append(message_id)
        if len(recent) == _LAG:
            self._write_cursor(agent, recent[0])

    def peers(self) -> dict[str, str]:
        return dict(self._database.execute("SELECT remote, local FROM peer").fetchall())

    def note_peer(self, remote: str, local: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO peer (remote, local) VALUES (?, ?)", (remote, local))

    def close(self) -> None:
        self._database.close()
        os.close(self._lock)

    def _write_cursor(self, agent: str, since: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO cursor (agent, since) VALUES (?, ?)", (agent, since))

    def _read_id(self) -> str:
        row = self._database.execute("SELECT id FROM bridge").fetchone()
        if row is None:
            row = (f"bridge-{secrets.token_hex(6)}",)
            self._database.execute("INSERT INTO bridge (id) VALUES (?)", row)
        return str(row[0])
