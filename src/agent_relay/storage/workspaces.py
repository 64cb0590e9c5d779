"""The workspaces of one user, in `workspaces.json` in AGENT_RELAY_HOME: directories that were added, and which is the default."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec import Struct

from agent_relay.ports.watchers import Workspace
from agent_relay.private_files import is_locked, replace_private
from agent_relay.protocol import places
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show

WORKSPACES_FILE = "workspaces.json"
_MOST = 1_000


class _Entry(Struct):
    path: str
    name: str


class _Content(Struct):
    workspaces: list[_Entry] = []
    default: str = ""  # an id


class _AgentEntry(Struct, rename="camel"):
    name: str
    cli: str | None = None
    connected: bool = False
    session_id: str = ""


class _Agents(Struct):
    agents: list[_AgentEntry] = []


class WorkspaceFile:
    """`own_root` is the directory of the daemon that asks; it is always among them."""

    def __init__(self, home: str, own_root: str) -> None:
        self._home = home
        self._own = places.project_id(own_root)
        self._own_root = own_root

    def all(self) -> list[Workspace]:
        content = self._read()
        default = content.default or self._own
        own = _Entry(self._own_root, os.path.basename(self._own_root) or self._own_root)
        entries = {places.project_id(entry.path): entry for entry in [own, *content.workspaces]}
        return [
            Workspace(id_, entry.path, entry.name, self._is_running(id_), id_ == default, id_ == self._own)
            for id_, entry in entries.items()
        ]

    def get(self, id_: str) -> Workspace:
        for workspace in self.all():
            if workspace.id == id_:
                return workspace
        raise RelayError(ErrorCode.ROUTE_NOT_FOUND, f"There is no workspace {show(id_, 80)}.")

    def add(self, path: str, name: str | None) -> Workspace:
        if "\0" in path or not os.path.isabs(path) or not os.path.isdir(path):
            raise RelayError(
                ErrorCode.INVALID_FORMAT, f"`path`: {show(path, 200)} is not a directory; give its full path.", field="path"
            )
        root = os.path.realpath(path)
        id_ = places.project_id(root)
        with self._changing() as content:
            if len(content.workspaces) >= _MOST:
                raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, f"There are {_MOST} workspaces; remove one first.")
            content.workspaces = [entry for entry in content.workspaces if entry.path != root]
            content.workspaces.append(_Entry(root, name or os.path.basename(root) or root))
        return self.get(id_)

    def remove(self, id_: str) -> None:
        workspace = self.get(id_)
        if workspace.is_own:
            raise RelayError(ErrorCode.PERMISSION_DENIED, "This daemon serves that workspace.", reason="own_workspace")
        with self._changing() as content:
            content.workspaces = [entry for entry in content.workspaces if entry.path != workspace.path]
            if content.default == id_:
                content.default = ""

    def switch(self, id_: str) -> Workspace:
        self.get(id_)
        with self._changing() as content:
            content.default = id_
        return self.get(id_)

    def agents(self, id_: str) -> list[tuple[str, str | None, bool, str]]:
        path = os.path.join(self._state_dir(id_), places.AGENTS_FILE)
        try:
            with open(path, "rb") as file:
                found = msgspec.json.decode(file.read(), type=_Agents).agents
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return []
        is_running = self._is_running(id_)
        return [(agent.name, agent.cli, agent.connected and is_running, agent.session_id) for agent in found]

    def _state_dir(self, id_: str) -> str:
        return os.path.join(self._home, "projects", id_)

    def _is_running(self, id_: str) -> bool:
        """Whether a daemon holds its lock there."""
        return id_ == self._own or is_locked(os.path.join(self._state_dir(id_), places.LOCK_FILE))

    # --- the file -------------------------------------------------------------------------------------------------------

    def _read(self) -> _Content:
        try:
            with open(os.path.join(self._home, WORKSPACES_FILE), "rb") as file:
                return msgspec.json.decode(file.read(), type=_Content)
        except FileNotFoundError:
            return _Content()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, f"{WORKSPACES_FILE} cannot be read ({error}).") from None

    @contextmanager
    def _changing(self) -> Iterator[_Content]:
        """One at a time, over all the user's daemons; whoever reads meanwhile finds the old content."""
        path = os.path.join(self._home, WORKSPACES_FILE)
        try:
            os.makedirs(self._home, mode=0o700, exist_ok=True)
            lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unwritable(error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            content = self._read()
            yield content
            replace_private(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
        except OSError as error:
            raise _unwritable(error) from None
        finally:
            os.close(lock)


def _unwritable(error: OSError) -> RelayError:
    return RelayError(ErrorCode.SERVICE_UNAVAILABLE, f"{WORKSPACES_FILE} cannot be written ({error.strerror or error}).")
