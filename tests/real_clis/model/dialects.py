"""What the four ways of asking a model have in common: a request is read into `Asked`, a reply is written as events.

A dialect is a module with `read(body)`, `whole(reply, asked)` for a client that does not stream, and
`stream(reply, pieces, asked)`, which yields the name (or None) and the data of each server-sent event.
"""

from __future__ import annotations

import json
import secrets
from typing import Any, TypeAlias

from tests.real_clis.model.script import Asked

Json: TypeAlias = dict[str, Any]
Event: TypeAlias = tuple[str | None, Json | str]

MODEL = "scripted-model"
INPUT_TOKENS, OUTPUT_TOKENS = 1_200, 60

_SHELLS = ("Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell")


def new_id(prefix: str) -> str:
    return prefix + secrets.token_hex(10)


def text_of(content: object) -> str:
    """The words of a message, whichever of the shapes they come in."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part if isinstance(part, str) else part["text"] for part in parts if _has_text(part))


def _has_text(part: object) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))


def tool_call(command: str, asked: Asked) -> tuple[str, Json]:
    """The tool and its arguments: the one that is named (`ask_user {"questions": …}`), else the CLI's own for commands, called
    such that it has to ask for permission."""
    name, _, arguments = command.partition(" ")
    if arguments.startswith("{"):
        return _own_name(name, asked), json.loads(arguments)
    return _shell_call(command, asked)


def _own_name(name: str, asked: Asked) -> str:
    """As the CLI calls it: it puts the name of the MCP server before that of a server's tool."""
    return next((tool for tool in asked.tools if tool == name or tool.endswith(f"_{name}")), name)


def _shell_call(command: str, asked: Asked) -> tuple[str, Json]:
    name = next((name for name in _SHELLS if name in asked.tools), None)
    if name is None:
        raise ValueError(f"The CLI offers no tool for commands; it offers {', '.join(asked.tools)}.")
    if name == "exec_command":
        return name, {"cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I run this?"}
    if name == "shell":
        return name, {"command": ["bash", "-lc", command]}
    return name, {"command": command, "description": "Run the command"}


def gather(items: list[tuple[bool, bool, str]]) -> tuple[tuple[str, ...], str, bool]:
    """`given`, `newest` and `has_tool_result` of items (is the model's own, is a tool's result, words), oldest first."""
    after = next((at + 1 for at in range(len(items) - 1, -1, -1) if items[at][0]), 0)
    given = tuple(text for is_own, _, text in items if not is_own and text)
    newest = "\n".join(text for _, _, text in items[after:] if text)
    return given, newest, any(is_result for _, is_result, _ in items[after:])
