"""The CLIs that the relay knows by name, which it may be asked to start, and the ways in which it runs one."""

from __future__ import annotations

from collections.abc import Mapping

# Only those whose permission modes and models are known: whoever asks for a start can then say how careful it shall be. Of the
# others that have a profile, and of any program, `spawn_allow` lets more be started.
KNOWN_CLIS = frozenset({"aider", "claude", "codex", "gemini", "goose", "opencode"})
# How each is installed, as its makers say.
INSTALLERS: Mapping[str, str] = {
    "aider": "uv tool install aider-chat", "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex", "gemini": "npm install -g @google/gemini-cli",
    "opencode": "npm install -g opencode-ai", "copilot": "npm install -g @github/copilot",
    "qwen": "npm install -g @qwen-code/qwen-code", "kilo": "npm install -g @kilocode/cli", "cline": "npm install -g cline",
    "vibe": "uv tool install mistral-vibe",
}  # fmt: skip
# In a terminal of its own, or by the Agent Client Protocol.
TERMINAL, ACP = "terminal", "acp"
TRANSPORTS = (TERMINAL, ACP)
