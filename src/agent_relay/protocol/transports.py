"""The ways in which the relay runs an agent it starts: in a terminal of its own, or by the Agent Client Protocol."""

from __future__ import annotations

TERMINAL, ACP = "terminal", "acp"
TRANSPORTS = (TERMINAL, ACP)
