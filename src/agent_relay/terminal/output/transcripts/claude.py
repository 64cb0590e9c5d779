"""Claude Code's session files: `~/.claude/projects/<working directory>/<session>.jsonl`.

A message of the model is written in several records, one for each part, that share its id and repeat its usage; so
texts go by the record's own id and usage by the message's. Records of helpers (`isSidechain`) are not the agent's words.
"""

from __future__ import annotations

import re
from typing import Any

from agent_relay.terminal.output.json_fields import as_count, as_dict, as_list, as_text, texts_of, time_ms
from agent_relay.terminal.output.transcripts.file_changes import FileChange, read_content, read_hunks
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

_REFUSALS = ("The user doesn't want to", "Permission to use", "[Request interrupted", "Claude requested permissions")


class ClaudeReader(SessionReader):
    def head(self, record: dict[str, Any]) -> SessionHead | None:
        cwd = as_text(record.get("cwd"))
        return SessionHead(as_text(record.get("sessionId")), cwd, time_ms(record.get("timestamp"))) if cwd else None

    def read(self, record: dict[str, Any]) -> list[Record]:
        id_ = as_text(record.get("uuid"))
        if id_ and not self._seen.is_new(id_):
            return []
        match record.get("type"):
            case "assistant":
                return self._read_answer(record, id_)
            case "user":
                return _read_user(record, id_)
            case "attachment":
                return _read_attachment(record, id_)
            case _:
                return []

    def _read_answer(self, record: dict[str, Any], id_: str) -> list[Record]:
        message = as_dict(record.get("message"))
        at_ms = time_ms(record.get("timestamp"))
        model = as_text(message.get("model")) or None
        found: list[Record] = []
        if not record.get("isSidechain"):
            text = "\n".join(text for text in texts_of(message.get("content"), "text") if text)
            thoughts = [part for part in as_list(message.get("content")) if part.get("type") == "thinking"]
            found += [Thinking(f"{id_}:{n}", as_text(part.get("thinking")), at_ms) for n, part in enumerate(thoughts)]
            found += [Saying(id_, text, at_ms, model)] if text else []
            found += [
                ToolCall(as_text(part.get("id")), as_text(part.get("name")), as_dict(part.get("input")), at_ms)
                for part in as_list(message.get("content"))
                if part.get("type") == "tool_use"
            ]
        usage = as_dict(message.get("usage"))
        # Until `stop_reason` is known the count is that of an answer still being written.
        if usage and message.get("stop_reason") and self._seen.is_new(f"usage:{as_text(message.get('id')) or id_}"):
            found.append(
                Spending(
                    as_text(message.get("id")) or id_, model, at_ms,
                    as_count(usage.get("input_tokens")), as_count(usage.get("output_tokens")),
                    as_count(usage.get("cache_read_input_tokens")), as_count(usage.get("cache_creation_input_tokens")),
                )
            )  # fmt: skip
        return found


def _read_user(record: dict[str, Any], id_: str) -> list[Record]:
    if record.get("isSidechain"):
        return []
    content = as_dict(record.get("message")).get("content")
    at_ms = time_ms(record.get("timestamp"))
    found: list[Record] = []
    for part in as_list(content):
        if part.get("type") == "tool_result":
            output = "\n".join(texts_of(part.get("content"), "text"))
            # A refusal by a hook or a rule reads as whatever its author wrote; newer versions name it as what it is.
            refused = bool(part.get("is_error")) and (bool(record.get("toolDenialKind")) or output.startswith(_REFUSALS))
            code = re.match(r"(?:Error: )?Exit code (\d+)", output)
            is_error = bool(part.get("is_error"))
            exit_code = int(code[1]) if code else None if is_error else 0
            told = as_dict(record.get("toolUseResult"))
            found.append(
                ToolResult(
                    as_text(part.get("tool_use_id")), at_ms, is_error, not refused, output, exit_code,
                    stdout=as_text(told.get("stdout")) if "stdout" in told else None, stderr=as_text(told.get("stderr")),
                    changes=_read_change(told),
                )
            )  # fmt: skip
    origin = as_dict(record.get("origin"))
    text = "\n".join(texts_of(content, "text"))
    if (
        text
        and not text.startswith("[Request interrupted by user")
        and (not record.get("isMeta") or origin.get("kind") == "peer")
    ):
        found.append(Taking(id_, text, at_ms, as_text(origin.get("msg_id")) or None))
    return found


def _read_change(told: dict[str, Any]) -> tuple[FileChange, ...] | None:
    """The change that a tool's own result shows beside what the agent was told of it."""
    path, hunks = as_text(told.get("filePath")), told.get("structuredPatch")
    if not path or not isinstance(hunks, list):
        return None
    if told.get("type") == "create":
        return (read_content(path, as_text(told.get("content"))),)
    return (read_hunks("", path, hunks),)


def _read_attachment(record: dict[str, Any], id_: str) -> list[Record]:
    """A message that was queued and taken up inside a turn."""
    attachment = as_dict(record.get("attachment"))
    if attachment.get("type") != "queued_command":
        return []
    origin = as_dict(attachment.get("origin"))
    text = as_text(origin.get("body")) or as_text(attachment.get("prompt"))
    return [Taking(id_, text, time_ms(record.get("timestamp")), as_text(origin.get("msg_id")) or None)] if text else []
