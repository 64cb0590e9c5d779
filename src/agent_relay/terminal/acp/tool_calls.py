"""Tool calls of an ACP agent, as the relay sees them: what is called, about what, and what came of it."""

from __future__ import annotations

import difflib
from typing import Any

import msgspec
from acp.schema import ContentToolCallContent, FileEditToolCallContent, TextContentBlock, ToolCall, ToolCallUpdate
from msgspec import Struct

from agent_relay.protocol import tool_names
from agent_relay.terminal.output.item_types import ItemType
from agent_relay.terminal.output.json_fields import as_dict
from agent_relay.terminal.output.observations import MAX_OUTPUT_CHARACTERS, CommandRun, FileTouched, ToolEnded, ToolStarted

MAX_DIFF_CHARACTERS = 20_000
_TOOLS = {
    "read": tool_names.READ, "edit": tool_names.EDIT, "execute": tool_names.BASH, "fetch": tool_names.FETCH,
    "search": tool_names.GREP,
}  # fmt: skip
_ITEM_TYPES: dict[str, ItemType] = {"search": "search", "think": "thinking"}
_COMMANDS = ("command", "cmd", "script")
_PATHS = ("file_path", "filePath", "absolute_path", "path", "notebook_path")
_OVER = frozenset({"completed", "failed"})


class Call(Struct):
    """One call; updates of it change what they name, and leave the rest."""

    id: str
    title: str = ""
    kind: str = ""
    status: str = ""
    given: Any = None
    output: str = ""
    locations: tuple[str, ...] = ()
    diffs: tuple[FileTouched, ...] = ()
    began: float = 0.0
    is_told: bool = False

    @property
    def is_over(self) -> bool:
        return self.status in _OVER

    def take(self, update: ToolCall | ToolCallUpdate) -> None:
        self.title = update.title or self.title
        self.kind = update.kind or self.kind
        self.status = update.status or self.status
        self.given = update.raw_input if update.raw_input is not None else self.given
        if update.locations is not None:
            self.locations = tuple(location.path for location in update.locations)
        if update.content is not None:
            self.diffs = tuple(_touched(part) for part in update.content if isinstance(part, FileEditToolCallContent))
            self.output = "\n".join(_texts(update.content)) or self.output
        if update.raw_output is not None and not self.output:
            self.output = update.raw_output if isinstance(update.raw_output, str) else _show(update.raw_output)

    @property
    def tool(self) -> str:
        """The kind of tool, by the name that rules know. One of an unknown kind has no such name."""
        return _TOOLS.get(self.kind, self.kind or "tool")

    @property
    def command(self) -> str:
        """The whole command of a tool that runs one, in the agent's own words; empty where it does not say."""
        return _first(self.given, _COMMANDS) if self.kind == "execute" else ""

    @property
    def path(self) -> str:
        return _first(self.given, _PATHS) or next(iter(self.locations), "") or next((touched.path for touched in self.diffs), "")

    @property
    def item_type(self) -> ItemType:
        return _ITEM_TYPES.get(self.kind, "tool_call")

    def begin(self) -> ToolStarted:
        return ToolStarted(self.id, self.title or self.tool, _show(self.given), self.item_type)

    def end(self, now: float) -> list[ToolEnded | FileTouched | CommandRun]:
        is_error = self.status != "completed"
        found: list[ToolEnded | FileTouched | CommandRun] = [
            ToolEnded(self.id, self.title or self.tool, is_error, self.output[:MAX_OUTPUT_CHARACTERS])
        ]
        if not is_error:
            found += self.diffs
            if self.kind == "read" and self.path:
                found.append(FileTouched("read", self.path))
        if self.kind == "execute":
            command = self.command or self.title
            found.append(CommandRun(command, None, round((now - self.began) * 1000), self.output[:MAX_OUTPUT_CHARACTERS]))
        return found


def _first(given: Any, names: tuple[str, ...]) -> str:
    found = as_dict(given)
    return next((value for name in names if isinstance(value := found.get(name), str) and value), "")


def _show(given: Any) -> str:
    if given is None:
        return ""
    try:
        return msgspec.json.encode(given).decode()[:MAX_OUTPUT_CHARACTERS]
    except (TypeError, ValueError):
        return ""


def _texts(content: list[Any]) -> list[str]:
    return [
        part.content.text
        for part in content
        if isinstance(part, ContentToolCallContent) and isinstance(part.content, TextContentBlock)
    ]


def _touched(edit: FileEditToolCallContent) -> FileTouched:
    before, after = (edit.old_text or "").splitlines(), edit.new_text.splitlines()
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    changed = sum(1 for line in lines if line[:1] in {"+", "-"})
    operation = "edit" if edit.old_text is not None else "create"
    return FileTouched(operation, edit.path, changed, "\n".join(lines)[:MAX_DIFF_CHARACTERS])
