"""Events the daemon records, made of what was noticed about an agent: type and fields, without whose they are."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, TypeAlias

from agent_relay.events.costs import separate_cache
from agent_relay.terminal.output.observations import (
    CommandRun,
    FileTouched,
    Observation,
    SpeechPart,
    TokensUsed,
    ToolEnded,
    ToolStarted,
    Uttered,
)

UNKNOWN_MODEL = "unknown"
_MAX_TEXT = 20_000
_MAX_OPEN = 500

Told: TypeAlias = tuple[str, dict[str, Any]]


class ObservedEvents:
    """`run_id`: of this run of the program, so that its records are told from those of others with the same ids."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._started: OrderedDict[str, int] = OrderedDict()  # when each tool began, in milliseconds
        self._over: OrderedDict[str, None] = OrderedDict()  # those that have ended: a session file tells of them after a hook

    def of(self, seen: Observation) -> list[Told]:
        """Nothing for what is told in another way, or to nobody."""
        match seen:
            case ToolStarted():
                return self._begin(seen)
            case ToolEnded():
                return self._end(seen)
            case TokensUsed():
                return [("tokens.used", self._tokens(seen))]
            case Uttered():
                return _utter(seen)
            case SpeechPart():
                return self._say(seen)
            case FileTouched():
                return _touch(seen) if seen.path else []
            case CommandRun(command=command, exit_code=code, duration_ms=duration, output=output, stderr=stderr):
                fields = {"command": command[:_MAX_TEXT], "exitCode": code, "duration": duration}
                printed = {name: text for name, text in (("stdout", output), ("stderr", stderr)) if text}
                return [("command.executed", fields | printed)]
            case _:
                return []

    def _begin(self, tool: ToolStarted) -> list[Told]:
        if not tool.id or tool.id in self._started or tool.id in self._over:
            return []
        now = self._started[tool.id] = _now_ms()
        if len(self._started) > _MAX_OPEN:
            self._started.popitem(last=False)
        fields = {"itemId": tool.id, "itemType": tool.item_type, "startedAt": now, "metadata": {"tool": tool.name}}
        return [("item.started", fields), *_part(tool.id, "tool_input", tool.input)]

    def _end(self, tool: ToolEnded) -> list[Told]:
        began = self._started.pop(tool.id, None)
        if began is None:
            return []  # of a tool that nobody saw begin, or that was told
        self._over[tool.id] = None
        if len(self._over) > _MAX_OPEN:
            self._over.popitem(last=False)
        now = _now_ms()
        result = {"isError": tool.is_error}
        fields = {"itemId": tool.id, "completedAt": now, "duration": max(0, now - began), "result": result}
        return [*_part(tool.id, "tool_output", tool.output), ("item.completed", fields)]

    def _say(self, part: SpeechPart) -> list[Told]:
        now, told = _now_ms(), list[Told]()
        if part.id not in self._started:
            self._started[part.id] = now
            told.append(("item.started", {"itemId": part.id, "itemType": part.item_type, "startedAt": now}))
        told += _part(part.id, "text", part.text)
        if part.is_last:
            began = self._started.pop(part.id)
            told.append(("item.completed", {"itemId": part.id, "completedAt": now, "duration": max(0, now - began)}))
        return told

    def _tokens(self, seen: TokensUsed) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "model": seen.model or UNKNOWN_MODEL,
            "inputTokens": separate_cache(
                seen.input_tokens, seen.cache_read_tokens, seen.cache_write_tokens, input_includes_cache=seen.input_includes_cache
            ),
            "outputTokens": seen.output_tokens,
            "cacheReadTokens": seen.cache_read_tokens,
            "cacheWriteTokens": seen.cache_write_tokens,
            "usageId": f"{self._run_id}:{seen.id}" if seen.id else None,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _utter(said: Uttered) -> list[Told]:
    """Begun, said and done at once: the record is written when it is whole."""
    at_ms = said.at_ms or _now_ms()
    begun = {"itemId": said.id, "itemType": said.item_type, "startedAt": said.started_ms or at_ms}
    duration = max(0, at_ms - said.started_ms) if said.started_ms else None
    done = {"itemId": said.id, "completedAt": at_ms, "duration": duration}
    return [("item.started", begun), *_part(said.id, "text", said.text), ("item.completed", done)]


def _touch(file: FileTouched) -> list[Told]:
    fields: dict[str, Any] = {"operation": file.operation, "filePath": file.path[:_MAX_TEXT]}
    if file.lines_changed is not None:
        fields["linesChanged"] = file.lines_changed
    if file.diff:
        fields["diff"] = file.diff
    return [("file.operation", fields)]


def _part(item_id: str, kind: str, content: str) -> list[Told]:
    return [("item.delta", {"itemId": item_id, "delta": {"type": kind, "content": content}})] if content else []


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
