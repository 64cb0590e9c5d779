"""Observations about an agent besides its messages, as values; whoever records events turns them into those.

A session file tells them best. Where there is none, the rows of the screen tell tokens used and files changed.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from agent_relay.terminal.output.document import DocumentLine
from agent_relay.terminal.output.item_types import ItemType, find_item_type, read_command
from agent_relay.terminal.output.json_fields import as_list, as_text
from agent_relay.terminal.output.transcripts.file_changes import FileChange, read_patch
from agent_relay.terminal.output.transcripts.records import Record, Saying, Spending, Taking, Thinking, ToolCall, ToolResult
from agent_relay.terminal.profiles.profile import Kind, Profile, Transcript, compile_pattern
from agent_relay.terminal.screen.dialogs import NOWHERE, OpenDialog, digest_of

MAX_NOTICED = 2_000  # characters of a line; what a CLI says of itself stands at the beginning of a short one
_FACTORS = {"k": 1_000, "K": 1_000, "M": 1_000_000}
MAX_OUTPUT_CHARACTERS = 2_000  # of what a tool was given or printed, or the agent said; the CLI keeps the whole
_PATCH = "*** Begin Patch"


class ToolStarted(Struct, frozen=True, tag="tool_started"):
    id: str
    name: str
    input: str = ""  # what it was given, as JSON
    item_type: ItemType = "tool_call"


class ToolEnded(Struct, frozen=True, tag="tool_ended"):
    id: str
    name: str
    is_error: bool
    output: str = ""


class Uttered(Struct, frozen=True, tag="uttered"):
    """A message or a thought of the agent, whole. `started_ms` is 0 where the record does not say when it began."""

    id: str
    item_type: ItemType
    text: str
    at_ms: int
    started_ms: int = 0


class SpeechPart(Struct, frozen=True, tag="speech_part"):
    """A part of a message or a thought, told while the agent is still saying it. The parts of one have the same id."""

    id: str
    item_type: ItemType
    text: str
    is_last: bool = False


class PermissionAsked(Struct, frozen=True, tag="permission"):
    dialog: OpenDialog


class QuestionAsked(Struct, frozen=True, tag="question"):
    dialog: OpenDialog


class TokensUsed(Struct, frozen=True, tag="tokens"):
    input_tokens: int
    output_tokens: int
    model: str | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    input_includes_cache: bool = False  # the cached tokens are among the input tokens, and must not be charged twice
    id: str = ""  # of the record that says so; the same when the session file is read again


class FileTouched(Struct, frozen=True, tag="file"):
    operation: str  # read, write, edit, create or delete
    path: str
    lines_changed: int | None = None
    diff: str = ""


class CommandRun(Struct, frozen=True, tag="command"):
    command: str
    exit_code: int | None
    duration_ms: int | None  # None: the record does not say
    output: str = ""
    stderr: str = ""  # where the record has it apart


class MessageTaken(Struct, frozen=True, tag="taken"):
    """The agent has read a message that was given to it: proof for a receipt."""

    text: str
    message_id: str | None = None


Observation: TypeAlias = (
    ToolStarted
    | ToolEnded
    | Uttered
    | SpeechPart
    | PermissionAsked
    | QuestionAsked
    | TokensUsed
    | FileTouched
    | CommandRun
    | MessageTaken
)


def asked(dialog: OpenDialog) -> Observation:
    return PermissionAsked(dialog) if dialog.kind == "permission" else QuestionAsked(dialog)


class TranscriptObserver:
    """Records → observations. A command is known by its call, and told with its result."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._calls: dict[str, ToolCall] = {}

    def observe(self, record: Record) -> list[Observation]:
        match record:
            case ToolCall():
                self._calls[record.id] = record
                item_type = find_item_type(self._transcript, record.name, record.arguments)
                started = ToolStarted(record.id, record.name, show_input(record.arguments), item_type)
                return [started, *self._asked(record)]
            case ToolResult():
                return self._ended(record)
            case Spending():
                return [
                    TokensUsed(
                        record.input_tokens, record.output_tokens, record.model, record.cache_read_tokens,
                        record.cache_write_tokens, self._transcript.input_includes_cache, record.id,
                    )
                ]  # fmt: skip
            case Taking():
                return [MessageTaken(record.text, record.message_id)]
            case Saying() | Thinking():
                return [utter(record)] if record.id else []

    def _asked(self, call: ToolCall) -> list[Observation]:
        return [asked(dialog) for dialog in questions_of(call)] if call.name in self._transcript.questions else []

    def _touched(self, call: ToolCall, result: ToolResult) -> list[Observation]:
        """As the result shows it; else as far as the call itself tells."""
        kinds = (("read", self._transcript.reads), ("write", self._transcript.writes), ("edit", self._transcript.edits))
        usual = next((operation for operation, names in kinds if call.name in names), "")
        patch = _patch_of(call) if usual or call.name in self._transcript.commands else ""
        if result.changes is not None:
            changes = list(result.changes)
        elif patch:
            changes = read_patch(patch)
        else:
            changes = [FileChange(usual, path) for path in _paths_of(call)] if usual else []
        return [FileTouched(each.operation or usual or "edit", each.path, each.lines_changed, each.diff) for each in changes]

    def _ended(self, result: ToolResult) -> list[Observation]:
        call = self._calls.pop(result.id, None)
        output = result.output[:MAX_OUTPUT_CHARACTERS]
        found: list[Observation] = [ToolEnded(result.id, call.name if call else "", result.is_error, output)]
        if call is None or not result.was_run:
            return found
        if not result.is_error:
            found += self._touched(call, result)
        if call.name in self._transcript.commands:
            stdout = output if result.stdout is None else result.stdout[:MAX_OUTPUT_CHARACTERS]
            stderr = result.stderr[:MAX_OUTPUT_CHARACTERS]
            found.append(CommandRun(read_command(call.arguments), result.exit_code, _find_duration(call, result), stdout, stderr))
        return found


