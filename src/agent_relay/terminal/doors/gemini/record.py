"""The session of Gemini CLI that is this agent's: what its hooks told of it, remembered for a later wrapper, and its file.

The session file tells what the agent was given, that it answered, and how a tool's question ended.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from agent_relay.terminal.doors.door import DoorMessage
from agent_relay.terminal.doors.marks import is_in, mark_of
from agent_relay.terminal.doors.signals import SignalKeeper
from agent_relay.terminal.files.private_files import load_private, save_private
from agent_relay.terminal.output.transcripts.gemini import GeminiReader
from agent_relay.terminal.output.transcripts.records import (
    Record,
    Spending,
    Taking,
    ToolCall,
    ToolResult,
    as_text,
    decode_record,
)

KNOWN_FILE = "gemini-session.json"
MAX_REMEMBERED = 64  # sessions of one process: each `/clear` begins another
_SHORT = 8  # characters of its id that stand in the name of a session's file
_CANCELLED = "Request cancelled."


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


class Given(Struct, frozen=True):
    text: str


class Answered(Struct, frozen=True):
    pass


class Cancelled(Struct, frozen=True):
    """A person broke the turn off. What was said and given in it is taken out of the conversation again."""


class Decided(Struct, frozen=True):
    tool: str
    input: dict[str, Any]
    was_run: bool  # False: a person refused it
    output: str = ""


Signal: TypeAlias = Given | Answered | Cancelled | Decided


class SignalReader(SignalKeeper[Signal]):
    """A reader of session files that keeps what it finds in `signals`."""

    def __init__(self) -> None:
        super().__init__(GeminiReader())

    def read(self, record: dict[str, Any]) -> list[Record]:
        for found in self._reader.read(record):
            match found:
                case Taking(text=text):
                    self.signals.append(Given(text))
                case Spending():
                    self.signals.append(Answered())
                case ToolCall():
                    self._remember(found)
                case ToolResult():
                    self._decide(found)
                case _:
                    pass
        if record.get("type") == "info" and as_text(record.get("content")) == _CANCELLED:
            self.signals.append(Cancelled())
        return []

    def _decide(self, result: ToolResult) -> None:
        call = self._calls.pop(result.id, None)
        if call is not None:
            self.signals.append(Decided(call.name, call.arguments, result.was_run, result.output))


def was_given(path: Path, message: DoorMessage) -> bool:
    """Whether this session file has it as something the agent was given."""
    reader, needle = SignalReader(), mark_of(message).encode()
    try:
        with path.open("rb") as file:
            for line in file:
                record = decode_record(line) if needle in line else None
                if record is not None:
                    reader.read(record)
    except OSError:
        pass  # what was read of it counts
    return any(isinstance(signal, Given) and is_in(message, signal.text) for signal in reader.take())
