"""Every project of this user that ever had a daemon: read from the state directories, and from whoever answers there."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from agent_relay.cli.project.agents_file import read_connected
from agent_relay.cli.project.daemon_process import Answer, knock, locked_pid
from agent_relay.cli.project.http_server import read_http_place
from agent_relay.private_files import is_locked
from agent_relay.protocol import places

UP, DOWN, STALE = "up", "down", "stale"
_KNOCK_S = 2.0


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    name: str
    root: str  # empty: not known, its last daemon was older than this version
    state: str  # up, down, or stale: a daemon was killed, or does not answer
    pid: int | None
    port: int | None  # where it listens now, or did last
    url: str | None
    online: int
    known: int
    socket: str
    state_dir: str

    def describe(self) -> dict[str, Any]:
        fields = asdict(self)
        return fields | {"root": self.root or None, "agents": {"online": fields.pop("online"), "known": fields.pop("known")}}


def list_projects(home: str) -> list[Project]:
    """Those whose daemon is up first, then by name."""
    folder = places.projects_directory(home)
    try:
        ids = sorted(os.listdir(folder))
    except OSError:
        return []
    found = [look_at(os.path.join(folder, id_)) for id_ in ids if _is_state_dir(os.path.join(folder, id_))]
    return sorted(found, key=lambda project: (project.state != UP, project.name.lower(), project.id))


def look_at(state_dir: str, socket: str = "") -> Project:
    from agent_relay.daemon.project_record import ProjectRecord, read_record

    record = read_record(state_dir) or ProjectRecord()
    id_ = os.path.basename(state_dir)
    socket = socket or record.socket or places.socket_path(state_dir, record.root, os.getuid())
    pid, state = None, DOWN
    if is_locked(os.path.join(state_dir, places.LOCK_FILE)):
        found = knock(socket, _KNOCK_S)
        pid = found.pid or locked_pid(state_dir)
        state = UP if found.answer is Answer.RELAY else STALE
    elif any(os.path.lexists(path) for path in (socket, os.path.join(state_dir, places.PID_FILE))):
        state = STALE
    http = read_http_place(state_dir) if state == UP else None
    agents = read_connected(state_dir)
    return Project(
        id=id_, name=places.project_name(record.root) if record.root else id_, root=record.root, state=state, pid=pid,
        port=(http.port if http is not None else record.port) or None, url=None if http is None else http.url,
        online=sum(agents.values()) if state == UP else 0, known=len(agents), socket=socket, state_dir=state_dir,
    )  # fmt: skip


def _is_state_dir(path: str) -> bool:
    """Ours, and in use by a daemon before."""
    names = (places.PROJECT_FILE, places.LOG_FILE, places.DATABASE_FILE)
    try:
        is_own = os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return False
    return is_own and any(os.path.exists(os.path.join(path, name)) for name in names)
