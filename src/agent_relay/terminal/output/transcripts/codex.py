"""Codex's session files: `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`.

Everything is written twice, as a `response_item` for the model and as an `event_msg` for whoever watches; both carry
the same ids. Usage stands in `token_usage_record`, and in older versions only in `token_count`, which has no id: the sums
it holds tell it from others, within the session and those that were forked from it, since a fork begins with a copy of them.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from agent_relay.terminal.output.json_fields import as_count, as_dict, as_list, as_text, decode_object, texts_of, time_ms
from agent_relay.terminal.output.transcripts.records import (
    Record,
    Saying,
    Seen,
    SessionHead,
    SessionReader,
    Spending,
    Taking,
    Thinking,
    ToolCall,
    ToolResult,
)

_MAX_HEAD = 1_000  # characters before what a command printed
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})$", re.MULTILINE)
_WALL_TIME = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds?$", re.MULTILINE)
_SUMS = ("input_tokens", "cached_input_tokens", "output_tokens", "total_tokens")


class CodexReader(SessionReader):
    """`roots`: of each session, the one that it was forked from, or those before it were."""

    def __init__(self, seen: Seen | None = None, roots: dict[str, str] | None = None) -> None:
        super().__init__(seen)
        self._roots: dict[str, str] = {} if roots is None else roots
        self._root: str | None = None
        self._model: str | None = None
        self._has_usage_records = False

    def head(self, record: dict[str, Any]) -> SessionHead | None:
        if record.get("type") != "session_meta":
            return None
        payload = as_dict(record.get("payload"))
        session = as_text(payload.get("session_id")) or as_text(payload.get("id"))
        return SessionHead(session, as_text(payload.get("cwd")), time_ms(payload.get("timestamp") or record.get("timestamp")))

    def for_file(self) -> CodexReader:
        return CodexReader(self._seen, self._roots)

    def read(self, record: dict[str, Any]) -> list[Record]:
        payload = as_dict(record.get("payload"))
        at_ms = time_ms(record.get("timestamp"))
        match record.get("type"), payload.get("type"):
            case "session_meta", _:
                self._enter(payload)
                return []
            case "turn_context", _:
                self._model = as_text(payload.get("model")) or self._model
                return []
            case "response_item", kind:
                return self._read_item(payload, as_text(kind), at_ms)
            case "event_msg", "item_completed":
                return self._read_completed(as_dict(payload.get("item")), at_ms, as_count(payload.get("started_at_ms")))
            case "event_msg", "token_count":
                return [] if self._has_usage_records else self._read_token_count(payload, at_ms)
            case "token_usage_record", _:
                self._has_usage_records = True
                return self._spend(as_text(payload.get("response_id")), as_dict(payload.get("usage")), at_ms)
            case _:
                return []

    def _enter(self, payload: dict[str, Any]) -> None:
        if self._root is None:  # a fork has its own head first, and then maybe a copy of the other's
            parent, session = as_text(payload.get("forked_from_id")), as_text(payload.get("id"))
            self._root = self._roots.setdefault(session, self._roots.get(parent, parent) or session)

    def _read_item(self, item: dict[str, Any], kind: str, at_ms: int) -> list[Record]:
        match kind:
            case "message" if item.get("role") == "assistant":
                return self._say(item, "output_text", at_ms)
            case "function_call" | "custom_tool_call" | "local_shell_call":
                call = as_text(item.get("call_id"))
                if not self._seen.is_new(f"call:{call}"):
                    return []
                return [ToolCall(call, as_text(item.get("name")) or "local_shell", _arguments(item), at_ms)]
            case "web_search_call":
                return self._read_search(item, at_ms)
            case "reasoning":
                return self._think(item, "\n".join(texts_of(item.get("summary"))), at_ms)
            case "function_call_output" | "custom_tool_call_output":
                call = as_text(item.get("call_id"))
                return [_result(call, item.get("output"), at_ms)] if self._seen.is_new(f"result:{call}") else []
            case _:
                return []

    def _read_completed(self, item: dict[str, Any], at_ms: int, started_ms: int) -> list[Record]:
        match item.get("type"):
            case "AgentMessage":
                return self._say(item, "Text", at_ms, started_ms)
            case "Reasoning":
                text = "\n".join(line for line in item.get("summary_text") or () if isinstance(line, str))
                return self._think(item, text, at_ms, started_ms)
            case "UserMessage" if self._seen.is_new(f"user:{as_text(item.get('id'))}"):
                text = "\n".join(texts_of(item.get("content")))
                return [Taking(as_text(item.get("id")), text, at_ms, as_text(item.get("client_id")) or None)]
            case "HookPrompt" if self._seen.is_new(f"user:{as_text(item.get('id'))}"):  # what a hook made a turn go on with
                return [Taking(as_text(item.get("id")), "\n\n".join(texts_of(item.get("fragments"))), at_ms)]
            case _:
                return []

    def _read_search(self, item: dict[str, Any], at_ms: int) -> list[Record]:
        """A search by the model's maker: one record, written when it is done."""
        id_ = as_text(item.get("id")) or f"search-{at_ms}"
        if not self._seen.is_new(f"call:{id_}"):
            return []
        is_done = item.get("status") == "completed"
        return [
            ToolCall(id_, "web_search", as_dict(item.get("action")), at_ms),
            ToolResult(id_, at_ms, is_error=not is_done, was_run=is_done),
        ]

    def _think(self, item: dict[str, Any], text: str, at_ms: int, started_ms: int = 0) -> list[Record]:
        id_ = as_text(item.get("id")) or f"thought-{at_ms}"
        return [Thinking(id_, text, at_ms, started_ms)] if self._seen.is_new(f"thought:{id_}") else []

    def _say(self, item: dict[str, Any], part_type: str, at_ms: int, started_ms: int = 0) -> list[Record]:
        id_ = as_text(item.get("id"))
        text = "\n".join(text for text in texts_of(item.get("content"), part_type, part_type.lower()) if text)
        if not text or (id_ and not self._seen.is_new(f"said:{id_}")):
            return []
        return [Saying(id_, text, at_ms, self._model, started_ms)]

    def _read_token_count(self, payload: dict[str, Any], at_ms: int) -> list[Record]:
        info = as_dict(payload.get("info"))
        sums = as_dict(info.get("total_token_usage"))
        if not as_count(sums.get("total_tokens")):
            return []
        id_ = ":".join([self._root or "", *(str(as_count(sums.get(name))) for name in _SUMS)])
        return self._spend(id_, as_dict(info.get("last_token_usage")), at_ms)

    def _spend(self, id_: str, usage: dict[str, Any], at_ms: int) -> list[Record]:
        if not usage or not self._seen.is_new(f"usage:{id_}"):
            return []
        return [
            Spending(
                id_, self._model, at_ms, as_count(usage.get("input_tokens")), as_count(usage.get("output_tokens")),
                as_count(usage.get("cached_input_tokens")), as_count(usage.get("cache_write_input_tokens")),
            )
        ]  # fmt: skip


