"""Signals: what a session file tells a door. A reader for each CLI's files keeps them until they are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from agent_relay.terminal.doors.door import DoorMessage
from agent_relay.terminal.doors.ledger import mark_of
from agent_relay.terminal.output.json_fields import decode_object
from agent_relay.terminal.output.transcripts.records import (
    Record,
    RecordReader,
    SessionHead,
    Spending,
    Taking,
    ToolCall,
    ToolResult,
)

_MAX_CALLS = 500


class Given(Struct, frozen=True):
    """The agent has it. `uuid`: that of the message, where the CLI keeps it."""

    text: str
    uuid: str = ""


class NotGiven(Struct, frozen=True):
    """The CLI took a message and will not give it to the agent."""

    text: str
    reason: str = ""


class Queued(Struct, frozen=True):
    """It waits for its turn (True), or does not any more."""

    text: str
    is_waiting: bool


class TurnBegan(Struct, frozen=True):
    pass


class TurnEnded(Struct, frozen=True):
    is_broken_off: bool = False  # by a person


class ModelAnswered(Struct, frozen=True):
    """The model has answered once."""


class Decided(Struct, frozen=True):
    """The question whether a tool may run is over. `by_hook`: a hook has answered it, else a person or a rule."""

    call: ToolCall
    was_run: bool  # False: it was refused
    output: str = ""
    by_hook: bool = False


Signal: TypeAlias = Given | NotGiven | Queued | TurnBegan | TurnEnded | ModelAnswered | Decided


class SignalReader:
    """`reader` is that of the CLI's session files; a CLI's own class adds what only its files tell."""

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader
        self._calls: dict[str, ToolCall] = {}  # of which nobody knows yet what became
        self._signals: list[Signal] = []

    def head(self, record: dict[str, Any]) -> SessionHead | None:
        return self._reader.head(record)

    def take(self) -> list[Signal]:
        signals, self._signals = self._signals, []
        return signals

    def read(self, record: dict[str, Any]) -> list[Record]:
        """Always nothing: what is found is taken elsewhere."""
        for found in self._reader.read(record):
            match found:
                case Taking():
                    self._tell(Given(found.text, found.message_id or ""))
                case Spending():
                    self._tell(ModelAnswered())
                case ToolCall():
                    self._calls[found.id] = found
                    if len(self._calls) > _MAX_CALLS:
                        del self._calls[next(iter(self._calls))]
                case ToolResult():
                    self._end(found, record)
                case _:
                    pass
        self._read_other(record)
        return []

    def _tell(self, signal: Signal) -> None:
        self._signals.append(signal)

    def _end(self, result: ToolResult, record: dict[str, Any]) -> None:
        """A tool has ended, or was refused."""
        del record
        call = self._calls.pop(result.id, None)
        if call is not None:
            self._tell(Decided(call, result.was_run, result.output))

    def _read_other(self, record: dict[str, Any]) -> None:
        """The rest of what a record tells."""


def find_signals(path: Path, reader: SignalReader, message: DoorMessage, last_bytes: int | None = None) -> list[Signal]:
    """Whatever a session file, or its end, tells of this message. Reads files: for a thread."""
    needles = (mark_of(message).encode(), message.uuid.encode())
    try:
        with path.open("rb") as file:
            if last_bytes is not None:
                file.seek(max(path.stat().st_size - last_bytes, 0))
            for line in file:
                # Nearly no line needs to be decoded.
                record = decode_object(line) if any(needle in line for needle in needles) else None
                if record is not None:
                    reader.read(record)
    except OSError:
        pass  # what was read of it counts
    return reader.take()
