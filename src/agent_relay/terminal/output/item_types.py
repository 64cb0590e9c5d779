"""Types of items: what a call of a tool is, by the tool's name and, of a command, by the program it runs.

Only what is plain is called a test run or a build; everything else stays a tool call.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from agent_relay.terminal.profiles.profile import Transcript

ItemType: TypeAlias = Literal["message", "tool_call", "thinking", "plan", "search", "test_run", "build"]

_MAX_LOOKED_AT = 500  # characters of a command; its program stands at the beginning
_BEFORE = re.compile(
    r"\s*(?:cd\s+\S+\s*(?:&&|;)|[A-Za-z_]\w*=\S*|time|env|npx|bunx|(?:uv|poetry|pipenv|hatch|pdm)\s+run|bundle\s+exec"
    r"|timeout\s+\S+|python[\d.]*\s+(?:-[A-Zu]+\s+)*-m)\s+"
)
_RUN = r"(?:npm|pnpm|yarn|bun)\s+(?:run\s+|run-script\s+)?"
_TESTS = re.compile(
    r"(?:\S*/)?(?:pytest|py\.test|tox|nox|unittest|jest|vitest|mocha|phpunit|rspec|ctest|gotestsum)(?![\w.-])"
    r"|(?:go|cargo|dotnet|mix|deno|swift|mvn|(?:\./)?mvnw|gradle|(?:\./)?gradlew)\s+(?:test|nextest)(?![\w-])"
    r"|npm\s+t(?!\S)|" + _RUN + r"test(?!\w)|make\s+(?:-\S+\s+)*(?:test|check)(?!\w)"
)
_BUILDS = re.compile(
    r"(?:go|cargo|dotnet|swift|bazel|docker|gradle|(?:\./)?gradlew|vite|next)\s+build(?![\w-])"
    r"|(?:mvn|(?:\./)?mvnw)\s+(?:package|compile|install)(?![\w-])|(?:cmake\s+--build|ninja|tsc|webpack|build)(?![\w./-])"
    r"|docker\s+compose\s+build(?![\w-])|" + _RUN + r"build(?!\w)|make\s+(?:-\S+\s+)*(?:all|build)(?!\w)|make\s*(?:$|&&|;|\|)"
)


def find_item_type(transcript: Transcript, name: str, arguments: dict[str, Any]) -> ItemType:
    if name in transcript.searches:
        return "search"
    if name in transcript.plans:
        return "plan"
    return _judge(read_command(arguments)) if name in transcript.commands else "tool_call"


def read_command(arguments: dict[str, Any]) -> str:
    """The command that a tool was given; empty where there is none."""
    for name in ("command", "cmd", "script"):
        value = arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return " ".join(str(part) for part in value)
    return ""


def _judge(command: str) -> ItemType:
    text = command[:_MAX_LOOKED_AT].strip()
    for shell in ("bash -lc ", "bash -c ", "sh -c "):
        text = text.removeprefix(shell).lstrip("'\"")
    while found := _BEFORE.match(text):
        text = text[found.end() :]
    if _TESTS.match(text):
        return "test_run"
    return "build" if _BUILDS.match(text) else "tool_call"
