"""Codex's own record of a conversation (`~/.codex/sessions/…/rollout-*.jsonl`), and what we remember of the agent's.

A conversation is a thread of Codex's; `/new` and `/resume` lead to another one. The ones that were the agent's are kept in
its folder, for a later wrapper and for the door that comes after this one. A session file tells that turns begin and end, what
the agent was given, and what became of a tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent_relay.terminal.doors.door import DoorMessage, Whereabouts
from agent_relay.terminal.doors.known import KnownFile, KnownSession, put_last
from agent_relay.terminal.doors.ledger import mark_of
from agent_relay.terminal.doors.signals import Given, SignalReader, TurnBegan, TurnEnded, find_signals
from agent_relay.terminal.doors.versions import ask_version
from agent_relay.terminal.output.json_fields import as_dict
from agent_relay.terminal.output.transcripts.codex import CodexReader
from agent_relay.terminal.output.transcripts.records import ToolResult
from agent_relay.terminal.profiles.profile import Profile

MAX_REMEMBERED = 16
_SCANNED_BYTES = 67_108_864  # of the end of a file; what was handed over lately stands there
_ABORTED = "aborted by user"


class Codex(Struct, frozen=True):
    """The program that was started, as far as its doors need to know it."""

    command: str
    environment: Mapping[str, str]
    cwd: str
    home: Path
    profile: Profile
    mark: str  # words that only this agent was given
    since_ms: int

    async def version(self) -> str:
        """As it says itself; empty where it does not."""
        return await asyncio.to_thread(ask_version, self.command, self.environment, self.cwd)


KNOWN = KnownFile("codex-threads.json", list[KnownSession])  # the latest last


def remember(folder: str, thread: KnownSession) -> None:
    KNOWN.save(folder, put_last(KNOWN.load(folder), thread, MAX_REMEMBERED))


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
    paths = [thread.path for thread in KNOWN.load(folder)]
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
    found = (find_signals(Path(path), CodexSignals(), message, _SCANNED_BYTES) for path in paths if path)
    return any(isinstance(signal, Given) and is_of(signal, message) for signals in found for signal in signals)


def is_of(given: Given, message: DoorMessage) -> bool:
    """By our id, or word for word, several of them together: the text has an id of its own in it."""
    return given.uuid == message.uuid or message.text.strip() in given.text


class CodexSignals(SignalReader):
    def __init__(self) -> None:
        super().__init__(CodexReader())

    def _end(self, result: ToolResult, record: dict[str, Any]) -> None:
        if result.output.endswith(_ABORTED):
            # Nobody can say here whether it ran before a person broke it off; that its turn was broken off follows.
            self._calls.pop(result.id, None)
        else:
            super()._end(result, record)

    def _read_other(self, record: dict[str, Any]) -> None:
        match record.get("type"), as_dict(record.get("payload")).get("type"):
            case "event_msg", "task_started":
                self._tell(TurnBegan())
            case "event_msg", "task_complete":
                self._tell(TurnEnded())
            case "event_msg", "turn_aborted":
                self._tell(TurnEnded(is_broken_off=True))
            case _:
                pass
