"""Which CLI has doors, and who prepares its start. A CLI's module is imported only for that CLI: some are heavy."""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.terminal.doors.launch import Kit
from agent_relay.terminal.profiles.profile import Profile

ASKED_FOR_VERSION = frozenset({"opencode"})  # CLIs of which it decides how they are started


def kit_for(profile: Profile, *, asks_for_hooks: bool = False, version: Callable[[], str] = lambda: "") -> Kit | None:
    """None for a CLI that can only be typed to. `asks_for_hooks`: a CLI that runs hooks only with the person's word may ask.
    `version`: of the program, which may take a while to be found."""
    match profile.name if profile.doors else "":
        case "claude":
            from agent_relay.terminal.doors.claude.launch import ClaudeKit

            return ClaudeKit()
        case "codex":
            from agent_relay.terminal.doors.codex.launch import CodexKit

            return CodexKit(asks_for_hooks=asks_for_hooks)
        case "gemini":
            from agent_relay.terminal.doors.gemini.launch import GeminiKit

            return GeminiKit()
        case "opencode":
            from agent_relay.terminal.doors.opencode.launch import OpencodeKit

            return OpencodeKit(version)
        case _:
            return None
