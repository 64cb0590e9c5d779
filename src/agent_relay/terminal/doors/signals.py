"""What every reader of a session file does for a door: it keeps what it finds, and which tools were called."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from agent_relay.terminal.output.transcripts.records import RecordReader, SessionHead, ToolCall

_MAX_CALLS = 500

S = TypeVar("S")


class SignalKeeper(Generic[S]):
    """`reader` is that of the CLI's session files."""

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader
        self._calls: dict[str, ToolCall] = {}
        self.signals: list[S] = []

    def head(self, record: dict[str, Any]) -> SessionHead | None:
        return self._reader.head(record)

    def take(self) -> list[S]:
        signals, self.signals = self.signals, []
        return signals

    def _remember(self, call: ToolCall) -> None:
        """Until its result tells what became of it."""
        self._calls[call.id] = call
        if len(self._calls) > _MAX_CALLS:
            del self._calls[next(iter(self._calls))]
