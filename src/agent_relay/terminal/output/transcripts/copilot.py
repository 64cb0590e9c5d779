"""GitHub Copilot CLI's session files: `~/.copilot/session-state/<session>/events.jsonl`.

Everything that happens is an event with its own id. What a helper does names the call that started it; it is none of the
agent's.
"""

from __future__ import annotations

from typing import Any

from agent_relay.terminal.output.json_fields import as_count, as_dict, as_text, time_ms
from agent_relay.terminal.output.transcripts.records import (
    Record,
    Saying,
    SessionHead,
    SessionReader,
    Spending,
    Taking,
    ToolCall,
    ToolResult,
)


class CopilotReader(SessionReader):
    def head(self, record: dict[str, Any]) -> SessionHead | None:
        if record.get("type") != "session.start":
            return None
        data = as_dict(record.get("data"))
        cwd = as_text(as_dict(data.get("context")).get("cwd"))
        return SessionHead(as_text(data.get("sessionId")), cwd, time_ms(data.get("startTime")))

    def read(self, record: dict[str, Any]) -> list[Record]:
        id_, at_ms, data = as_text(record.get("id")), time_ms(record.get("timestamp")), as_dict(record.get("data"))
        if data.get("parentToolCallId") or not self._seen.is_new(id_):
            return []
        match record.get("type"):
            case "user.message":
                text = as_text(data.get("content"))
                return [Taking(id_, text, at_ms)] if text else []
            case "assistant.message":
                text = as_text(data.get("content"))
                return [Saying(id_, text, at_ms, as_text(data.get("model")) or None)] if text else []
            case "tool.execution_start":
                call = as_text(data.get("toolCallId"))
                return [ToolCall(call, as_text(data.get("toolName")), as_dict(data.get("arguments")), at_ms)]
            case "tool.execution_complete":
                return [_read_result(data, at_ms)]
            case "session.usage_record":
                return [_read_usage(as_dict(data.get("usage")), id_, at_ms)]
            case _:
                return []


def _read_result(data: dict[str, Any], at_ms: int) -> ToolResult:
    exit_code = as_dict(data.get("shellExecution")).get("exitCode")
    error = as_dict(data.get("error"))
    return ToolResult(
        as_text(data.get("toolCallId")), at_ms, data.get("success") is not True,
        as_text(error.get("code")) not in {"denied", "rejected"},
        as_text(as_dict(data.get("result")).get("content")) or as_text(error.get("message")),
        exit_code if isinstance(exit_code, int) else None,
    )  # fmt: skip


def _read_usage(usage: dict[str, Any], id_: str, at_ms: int) -> Spending:
    return Spending(
        id_, as_text(usage.get("model")) or None, at_ms, as_count(usage.get("inputTokens")), as_count(usage.get("outputTokens")),
        as_count(usage.get("cacheReadTokens")), as_count(usage.get("cacheWriteTokens")),
    )  # fmt: skip
