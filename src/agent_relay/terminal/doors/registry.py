"""Which CLI has doors, and who prepares its start. A CLI's module is imported only for that CLI."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from agent_relay.terminal.doors.launching import Kit
from agent_relay.terminal.profile import Profile

_KITS = {"claude": "ClaudeKit", "codex": "CodexKit", "gemini": "GeminiKit", "opencode": "OpencodeKit"}


def kit_for(profile: Profile) -> Kit | None:
    """None for a CLI that can only be typed to."""
    name = _KITS.get(profile.name) if profile.doors else None
    if name is None:
        return None
    make: Callable[[], Kit] = getattr(import_module(f"agent_relay.terminal.doors.{profile.name}"), name)
    return make()
