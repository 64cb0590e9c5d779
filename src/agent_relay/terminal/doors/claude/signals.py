"""What the session file tells a door: which messages the agent has, which it will not get, and how a tool's question ended."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from agent_relay.terminal.doors.signals import SignalKeeper
from agent_relay.terminal.output.transcripts.claude import ClaudeReader
from agent_relay.terminal.output.transcripts.records import Record, Taking, ToolCall, ToolResult, as_dict, as_text


class Given(Struct, frozen=True):
    """The agent has it. `uuid` for what came through the inbox."""

    text: str
    uuid: str = ""


class NotGiven(Struct, frozen=True):
    """Claude Code took a message and will not give it to the agent."""

    text: str
    reason: str = ""


class Queued(Struct, frozen=True):
    """It waits for its turn (True), or does not any more."""

    text: str
    is_waiting: bool


class Decided(Struct, frozen=True):
    """The question whether a tool may run is over. `by_hook`: a hook has answered it, else a person or a rule."""

    tool: str
    input: dict[str, Any]
    is_allowed: bool
    by_hook: bool


Signal: TypeAlias = Given | NotGiven | Queued | Decided


class SignalReader(SignalKeeper[Signal]):
    """A reader of session files that keeps what it finds in `signals`."""

    def __init__(self) -> None:
        super().__init__(ClaudeReader())

    def read(self, record: dict[str, Any]) -> list[Record]:
        for found in self._reader.read(record):
            match found:
                case Taking():
                    self.signals.append(Given(found.text, found.message_id or ""))
                case ToolCall():
                    self._remember(found)
                case ToolResult():
                    source = as_text(as_dict(record.get("permissionDecision")).get("source"))
                    self._decide(found.id, is_allowed=found.was_run, by_hook=source == "hook")
                case _:
                    pass
        self._read_other(record)
        return []

    def _read_other(self, record: dict[str, Any]) -> None:
        match record.get("type"):
            case "attachment":
                self._read_attachment(as_dict(record.get("attachment")))
            case "queue-operation":
                is_waiting = record.get("operation") == "enqueue"
                self.signals.append(Queued(as_text(record.get("content")), is_waiting))
            case "system" if record.get("subtype") == "informational":
                self._read_notice(record)
            case _:
                pass

    def _read_attachment(self, attachment: dict[str, Any]) -> None:
        match attachment.get("type"):
            case "hook_additional_context":
                content = attachment.get("content")
                texts = [as_text(text) for text in content] if isinstance(content, list) else [as_text(content)]
                self.signals.append(Given("\n".join(texts)))
            case "hook_permission_decision":
                self._decide(as_text(attachment.get("toolUseID")), is_allowed=attachment.get("decision") == "allow", by_hook=True)
            case _:
                pass

    def _read_notice(self, record: dict[str, Any]) -> None:
        text = as_text(record.get("content"))
        ending = as_dict(as_dict(record.get("promptSubmitEnding")).get("ending"))
        if ending.get("kind") == "blocked_by_hook":
            self.signals.append(NotGiven(text, f"One of your hooks blocked it: {as_text(ending.get('reason'))[:200]}"))

    def _decide(self, call_id: str, *, is_allowed: bool, by_hook: bool) -> None:
        call = self._calls.get(call_id)
        if call is not None:
            self.signals.append(Decided(call.name, call.arguments, is_allowed, by_hook))
