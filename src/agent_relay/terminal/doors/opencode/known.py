"""What is known of a running opencode and kept in the agent's folder, for a later wrapper."""

from __future__ import annotations

import contextlib
import os

import msgspec
from msgspec import Struct

from agent_relay.terminal.files.private_files import read_private, replace_private

OVERLAP_MS = 60_000  # what was said so long before the last thing that was heard, a wrapper before us has dealt with
_FILE = "opencode-known.json"
_REMEMBERED = 50


class Known(Struct):
    """`sessions` of this program, the latest last: others of the same project belong to other agents."""

    heard_ms: int = 0
    sessions: list[str] = []


class KnownFile:
    """`since_ms`: when the program was started; what was said before is history."""

    def __init__(self, folder: str, since_ms: int) -> None:
        self._path = os.path.join(folder, _FILE)
        self._known = Known()
        with contextlib.suppress(msgspec.MsgspecError):
            self._known = msgspec.json.decode(read_private(self._path) or b"{}", type=Known)
        self.since_ms = max(since_ms, self._known.heard_ms - OVERLAP_MS)

    @property
    def sessions(self) -> list[str]:
        """The latest first."""
        return self._known.sessions[::-1]

    def add_session(self, session: str) -> None:
        if session and session not in self._known.sessions:
            self._known.sessions.append(session)
            del self._known.sessions[:-_REMEMBERED]
            self._write()

    def note_heard(self, at_ms: int) -> None:
        self._known.heard_ms = max(self._known.heard_ms, at_ms)
        self._write()

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # a full disk must not keep the agent from being heard
            replace_private(self._path, msgspec.json.encode(self._known))


def forget_known(folder: str) -> None:
    """Of a program that has ended."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, _FILE))
