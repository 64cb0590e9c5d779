"""The CLIs that the relay knows by name: those it may be asked to start."""

from __future__ import annotations

from collections.abc import Mapping

KNOWN_CLIS = frozenset({"aider", "claude", "codex", "gemini", "goose", "opencode"})
# How each is installed, as its makers say.
INSTALLERS: Mapping[str, str] = {
    "aider": "uv tool install aider-chat", "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex", "gemini": "npm install -g @google/gemini-cli",
    "opencode": "npm install -g opencode-ai",
}  # fmt: skip
