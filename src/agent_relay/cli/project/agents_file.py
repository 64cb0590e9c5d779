"""`agents.json`, in which the daemon keeps who it knows: read without asking it."""

from __future__ import annotations

import json
import os

from agent_relay.protocol.names import is_name
from agent_relay.protocol.places import AGENTS_FILE


def read_names(state_dir: str) -> list[str]:
    try:
        with open(os.path.join(state_dir, AGENTS_FILE), encoding="utf-8") as file:
            agents = json.load(file)["agents"]
        names = [agent["name"] for agent in agents]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return sorted((name for name in names if isinstance(name, str) and is_name(name)), key=str.lower)


def read_connected(state_dir: str) -> dict[str, bool]:
    """Whether each was connected when the daemon last looked, by name."""
    try:
        with open(os.path.join(state_dir, AGENTS_FILE), encoding="utf-8") as file:
            return {str(agent["name"]): bool(agent["connected"]) for agent in json.load(file)["agents"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
