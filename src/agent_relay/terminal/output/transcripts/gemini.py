"""Gemini CLI's session files: `~/.gemini/tmp/<project>/chats/session-*.jsonl`.

A record is written again, with the same id, when its tool calls have run; and after a cancelled request the whole
history is written anew under new ids. Those copies have neither model nor tokens: by that they are told from answers.
What a hook adds to a tool's result stands at its end, between tags of its own.
"""

from __future__ import annotations

import re
from typing import Any

from agent_relay.terminal.output.json_fields import as_count, as_dict, as_list, as_text, texts_of, time_ms
from agent_relay.terminal.output.transcripts.file_changes import FileChange, read_diff
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

_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,10})$", re.MULTILINE)
_FINISHED = {"success", "error", "cancelled"}
_ADDED = re.compile(r"\n\n<hook_context>((?:(?!</?hook_context>).)*)</hook_context>\s*\Z", re.DOTALL)
_COPY_SPREAD_MS = 50  # the copies of a history are written in one go


class GeminiReader(SessionReader):
    def __init__(self) -> None:
        super().__init__()
        self._copied_at_ms = 0

    def head(self, record: dict[str, Any]) -> SessionHead | None:
        if not record.get("sessionId"):
            return None
        return SessionHead(as_text(record.get("sessionId")), "", time_ms(record.get("startTime")))

    def read(self, record: dict[str, Any]) -> list[Record]:
        id_, at_ms = as_text(record.get("id")), time_ms(record.get("timestamp"))
        match record.get("type"):
            case "gemini":
                return self._read_answer(record, id_, at_ms)
            case "user" if self._seen.is_new(id_):
                text = "\n".join(text for text in [*texts_of(record.get("content")), *_added_by_hooks(record)] if text)
                is_copy = abs(at_ms - self._copied_at_ms) <= _COPY_SPREAD_MS
                return [Taking(id_, text, at_ms)] if text and not is_copy else []
            case _:
                return []

    def _read_answer(self, record: dict[str, Any], id_: str, at_ms: int) -> list[Record]:
        model = as_text(record.get("model")) or None
        if model is None and not record.get("tokens"):
            self._copied_at_ms = at_ms
            return []
        text = "\n".join(text for text in texts_of(record.get("content")) if text)
        found: list[Record] = self._read_thoughts(record, id_, at_ms)
        if text and self._seen.is_new(f"said:{id_}"):
            found.append(Saying(id_, text, at_ms, model))
        for call in as_list(record.get("toolCalls")):
            found += self._read_call(call, at_ms)
        tokens = as_dict(record.get("tokens"))
        if tokens and self._seen.is_new(f"usage:{id_}"):
            spent = as_count(tokens.get("output")) + as_count(tokens.get("thoughts"))
            found.append(Spending(id_, model, at_ms, as_count(tokens.get("input")), spent, as_count(tokens.get("cached"))))
        return found

    def _read_thoughts(self, record: dict[str, Any], id_: str, at_ms: int) -> list[Record]:
        return [
            Thinking(f"{id_}:{number}", _show_thought(thought), time_ms(thought.get("timestamp")) or at_ms)
            for number, thought in enumerate(as_list(record.get("thoughts")))
            if self._seen.is_new(f"thought:{id_}:{number}")
        ]

    def _read_call(self, call: dict[str, Any], at_ms: int) -> list[Record]:
        """A call begins with the answer that makes it; the time it carries itself is that of its end."""
        id_, status = as_text(call.get("id")), as_text(call.get("status"))
        ended_ms = time_ms(call.get("timestamp")) or at_ms
        at_ms = min(at_ms, ended_ms)  # records are put in the order of their times, and no end comes before its beginning
        found: list[Record] = []
        if self._seen.is_new(f"call:{id_}"):
            found.append(ToolCall(id_, as_text(call.get("name")), as_dict(call.get("args")), at_ms))
        if status in _FINISHED and self._seen.is_new(f"result:{id_}"):
            shown, told = call.get("resultDisplay"), _told_to_agent(call)
            exit_code = _EXIT_CODE.search(told)
            found.append(
                ToolResult(
                    id_, ended_ms, status != "success", status != "cancelled", as_text(shown) or told,
                    int(exit_code[1]) if exit_code else 0 if status == "success" else None, changes=_read_change(as_dict(shown)),
                )
            )  # fmt: skip
        return found


def _show_thought(thought: dict[str, Any]) -> str:
    return "\n".join(filter(None, (as_text(thought.get("subject")), as_text(thought.get("description")))))


def _told_to_agent(call: dict[str, Any]) -> str:
    results = [as_dict(as_dict(part.get("functionResponse")).get("response")) for part in as_list(call.get("result"))]
    return "\n".join(filter(None, (as_text(result.get("output")) or as_text(result.get("error")) for result in results)))


def _read_change(shown: dict[str, Any]) -> tuple[FileChange, ...] | None:
    """An empty file looks like none at all before the change: only where it is said, a file was created."""
    path, diff = as_text(shown.get("filePath")) or as_text(shown.get("fileName")), as_text(shown.get("fileDiff"))
    if not path or not diff:
        return None
    is_new = shown.get("isNewFile") is True or ("originalContent" in shown and shown["originalContent"] is None)
    return (read_diff("create" if is_new else "", path, diff),)


def _added_by_hooks(record: dict[str, Any]) -> list[str]:
    """Texts that stand behind the results of tools that the agent was given."""
    results = [as_dict(part.get("functionResponse")) for part in as_list(record.get("content"))]
    outputs = [as_text(as_dict(result.get("response")).get("output")) for result in results]
    return [found[1] for found in map(_ADDED.search, outputs) if found]
