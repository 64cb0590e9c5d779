"""What was noticed about an agent, as the events the daemon records: type and fields, without whose they are."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from agent_relay.events.costs import separate_cache
from agent_relay.terminal.observations import CommandRun, FileTouched, Observation, TokensUsed, ToolEnded, ToolStarted

UNKNOWN_MODEL = "unknown"
_MAX_TEXT = 20_000
_MAX_OPEN = 500


class Teller:
    """`run`: says which run of the program this is, so that its records are told from those of others with the same ids."""

    def __init__(self, run: Callable[[], str]) -> None:
        self._run = run
        self._started: OrderedDict[str, int] = OrderedDict()  # when each tool began, in milliseconds

    def tell(self, seen: Observation) -> tuple[str, dict[str, Any]] | None:
        """None for what is told in another way, or to nobody."""
        match seen:
            case ToolStarted(id=id_, name=name):
                return self._begin(id_, name)
            case ToolEnded(id=id_, is_error=is_error):
                return self._end(id_, is_error=is_error)
            case TokensUsed():
                return "tokens.used", self._tokens(seen)
            case FileTouched(operation=operation, path=path):
                return ("file.operation", {"operation": operation, "filePath": path[:_MAX_TEXT]}) if path else None
            case CommandRun(command=command, exit_code=code, duration_ms=duration, output=output):
                fields = {"command": command[:_MAX_TEXT], "exitCode": code, "duration": duration}
                return "command.executed", fields | ({"stdout": output} if output else {})
            case _:
                return None

    def _begin(self, id_: str, name: str) -> tuple[str, dict[str, Any]] | None:
        if not id_:
            return None
        now = self._started[id_] = _now_ms()
        if len(self._started) > _MAX_OPEN:
            self._started.popitem(last=False)
        return "item.started", {"itemId": id_, "itemType": "tool_call", "startedAt": now, "metadata": {"tool": name}}

    def _end(self, id_: str, *, is_error: bool) -> tuple[str, dict[str, Any]] | None:
        began = self._started.pop(id_, None)
        if began is None:
            return None  # of a tool that nobody saw begin
        now = _now_ms()
        result = {"isError": is_error}
        return "item.completed", {"itemId": id_, "completedAt": now, "duration": max(0, now - began), "result": result}

    def _tokens(self, seen: TokensUsed) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "model": seen.model or UNKNOWN_MODEL,
            "inputTokens": separate_cache(
                seen.input_tokens, seen.cache_read_tokens, seen.cache_write_tokens, input_includes_cache=seen.input_includes_cache
            ),
            "outputTokens": seen.output_tokens,
            "cacheReadTokens": seen.cache_read_tokens,
            "cacheWriteTokens": seen.cache_write_tokens,
            "usageId": f"{self._run()}:{seen.id}" if seen.id else None,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
