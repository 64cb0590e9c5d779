"""The session of Gemini CLI that is this agent's: what its hooks told of it, remembered for a later wrapper, and its file.

The session file tells what the agent was given, that it answered, and how a tool's question ended.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from agent_relay.terminal.doors.door import DoorMessage
from agent_relay.terminal.doors.known import KnownFile, KnownSession, put_last
from agent_relay.terminal.doors.ledger import is_in
from agent_relay.terminal.doors.signals import Given, SignalReader, TurnEnded, find_signals
from agent_relay.terminal.output.json_fields import as_text
from agent_relay.terminal.output.transcripts.gemini import GeminiReader

MAX_REMEMBERED = 64  # sessions of one process: each `/clear` begins another
_CANCELLED = "Request cancelled."


class GeminiKnown(Struct):
    sessions: list[KnownSession] = []
    introduced: list[str] = []  # ids of the sessions whose agent was told what the relay is

    @property
    def paths(self) -> list[Path]:
        return [Path(session.path) for session in self.sessions if session.path]

    def add(self, session: KnownSession) -> bool:
        """True: it is another one than the last."""
        if self.sessions and self.sessions[-1] == session:
            return False
        self.sessions = put_last(self.sessions, session, MAX_REMEMBERED)
        return True


KNOWN = KnownFile("gemini-session.json", GeminiKnown)


class GeminiSignals(SignalReader):
    def __init__(self) -> None:
        super().__init__(GeminiReader())

    def _read_other(self, record: dict[str, Any]) -> None:
        """Of a turn that a person broke off, what was said and given in it is taken out of the conversation again."""
        if record.get("type") == "info" and as_text(record.get("content")) == _CANCELLED:
            self._tell(TurnEnded(is_broken_off=True))


def was_given(path: Path, message: DoorMessage) -> bool:
    """Whether this session file has it as something the agent was given. Reads files: for a thread."""
    signals = find_signals(path, GeminiSignals(), message)
    return any(isinstance(signal, Given) and is_in(message, signal.text) for signal in signals)
