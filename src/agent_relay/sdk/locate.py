"""Where the project's daemon is: from a directory, the environment and what the caller says outright.

An argument goes before the environment, the environment before the rule. This module only looks; it creates nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_relay.protocol import places

StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Place:
    root: str  # the project's directory, links resolved
    project_id: str
    home: str  # AGENT_RELAY_HOME: what all projects of the user share
    state_dir: str
    socket: str
    notes: tuple[str, ...] = field(default=(), compare=False)  # for people: what was not trusted on the way


def locate(
    start: StrPath | None = None,
    socket: StrPath | None = None,
    state_dir: StrPath | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Place:
    """The place of the project that `start` (by default the working directory) lies in."""
    home = _expand(environ.get(places.ENV_HOME) or places.DEFAULT_HOME, environ)
    notes: list[str] = []
    root = find_root(start if start is not None else environ.get(places.ENV_PROJECT), home, notes)
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


def find_root(start: StrPath | None, home: str, notes: list[str]) -> str:
    """The nearest directory upwards with a project's marker; without one, `start` itself. A folder of ours that another user
    made is no marker: it would let them say, for everybody who works below it, what the project is. It is noted."""
    here = os.path.realpath(start if start is not None and os.path.isdir(start) else working_directory())
    directory = here
    while True:
        if any(_is_marker(os.path.join(directory, marker), home, notes) for marker in places.PROJECT_MARKERS):
            return directory
        parent = os.path.dirname(directory)
        if parent == directory:
            return here
        directory = parent


def working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # somebody removed it under us
        return os.path.sep


def _is_marker(path: str, home: str, notes: list[str]) -> bool:
    # The user's home usually holds ~/.agent-relay; that is where the relay lives and makes nobody's home a project.
    if not os.path.exists(path) or os.path.realpath(path) == os.path.realpath(home):
        return False
    if os.path.basename(path) != places.PROJECT_DIRECTORY:
        return True
    try:
        strangers = {os.lstat(path).st_uid, os.stat(path).st_uid} - {os.geteuid(), 0}
    except OSError:  # gone since
        return False
    notes += [places.foreign_folder_note(path, uid) for uid in strangers]
    return not strangers


def _expand(path: str, environ: Mapping[str, str]) -> str:
    if path == "~" or path.startswith("~/"):
        path = (environ.get("HOME") or os.path.expanduser("~")) + path[1:]
    return os.path.abspath(path)
