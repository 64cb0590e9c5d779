"""The project that a folder belongs to, and where that project's daemon is.

An argument goes before the environment, the environment before the rule. This module only looks; it creates nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_relay.protocol import places
from agent_relay.repository import Checkout, find_checkout, folders_upwards, is_own

StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Place:
    root: str  # the project's directory, links resolved
    project_id: str
    home: str  # AGENT_RELAY_HOME: what all projects of the user share
    state_dir: str
    socket: str
    notes: tuple[str, ...] = field(default=(), compare=False)  # for people: what was not trusted on the way

    @property
    def name(self) -> str:
        """The name people give the project."""
        return places.project_name(self.root)


def locate(
    start: StrPath | None = None,
    socket: StrPath | None = None,
    state_dir: StrPath | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Place:
    """The place of the project that `start` lies in; without `start`, of AGENT_RELAY_PROJECT or of the working directory."""
    home = find_home(environ)
    notes: list[str] = []
    root = _chosen_root(environ, notes) if start is None else None
    if root is None:
        root = find_root(start, home, notes)
    if state_dir is None:
        state = places.state_directory(home, root)
        # Only a socket follows the environment: a wrapped agent is given its own, whatever directory it went to.
        path = socket or environ.get(places.ENV_SOCKET) or places.socket_path(state, root, os.getuid())
    else:
        state = _expand(os.fspath(state_dir), environ)
        # A long path is shortened by the state directory's own id: two of them in one project must not share a socket.
        path = socket or places.socket_path(state, os.path.realpath(state), os.getuid())
    path = _expand(os.fspath(path), environ)
    places.check_socket_path(path)
    return Place(root, places.project_id(root), home, state, path, tuple(notes))


def find_home(environ: Mapping[str, str] = os.environ) -> str:
    return _expand(environ.get(places.ENV_HOME) or places.DEFAULT_HOME, environ)


def find_root(start: StrPath | None, home: str, notes: list[str]) -> str:
    """The nearest folder upwards with an `.agent-relay`; else the git repository, the same one from all of its worktrees; else
    the nearest folder with a package file; else `start` itself. What belongs to another user does not count, and is noted: it
    would let them say, for everybody who works below it, what the project is."""
    here = os.path.realpath(start if start is not None and os.path.isdir(start) else working_directory())
    said: list[str] = []
    checkout = find_checkout(here, said)
    root = _decide(here, checkout, home, said)
    # What lies above a project that was found is of no interest to whoever works in it.
    inside = tuple(folder.rstrip("/") + "/" for folder in (root or "", checkout.top if checkout is not None else here))
    notes += [note for note in said if root is None or note.startswith(inside)]
    return root or here


def _decide(here: str, checkout: Checkout | None, home: str, notes: list[str]) -> str | None:
    marked = _find_marked(here, home, notes)
    if marked is not None and not (checkout is not None and _is_copy(marked, checkout, home)):
        return marked
    if checkout is not None:
        return _find_marked(checkout.main, home, []) or checkout.main
    return _find_package(here, notes)


def _is_copy(marked: str, checkout: Checkout, home: str) -> bool:
    """The main working tree has such a folder, too: it was committed, and every worktree has it."""
    is_worktree = marked == checkout.top != checkout.main
    return is_worktree and _find_marked(checkout.main, home, []) == checkout.main


def working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # somebody removed it under us
        return os.path.sep


def _chosen_root(environ: Mapping[str, str], notes: list[str]) -> str | None:
    """The folder that AGENT_RELAY_PROJECT names, as it stands."""
    chosen = environ.get(places.ENV_PROJECT)
    if not chosen:
        return None
    path = _expand(chosen, environ)
    if os.path.isdir(path):
        return os.path.realpath(path)
    notes.append(f"{places.ENV_PROJECT} is ignored: there is no folder {path}.")
    return None


def _find_marked(here: str, home: str, notes: list[str]) -> str | None:
    for directory in folders_upwards(here):
        path = os.path.join(directory, places.PROJECT_DIRECTORY)
        # The user's home usually holds ~/.agent-relay; that is where the relay lives and makes nobody's home a project.
        if os.path.exists(path) and os.path.realpath(path) != os.path.realpath(home) and _is_trusted(path, notes):
            return directory
    return None


def _find_package(here: str, notes: list[str]) -> str | None:
    for directory in folders_upwards(here):
        paths = [os.path.join(directory, name) for name in places.PACKAGE_FILES]
        if any(os.path.exists(path) and _is_trusted(path, notes) for path in paths):
            return directory
    return None


def _is_trusted(path: str, notes: list[str]) -> bool:
    if is_own(path):
        return True
    try:
        strangers = {os.lstat(path).st_uid, os.stat(path).st_uid} - {os.geteuid(), 0}
    except OSError:  # gone since
        return False
    notes += [places.foreign_folder_note(path, uid) for uid in sorted(strangers)]
    return False


def _expand(path: str, environ: Mapping[str, str]) -> str:
    if path == "~" or path.startswith("~/"):
        path = (environ.get("HOME") or os.path.expanduser("~")) + path[1:]
    return os.path.abspath(path)
