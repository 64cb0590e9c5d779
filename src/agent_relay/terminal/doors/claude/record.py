"""What Claude Code writes down about a running session (`~/.claude/sessions/<pid>.json`), and what we remember of ours.

A session is found by the id we chose for it, or by one a hook told us, and from then on by its process: `/clear` gives it
another id in the same file. What was found is kept in the agent's folder, for a later wrapper.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from agent_relay.terminal.doors.door import DoorState
from agent_relay.terminal.files.private_files import load_private, save_private
from agent_relay.terminal.output.transcripts.find import project_names
from agent_relay.terminal.output.transcripts.records import as_count, as_text, decode_record
from agent_relay.terminal.profiles.profile import load_profiles

KNOWN_FILE = "claude-session.json"
MAX_RECORD_BYTES = 1_048_576  # one has about 700
MAX_REMEMBERED = 64  # sessions of one process, and senders that may be answered

_STATES = {"idle": DoorState.IDLE, "busy": DoorState.WORKING, "waiting": DoorState.WAITING}


class SessionRecord(Struct, frozen=True):
    path: Path
    pid: int
    session_id: str
    cwd: str
    started_at: int
    version: str
    kind: str
    peer_protocol: int
    socket_path: str
    state: DoorState | None  # None: it does not say, or says what we do not know
    waiting_for: str

    @property
    def is_alive(self) -> bool:
        """A process that was killed leaves its record behind."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True


class Known(Struct):
    """Ours, as far as it was found. `senders` may still be answered by the agent."""

    pid: int = 0
    started_at: int = 0
    sessions: list[str] = []
    senders: list[str] = []

    def add_session(self, session_id: str) -> bool:
        return _add(self.sessions, session_id)

    def add_sender(self, sender: str) -> bool:
        return _add(self.senders, sender)


def _add(names: list[str], name: str) -> bool:
    if not name or name in names:
        return False
    names.append(name)
    del names[:-MAX_REMEMBERED]
    return True


def load_known(folder: str) -> Known:
    return load_private(os.path.join(folder, KNOWN_FILE), Known)


def save_known(folder: str, known: Known) -> None:
    save_private(os.path.join(folder, KNOWN_FILE), known)


def read_session(path: Path) -> SessionRecord | None:
    """None for a file that is gone, half written, or no record."""
    try:
        with path.open("rb") as file:
            found = decode_record(file.read(MAX_RECORD_BYTES))
    except OSError:
        return None
    pid = as_count((found or {}).get("pid"))
    if found is None or not pid:
        return None
    return SessionRecord(
        path=path,
        pid=pid,
        session_id=as_text(found.get("sessionId")),
        cwd=as_text(found.get("cwd")),
        started_at=as_count(found.get("startedAt")),
        version=as_text(found.get("version")),
        kind=as_text(found.get("kind")),
        peer_protocol=as_count(found.get("peerProtocol")),
        socket_path=as_text(found.get("messagingSocketPath")),
        state=_STATES.get(as_text(found.get("status"))),
        waiting_for=as_text(found.get("waitingFor")),
    )


def find_session(home: Path, known: Known) -> SessionRecord | None:
    """The running session that is ours."""
    if known.pid:
        record = read_session(home / "sessions" / f"{known.pid}.json")
        # The number of a process that ended may be another's by now.
        return record if record is not None and record.started_at == known.started_at and record.is_alive else None
    for path in (home / "sessions").glob("*.json"):
        record = read_session(path)
        if record is not None and record.session_id in known.sessions and record.is_alive:
            return record
    return None


def project_folders(home: Path, cwd: str) -> list[Path]:
    """Where the session files of that directory are, or will be."""
    transcript = load_profiles()["claude"].transcript
    return [home / "projects" / name for name in project_names(transcript, cwd)] if transcript is not None and cwd else []


def transcript_paths(home: Path, sessions: list[str]) -> list[Path]:
    """The session files that are there already. An id that is no plain name is not looked for."""
    plain = [session for session in sessions if session.replace("-", "").isalnum()]
    return [path for session in plain for path in (home / "projects").glob(f"*/{session}.jsonl")]