def utter(said: Saying | Thinking) -> Uttered:
    kind: ItemType = "message" if isinstance(said, Saying) else "thinking"
    return Uttered(said.id, kind, said.text[:MAX_OUTPUT_CHARACTERS], said.at_ms, said.started_ms)


def _find_duration(call: ToolCall, result: ToolResult) -> int | None:
    """With the time a person took to allow it, unless the record says how long it ran."""
    if result.duration_ms is not None:
        return result.duration_ms
    return max(result.at_ms - call.at_ms, 0) if call.at_ms and result.at_ms else None


def show_input(arguments: dict[str, Any]) -> str:
    return msgspec.json.encode(arguments).decode()[:MAX_OUTPUT_CHARACTERS] if arguments else ""


def questions_of(call: ToolCall) -> list[OpenDialog]:
    """The questions a tool puts to the person, as the dialogs they will be."""
    dialogs = []
    for entry in as_list(call.arguments.get("questions")):
        question = as_text(entry.get("question"))
        options = tuple(as_text(option.get("label")) for option in as_list(entry.get("options")))
        digest = digest_of("question", question, [], options)
        dialogs.append(OpenDialog("question", question, question, options, None, digest, NOWHERE))
    return dialogs


def _paths_of(call: ToolCall) -> list[str]:
    for name in ("file_path", "path", "notebook_path", "absolute_path"):
        value = call.arguments.get(name)
        if isinstance(value, str):
            return [value]
    return []


def _patch_of(call: ToolCall) -> str:
    """The patch it was given, by itself or as the text of a command."""
    given = [call.arguments.get(name) for name in ("input", "patch", "patchText")]
    patch = next((text for text in given if isinstance(text, str)), "") or read_command(call.arguments)
    return patch if _PATCH in patch else ""


def notice(profile: Profile, line: DocumentLine) -> list[Observation]:
    """Of one line, once. What a person typed, or a tool printed, is not the CLI's own word."""
    if line.kind is Kind.USER:
        return []
    found: list[Observation] = []
    text = line.text[:MAX_NOTICED]
    for pattern in profile.patterns.tokens if line.kind is not Kind.AGENT or not profile.rows.status else ():
        match = compile_pattern(pattern).search(text)
        if match:
            found.append(TokensUsed(*_counts(match)))
            break
    if line.kind is not Kind.AGENT:
        for pattern in profile.patterns.edits:
            match = compile_pattern(pattern).search(text)
            if match:
                found.append(FileTouched("edit", match[1].strip()))
    return found


def _counts(match: re.Match[str]) -> tuple[int, int]:
    named = match.groupdict()
    return (_count(named["input"]), _count(named["output"])) if "input" in named else (_count(match[1]), _count(match[2]))


def _count(text: str) -> int:
    """`1,500`, `2.3k`."""
    factor = _FACTORS.get(text[-1:], 1)
    return round(float(text.rstrip("kKM").replace(",", "").rstrip(".")) * factor)
