"""The projects of this user whose relay runs now, as their state directories say: for the switcher of the page.

Only where each is, and how many agents are there. A page is let in by each relay itself, with a key of its own.
"""

from __future__ import annotations

import json
import os
from typing import Any

from agent_relay.daemon.project_record import read_record
from agent_relay.ports.watchers import RunningProject
from agent_relay.private_files import is_locked
from agent_relay.protocol import places

_MOST = 200


class RunningProjects:
    """Implements `ports.Projects`. `own_state_dir` is that of the daemon that asks, which the page knows already."""

    def __init__(self, home: str, own_state_dir: str) -> None:
        self._folder = places.projects_directory(home)
        self._own = os.path.realpath(own_state_dir)

    def others(self) -> list[RunningProject]:
        try:
            names = sorted(os.listdir(self._folder))[:_MOST]
        except OSError:
            return []
        found = [_look_at(folder) for name in names if os.path.realpath(folder := os.path.join(self._folder, name)) != self._own]
        return sorted((each for each in found if each is not None), key=lambda project: (project.name.lower(), project.path))


def _look_at(folder: str) -> RunningProject | None:
    """None: no relay of ours runs there, or it serves no page."""
    try:
        if os.lstat(folder).st_uid != os.geteuid() or not is_locked(os.path.join(folder, places.LOCK_FILE)):
            return None
    except OSError:
        return None
    record, place = read_record(folder), _read(os.path.join(folder, places.HTTP_FILE))
    url = place.get("url")
    if record is None or not record.root or not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return None
    agents = _read(os.path.join(folder, places.AGENTS_FILE)).get("agents")
    online = sum(1 for each in agents if isinstance(each, dict) and each.get("connected")) if isinstance(agents, list) else 0
    return RunningProject(places.project_name(record.root), record.root, url, str(place.get("host") or ""), online)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            said = json.load(file)
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
