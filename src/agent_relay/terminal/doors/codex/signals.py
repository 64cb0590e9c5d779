"""What Codex's session file tells a door: that turns begin and end, what the agent was given, and what became of a tool."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from agent_relay.terminal.doors.signals import SignalKeeper
from agent_relay.terminal.output.transcripts.codex import CodexReader
from agent_relay.terminal.output.transcripts.records import Record, Taking, ToolCall, ToolResult, as_dict

_ABORTED = "aborted by user"


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
