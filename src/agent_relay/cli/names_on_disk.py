"""Agent names for completing a half-typed word: read from `agents.json`, which the daemon keeps, without asking it."""

from __future__ import annotations

import json
import os

import typer

from agent_relay.protocol import places
from agent_relay.protocol.names import is_name
from agent_relay.sdk.locate import locate


def complete_names(context: typer.Context, incomplete: str) -> list[str]:
    """Runs while somebody types, so nothing may be printed or raised."""
    chosen = context.params.get("project")
    environ = os.environ | ({places.ENV_PROJECT: chosen} if chosen else {})
    place = locate(socket=context.params.get("socket"), state_dir=context.params.get("state_dir"), environ=environ)
    return [name for name in read_names(place.state_dir) if name.lower().startswith(incomplete.lower())]


def read_names(state_dir: str) -> list[str]:
    try:
        with open(os.path.join(state_dir, places.AGENTS_FILE), encoding="utf-8") as file:
            agents = json.load(file)["agents"]
        names = [agent["name"] for agent in agents]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return sorted((name for name in names if isinstance(name, str) and is_name(name)), key=str.lower)
