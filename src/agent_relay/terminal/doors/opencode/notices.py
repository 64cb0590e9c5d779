"""What opencode's events tell of the agent's work: tools that start and end, commands, files, tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_relay.terminal.output.observations import Observation, TranscriptObserver
from agent_relay.terminal.output.transcripts.records import (
    Record,
    Seen,
    Spending,
    ToolCall,
    ToolResult,
    as_count,
    as_dict,
    as_text,
)
from agent_relay.terminal.profiles.profile import Transcript

_TOOLS = Transcript(
    shape="opencode", home="", commands=("bash",), reads=("read",), writes=("write",), edits=("edit", "apply_patch")
)  # fmt: skip
_ENDED = ("completed", "error")
_REMEMBERED = 500


class Notices:
    """`noticed` is called with what is new."""

    def __init__(self, noticed: Callable[[Observation], None]) -> None:
        self._noticed = noticed
        self._observer = TranscriptObserver(_TOOLS)
        self._models: dict[str, str] = {}  # by answer
        self._seen = Seen()

    def note_message(self, info: dict[str, Any]) -> None:
        if info.get("role") == "assistant":
            self._models[as_text(info.get("id"))] = as_text(info.get("modelID"))
            if len(self._models) > _REMEMBERED:
                del self._models[next(iter(self._models))]

    def note_part(self, part: dict[str, Any]) -> None:
        if part.get("type") == "tool":
            self._note_tool(part, as_dict(part.get("state")))
        elif part.get("type") == "step-finish":
            tokens, id_ = as_dict(part.get("tokens")), as_text(part.get("id"))
            cache = as_dict(tokens.get("cache"))
            model = self._models.get(as_text(part.get("messageID"))) or None
            counts = (as_count(tokens.get("input")), as_count(tokens.get("output")))
            self._tell(id_, Spending(id_, model, 0, *counts, as_count(cache.get("read")), as_count(cache.get("write"))))

    def _note_tool(self, part: dict[str, Any], state: dict[str, Any]) -> None:
        """It is pending until its input is whole, and runs also while a person is asked whether it may."""
        id_, times, status = as_text(part.get("callID")), as_dict(state.get("time")), state.get("status")
        if status == "running" or status in _ENDED:
            given = as_dict(state.get("input"))
            arguments = {**given, "file_path": given["filePath"]} if "filePath" in given else given
            self._tell(f"{id_}:start", ToolCall(id_, as_text(part.get("tool")), arguments, as_count(times.get("start"))))
        if status in _ENDED:
            is_error, code = status == "error", as_dict(state.get("metadata")).get("exit")
            output = as_text(state.get("error") if is_error else state.get("output"))
            result = ToolResult(
                id_, as_count(times.get("end")), is_error, was_run=not is_error, output=output,
                exit_code=code if isinstance(code, int) else None,
            )  # fmt: skip
            self._tell(f"{id_}:end", result)

    def _tell(self, id_: str, record: Record) -> None:
        if self._seen.is_new(id_):
            for observation in self._observer.observe(record):
                self._noticed(observation)
