"""Claude Code's own files: the record of a running session (`~/.claude/sessions/<pid>.json`), and its session files.

A session is found by the id we chose for it, or by one a hook told us, and from then on by its process: `/clear` gives it
another id in the same file. What was found is kept in the agent's folder, for a later wrapper. The session files tell which
messages the agent has, which it will not get, and how a tool's question ended.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent_relay.terminal.doors.door import DoorMessage, DoorState, Whereabouts
from agent_relay.terminal.doors.known import KnownFile, add_name
from agent_relay.terminal.doors.ledger import mark_of
from agent_relay.terminal.doors.signals import Decided, Given, NotGiven, Queued, SignalReader, find_signals
from agent_relay.terminal.output.json_fields import as_count, as_dict, as_text, decode_object
from agent_relay.terminal.output.transcripts.claude import ClaudeReader
from agent_relay.terminal.output.transcripts.find import project_names
from agent_relay.terminal.output.transcripts.records import ToolResult
from agent_relay.terminal.profiles.profile import load_profiles

MAX_RECORD_BYTES = 1_048_576  # one has about 700
MAX_REMEMBERED = 64  # sessions of one process, and senders that may be answered

_STATES = {"idle": DoorState.IDLE, "busy": DoorState.WORKING, "waiting": DoorState.WAITING}
WRITTEN_S = 2.0  # Claude Code writes its session file a moment after it took a message


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


class ClaudeKnown(Struct):
    """Ours, as far as it was found. `senders` may still be answered by the agent."""

    pid: int = 0
    started_at: int = 0
    sessions: list[str] = []
    senders: list[str] = []

    def add_session(self, session_id: str) -> bool:
        return add_name(self.sessions, session_id, MAX_REMEMBERED)

    def add_sender(self, sender: str) -> bool:
        return add_name(self.senders, sender, MAX_REMEMBERED)


KNOWN = KnownFile("claude-session.json", ClaudeKnown)


def read_session(path: Path) -> SessionRecord | None:
    """None for a file that is gone, half written, or no record."""
    try:
        with path.open("rb") as file:
            found = decode_object(file.read(MAX_RECORD_BYTES))
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


def find_session(home: Path, known: ClaudeKnown) -> SessionRecord | None:
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
    """The folders where the session files of that directory are, or will be."""
    transcript = load_profiles()["claude"].transcript
    return [home / "projects" / name for name in project_names(transcript, cwd)] if transcript is not None and cwd else []


def transcript_paths(home: Path, sessions: list[str]) -> list[Path]:
    """The session files that are there already. An id that is no plain name is not looked for."""
    plain = [session for session in sessions if session.replace("-", "").isalnum()]
    return [path for session in plain for path in (home / "projects").glob(f"*/{session}.jsonl")]


class ClaudeSignals(SignalReader):
    def __init__(self) -> None:
        super().__init__(ClaudeReader())

    def _end(self, result: ToolResult, record: dict[str, Any]) -> None:
        source = as_text(as_dict(record.get("permissionDecision")).get("source"))
        self._decide(result.id, is_allowed=result.was_run, by_hook=source == "hook")

    def _read_other(self, record: dict[str, Any]) -> None:
        match record.get("type"):
            case "attachment":
                self._read_attachment(as_dict(record.get("attachment")))
            case "queue-operation":
                self._tell(Queued(as_text(record.get("content")), record.get("operation") == "enqueue"))
            case "system" if record.get("subtype") == "informational":
                self._read_notice(record)
            case _:
                pass

    def _read_attachment(self, attachment: dict[str, Any]) -> None:
        match attachment.get("type"):
            case "hook_additional_context":
                content = attachment.get("content")
                texts = [as_text(text) for text in content] if isinstance(content, list) else [as_text(content)]
                self._tell(Given("\n".join(texts)))
            case "hook_permission_decision":
                self._decide(as_text(attachment.get("toolUseID")), is_allowed=attachment.get("decision") == "allow", by_hook=True)
            case _:
                pass

    def _read_notice(self, record: dict[str, Any]) -> None:
        ending = as_dict(as_dict(record.get("promptSubmitEnding")).get("ending"))
        if ending.get("kind") == "blocked_by_hook":
            reason = f"One of your hooks blocked it: {as_text(ending.get('reason'))[:200]}"
            self._tell(NotGiven(as_text(record.get("content")), reason))

    def _decide(self, call_id: str, *, is_allowed: bool, by_hook: bool) -> None:
        """Both the hook's decision and the tool's result tell of it."""
        call = self._calls.get(call_id)
        if call is not None:
            self._tell(Decided(call, is_allowed, by_hook=by_hook))


async def look_up(home: Path, known: ClaudeKnown, message: DoorMessage) -> Whereabouts:
    """Read, waiting for its turn, or never seen: as the session files tell."""
    if not known.sessions:
        return Whereabouts.UNKNOWN
    found = await asyncio.to_thread(_search, home, known, message)
    if found is not Whereabouts.NOWHERE or await asyncio.to_thread(find_session, home, known) is None:
        return found
    await asyncio.sleep(WRITTEN_S)
    return await asyncio.to_thread(_search, home, known, message)


def _search(home: Path, known: ClaudeKnown, message: DoorMessage) -> Whereabouts:
    waiting = 0
    for path in transcript_paths(home, known.sessions):
        is_read, more = _search_file(path, message)
        if is_read:
            return Whereabouts.READ
        waiting += more
    # What waits in a program that has ended is gone with it.
    return Whereabouts.HELD if waiting > 0 and find_session(home, known) is not None else Whereabouts.NOWHERE


def _search_file(path: Path, message: DoorMessage) -> tuple[bool, int]:
    """Whether it was read, and how often it waits."""
    mark, waiting = mark_of(message), 0
    for signal in find_signals(path, ClaudeSignals(), message):
        match signal:
            case Given(text, uuid) if uuid == message.uuid or mark in text:
                return True, 0
            case NotGiven(text) if mark in text:
                waiting = 0
            case Queued(text, is_waiting) if mark in text:
                waiting += 1 if is_waiting else -1
            case _:
                pass
    return False, waiting
