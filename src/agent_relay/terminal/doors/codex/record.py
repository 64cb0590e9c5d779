"""Codex's own record of a conversation (`~/.codex/sessions/…/rollout-*.jsonl`), and what we remember of the agent's.

A conversation is a thread of Codex's; `/new` and `/resume` lead to another one. The ones that were the agent's are kept in
its folder, for a later wrapper and for the door that comes after this one. A session file tells that turns begin and end, what
the agent was given, and what became of a tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from agent_relay.terminal.doors.door import DoorMessage, DoorState, Whereabouts
from agent_relay.terminal.doors.marks import mark_of
from agent_relay.terminal.doors.signals import SignalKeeper
from agent_relay.terminal.files.private_files import read_private, replace_private
from agent_relay.terminal.output.transcripts.codex import CodexReader
from agent_relay.terminal.output.transcripts.records import (
    Record,
    Taking,
    ToolCall,
    ToolResult,
    as_count,
    as_dict,
    as_text,
    decode_record,
)

KNOWN_FILE = "codex-threads.json"
MAX_REMEMBERED = 16
_SCANNED_BYTES = 67_108_864  # of the end of a file; what was handed over lately stands there
_ABORTED = "aborted by user"


class Thread(Struct, frozen=True):
    """A conversation; `path` is empty until it is written down, with its first turn."""

    id: str
    path: str = ""


class ServedThread(Struct, frozen=True):
    """As the app-server tells of it."""

    thread: Thread
    is_agents: bool  # a person's conversation, not one that Codex has with itself
    state: DoorState | None
    waiting_for: str
    used_at: int


def load_known(folder: str) -> list[Thread]:
    """The agent's threads, the latest last."""
    try:
        return msgspec.json.decode(read_private(os.path.join(folder, KNOWN_FILE)) or b"[]", type=list[Thread])
    except msgspec.DecodeError:
        return []


def remember(folder: str, thread: Thread) -> None:
    others = [known for known in load_known(folder) if known.id != thread.id]
    replace_private(os.path.join(folder, KNOWN_FILE), msgspec.json.encode([*others, thread][-MAX_REMEMBERED:]))


def read_thread(value: object) -> ServedThread | None:
    """None for anything that has no id."""
    told = as_dict(value)
    id_ = as_text(told.get("id"))
    if not id_:
        return None
    path = as_text(told.get("path"))
    own = not told.get("ephemeral") and not told.get("parentThreadId") and told.get("threadSource") in {"user", None}
    state, waiting_for = read_status(as_dict(told.get("status")))
    used_at = max(as_count(told.get("recencyAt")), as_count(told.get("createdAt")))
    return ServedThread(Thread(id_, path if path.endswith(".jsonl") else ""), own, state, waiting_for, used_at)


def read_status(status: dict[str, Any]) -> tuple[DoorState | None, str]:
    """What the thread does, and what it waits for; None when it does not say, or says what we do not know."""
    match status.get("type"):
        case "idle" | "systemError":
            return DoorState.IDLE, ""
        case "active":
            flags = status.get("activeFlags")
            if isinstance(flags, list) and "waitingOnApproval" in flags:
                return DoorState.WAITING, "permission"
            if isinstance(flags, list) and "waitingOnUserInput" in flags:
                return DoorState.WAITING, "question"
            return DoorState.WORKING, ""
        case _:
            return None, ""


def is_queued(home: Path, message: DoorMessage) -> bool | None:
    """Whether it waits in Codex's own queue, by Codex's database, which is only read; None where that does not say."""
    for path in sorted(home.glob("queue_*.sqlite"), reverse=True):
        try:
            with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1.0)) as database:
                rows = database.execute("SELECT payload_json FROM queued_items").fetchall()
        except sqlite3.Error:
            return None
        words = (mark_of(message), message.uuid)
        return any(word in str(payload) for (payload,) in rows for word in words)
    return None


async def find_message(folder: str, home: Path, message: DoorMessage) -> Whereabouts:
    """By what Codex has written down: in the agent's conversations, and in its own queue."""
    paths = [thread.path for thread in load_known(folder)]
    if await asyncio.to_thread(was_read, paths, message):
        return Whereabouts.READ
    match await asyncio.to_thread(is_queued, home, message):
        case True:
            return Whereabouts.HELD
        case False:
            return Whereabouts.NOWHERE
        case None:
            return Whereabouts.UNKNOWN


def was_read(paths: list[str], message: DoorMessage) -> bool:
    """Whether one of these files has it as something the agent was given. Reads files: for a thread."""
    return any(_holds(Path(path), message) for path in paths if path)


def _holds(path: Path, message: DoorMessage) -> bool:
    words = (message.uuid.encode(), mark_of(message).encode())
    reader = CodexReader()
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _SCANNED_BYTES, 0))
            for line in file:
                # Nearly no line needs to be decoded.
                if any(word in line for word in words) and _has_taken(reader, line, message):
                    return True
    except OSError:
        return False
    return False


def _has_taken(reader: CodexReader, line: bytes, message: DoorMessage) -> bool:
    return any(is_of(record, message) for record in reader.read(decode_record(line) or {}))


def is_of(record: Record, message: DoorMessage) -> bool:
    """By our id, or word for word, several of them together: the text has an id of its own in it."""
    return isinstance(record, Taking) and (record.message_id == message.uuid or message.text.strip() in record.text)


class Given(Struct, frozen=True):
    text: str


class TurnBegan(Struct, frozen=True):
    pass


class TurnEnded(Struct, frozen=True):
    is_broken_off: bool  # by a person


class Decided(Struct, frozen=True):
    """A tool has ended, or was refused."""

    call: ToolCall
    was_run: bool


Signal: TypeAlias = Given | TurnBegan | TurnEnded | Decided


class SignalReader(SignalKeeper[Signal]):
    """A reader of session files that keeps what it finds in `signals`."""

    def __init__(self) -> None:
        super().__init__(CodexReader())

    def read(self, record: dict[str, Any]) -> list[Record]:
        for found in self._reader.read(record):
            match found:
                case Taking(text=text):
                    self.signals.append(Given(text))
                case ToolCall():
                    self._remember(found)
                case ToolResult():
                    self._decide(found)
                case _:
                    pass
        match record.get("type"), as_dict(record.get("payload")).get("type"):
            case "event_msg", "task_started":
                self.signals.append(TurnBegan())
            case "event_msg", "task_complete":
                self.signals.append(TurnEnded(is_broken_off=False))
            case "event_msg", "turn_aborted":
                self.signals.append(TurnEnded(is_broken_off=True))
            case _:
                pass
        return []

    def _decide(self, result: ToolResult) -> None:
        call = self._calls.pop(result.id, None)
        # Of one that a person broke off nobody can say here whether it ran; that its turn was broken off follows.
        if call is not None and not result.output.endswith(_ABORTED):
            self.signals.append(Decided(call, result.was_run))
