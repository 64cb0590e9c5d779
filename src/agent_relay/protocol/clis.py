"""The CLIs that the relay knows by name: those it may be asked to start."""

from __future__ import annotations

KNOWN_CLIS = frozenset({"aider", "claude", "codex", "gemini", "goose", "opencode"})
