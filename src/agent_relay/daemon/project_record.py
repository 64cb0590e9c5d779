"""The content of `project.json` in a state directory: which project it belongs to, and how its daemon was started last."""

from __future__ import annotations

import json
import os

import msgspec

from agent_relay.protocol import places


class ProjectRecord(msgspec.Struct):
    root: str = ""
    socket: str = ""
    flags: dict[str, str] = {}  # settings by name
    variables: dict[str, str] = {}  # settings that came from the environment, by variable
    started_at: int = 0
    port: int = 0  # of HTTP, when it was served last


def read_record(state_dir: str) -> ProjectRecord | None:
    """None where there is none, as of a daemon before this version."""
    try:
        with open(os.path.join(state_dir, places.PROJECT_FILE), "rb") as file:
            return msgspec.json.decode(file.read(), type=ProjectRecord)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def find_port_holder(home: str, port: int) -> str:
    """A sentence about the relay that says it listens on this port; nothing, where none does."""
    folder = places.projects_directory(home)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        state_dir = os.path.join(folder, name)
        try:
            with open(os.path.join(state_dir, places.HTTP_FILE), encoding="utf-8") as file:
                said = json.load(file)
        except (OSError, ValueError):
            continue
        if isinstance(said, dict) and said.get("port") == port:
            record = read_record(state_dir)
            return f"The relay of {record.root if record and record.root else state_dir} listens there."
    return ""
