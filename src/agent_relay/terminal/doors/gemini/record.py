"""What a door remembers of the session of Gemini CLI that is this agent's, for a later wrapper: as its hooks told it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from msgspec import Struct

from agent_relay.terminal.files.private_files import load_private, save_private

KNOWN_FILE = "gemini-session.json"
MAX_REMEMBERED = 64  # sessions of one process: each `/clear` begins another
_SHORT = 8  # characters of its id that stand in the name of a session's file


class Session(Struct, frozen=True):
    id: str
    path: str  # empty for one that keeps no file

    @property
    def short_id(self) -> str:
        return self.id[:_SHORT]


class Known(Struct):
    sessions: list[Session] = []
    introduced: list[str] = []  # ids of the sessions whose agent was told what the relay is

    @property
    def paths(self) -> list[Path]:
        return [Path(session.path) for session in self.sessions if session.path]

    def add(self, session: Session) -> bool:
        """True: it is another one than the last."""
        if self.sessions and self.sessions[-1] == session:
            return False
        self.sessions = [known for known in self.sessions if known.id != session.id][1 - MAX_REMEMBERED :]
        self.sessions.append(session)
        return True


def load_known(folder: str) -> Known:
    return load_private(os.path.join(folder, KNOWN_FILE), Known)


def save_known(folder: str, known: Known) -> None:
    save_private(os.path.join(folder, KNOWN_FILE), known)


def forget(folder: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, KNOWN_FILE))