def _arguments(item: dict[str, Any]) -> dict[str, Any]:
    raw = item.get("arguments", item.get("input", item.get("action")))
    if isinstance(raw, dict):
        return raw
    decoded = decode_object(raw) if isinstance(raw, str) else None
    return decoded if decoded is not None else {"input": as_text(raw)}


def _result(call: str, output: object, at_ms: int) -> ToolResult:
    if isinstance(output, list):
        text = "\n".join(texts_of(as_list(output)))
    else:
        text = as_text(output) if isinstance(output, str) else msgspec.json.encode(output).decode()
    decoded = decode_object(text) or {}
    facts = as_dict(decoded.get("metadata"))
    printed, code, seconds = as_text(decoded.get("output")), facts.get("exit_code"), facts.get("duration_seconds")
    if not printed:
        printed, code, seconds = _split_head(text, code, seconds)
    refused = any(words in text[:400] for words in ("Rejected(", "rejected by user", "unsupported call", "is unavailable"))
    failed = refused or text.startswith("exec_command failed")
    exit_code = code if isinstance(code, int) else None
    duration_ms = round(seconds * 1000) if isinstance(seconds, int | float) else None
    return ToolResult(call, at_ms, failed or bool(exit_code), not refused, printed, exit_code, duration_ms=duration_ms)


def _split_head(text: str, code: object, seconds: object) -> tuple[str, object, object]:
    """Output of a command, its exit code and how long it took, of a text that says so in lines before `Output:`."""
    head, mark, printed = text[:_MAX_HEAD].partition("Output:\n")
    found = _EXIT_CODE.search(head)
    if not mark or (found is None and "Process running" not in head):
        return text, code, seconds
    took = _WALL_TIME.search(head)
    exit_code = code if found is None else int(found[1])
    return printed + text[_MAX_HEAD:], exit_code, seconds if took is None else float(took[1])
