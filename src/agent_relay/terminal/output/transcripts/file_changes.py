"""Changes of files as the records of CLIs show them: unified diffs, hunks, whole contents, and patches of the form that Codex
and opencode apply.

A diff is cut to whole lines of a bounded size; the lines changed are those of all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from agent_relay.terminal.output.json_fields import as_count, as_list

MAX_DIFF_CHARACTERS = 4_000  # of one file; the CLI keeps the whole
MAX_CHANGES = 100  # files of one call; a patch that touches more is told in part
_OPERATIONS = {"*** Add File: ": "create", "*** Update File: ": "edit", "*** Delete File: ": "delete"}
_MOVE = "*** Move to: "


class FileChange(Struct, frozen=True):
    """`lines_changed` counts added and removed lines; None where the record does not show them."""

    operation: str  # create, delete, edit or write; empty: what the tool does by its name
    path: str
    lines_changed: int | None = None
    diff: str = ""


def read_diff(operation: str, path: str, diff: str) -> FileChange:
    """A change with a unified diff, whatever stands before its first hunk."""
    lines = diff.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith("@@")), None)
    return FileChange(operation, path) if start is None else _change(operation, path, lines[start:])


def read_hunks(operation: str, path: str, hunks: object) -> FileChange:
    """A change with the hunks of a diff as objects: where each begins, how long it is, and its lines."""
    lines: list[str] = []
    for hunk in as_list(hunks):
        old, new = (f"{as_count(hunk.get(f'{side}Start'))},{as_count(hunk.get(f'{side}Lines'))}" for side in ("old", "new"))
        lines += [f"@@ -{old} +{new} @@", *_strings(hunk.get("lines"))]
    return _change(operation, path, lines) if lines else FileChange(operation, path)


def read_content(path: str, content: str) -> FileChange:
    """A new file with everything in it."""
    lines = content.splitlines()
    return _change("create", path, [f"@@ -0,0 +1,{len(lines)} @@", *(f"+{line}" for line in lines)])


def read_patch(text: str) -> list[FileChange]:
    """Every file of a patch between `*** Begin Patch` and `*** End Patch`. A file that is moved is one gone and a new one."""
    changes: list[FileChange] = []
    operation, path = "", ""
    lines: list[str] = []

    def close() -> None:
        if path:
            changes.append(FileChange("delete", path) if operation == "delete" else _change(operation, path, lines))

    for line in text.splitlines():
        mark = next((mark for mark in _OPERATIONS if line.startswith(mark)), None)
        if mark is not None:
            close()
            operation, path, lines = _OPERATIONS[mark], line[len(mark) :].strip(), []
        elif line.startswith(_MOVE) and path:
            changes.append(FileChange("delete", path))
            operation, path = "create", line[len(_MOVE) :].strip()
        elif line.startswith("*** End Patch"):
            break
        elif not line.startswith("***"):
            lines.append(line)
    close()
    return changes[:MAX_CHANGES]


def _change(operation: str, path: str, lines: list[str]) -> FileChange:
    changed = sum(line[:1] in {"+", "-"} for line in lines)
    return FileChange(operation, path, changed, _cut(lines))


def _cut(lines: Iterable[str]) -> str:
    kept: list[str] = []
    room = MAX_DIFF_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(kept)


def _strings(value: Any) -> list[str]:
    return [line for line in value if isinstance(line, str)] if isinstance(value, list) else []
