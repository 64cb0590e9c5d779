"""What can be said about the store's files while no daemon runs, for `doctor`."""

from __future__ import annotations

from pathlib import Path

from agent_relay.storage.sqlite_files import find_obstacle
from agent_relay.storage.sqlite_loss import read_note


def find_store_troubles(path: str) -> list[str]:
    """Why a daemon would not start with it, and what an earlier start found missing."""
    return [trouble for trouble in (find_obstacle(Path(path)), read_note(Path(path))) if trouble]
