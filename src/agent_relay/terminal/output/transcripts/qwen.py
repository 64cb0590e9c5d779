"""Qwen Code's session files: `~/.qwen/projects/<cwd with - for />/chats/<session>.jsonl`.

A message of either side has the parts that Gemini's models speak in: texts, thoughts, calls of tools and what they returned.
"""

from __future__ import annotations

from typing import Any

from agent_relay.terminal.output.json_fields import as_count, as_dict, as_list, as_text, time_ms
from agent_relay.terminal.output.transcripts.records import (
    Record,
    Saying,
    SessionHead,
    SessionReader,
    Spending,
    Taking,
    Thinking,
    ToolCall,
    ToolResult,
)


class QwenReader(SessionReader):
    def head(self, record: dict[str, Any]) -> SessionHead | None:
        if not record.get("sessionId"):
            return None
        return SessionHead(as_text(record.get("sessionId")), as_text(record.get("cwd")), time_ms(record.get("timestamp")))

    def read(self, record: dict[str, Any]) -> list[Record]:
        id_, at_ms = as_text(record.get("uuid")), time_ms(record.get("timestamp"))
        if record.get("isSidechain") is True or not self._seen.is_new(id_):
            return []
        parts = [as_dict(part) for part in as_list(as_dict(record.get("message")).get("parts"))]
        match record.get("type"):
            case "user":
                text = _text_of(parts, is_thought=False)
                return [Taking(id_, text, at_ms)] if text else []
            case "assistant":
                return _read_answer(record, parts, id_, at_ms)
            case "tool_result":
                return _read_results(record, parts, at_ms)
            case _:
                return []


def _read_answer(record: dict[str, Any], parts: list[dict[str, Any]], id_: str, at_ms: int) -> list[Record]:
    model = as_text(record.get("model")) or None
    found: list[Record] = []
    if thought := _text_of(parts, is_thought=True):
        found.append(Thinking(f"{id_}:thought", thought, at_ms))
    if text := _text_of(parts, is_thought=False):
        found.append(Saying(id_, text, at_ms, model))
    calls = [as_dict(part.get("functionCall")) for part in parts if part.get("functionCall")]
    found += [ToolCall(as_text(call.get("id")), as_text(call.get("name")), as_dict(call.get("args")), at_ms) for call in calls]
    usage = as_dict(record.get("usageMetadata"))
    if usage:
        spent = as_count(usage.get("candidatesTokenCount")) + as_count(usage.get("thoughtsTokenCount"))
        read, cached = as_count(usage.get("promptTokenCount")), as_count(usage.get("cachedContentTokenCount"))
        found.append(Spending(id_, model, at_ms, read, spent, cached))
    return found


def _read_results(record: dict[str, Any], parts: list[dict[str, Any]], at_ms: int) -> list[Record]:
    outcome = as_dict(record.get("toolCallResult"))
    status = as_text(outcome.get("status"))
    exit_code = as_dict(outcome.get("resultDisplay")).get("exitCode")
    found: list[Record] = []
    for answer in (as_dict(part.get("functionResponse")) for part in parts):
        if answer:
            said = as_dict(answer.get("response"))
            told = as_text(said.get("output")) or as_text(said.get("error"))
            code = exit_code if isinstance(exit_code, int) else None
            is_error = status not in {"", "success"}
            found.append(ToolResult(as_text(answer.get("id")), at_ms, is_error, status != "cancelled", told, code))
    return found


def _text_of(parts: list[dict[str, Any]], *, is_thought: bool) -> str:
    return "\n".join(text for part in parts if bool(part.get("thought")) is is_thought and (text := as_text(part.get("text"))))
