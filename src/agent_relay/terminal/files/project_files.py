"""The real places of files that an agent's tools ask for, as far as that is sure.

The daemon's rules decide by names alone and touch no disk; here links are followed for them. Nothing is told, and so a person
decides, where a file is not there, is of an odd kind, has a second name, or is the relay's own; where a search would go through
a whole folder (it prints what is in private files too); and where a pattern could lead through a link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from agent_relay.protocol.places import ENV_HOME
from agent_relay.protocol.tool_names import CHANGES, GLOB, LIST
from agent_relay.repository import find_checkout

_WILD = frozenset("*?[]{}()!+@")


class ProjectFiles:
    """`root` is the agent's project as a real path; None where everything would be inside of it (a home folder, `/`).

    `own`: folders of the relay, of which nothing is ever told.
    """

    def __init__(self, cwd: str, root: str, own: Sequence[str] = ()) -> None:
        self._cwd = os.path.realpath(cwd)
        project = os.path.realpath(root) if root else self._cwd
        # Another worktree of the same repository lies elsewhere: then that worktree is what the agent works in.
        self.root = _narrow(project if _is_in(self._cwd, project) else find_work_folder(self._cwd, project))
        homes = (*own, *filter(None, (os.environ.get(ENV_HOME),)))
        self._own = tuple(os.path.realpath(folder) for folder in homes)

    def find(self, kind: str, path: str, pattern: str = "") -> str | None:
        """The real path of what a tool of this kind would look at or change; None: not surely known."""
        if "\0" in path or path.startswith("~"):
            return None
        try:
            real = self._resolve(kind, os.path.join(self._cwd, path), pattern)
        except (OSError, ValueError):
            return None
        return None if real is None or any(_is_in(real, folder) or _is_in(folder, real) for folder in self._own) else real

    def _resolve(self, kind: str, path: str, pattern: str) -> str | None:
        if kind in {GLOB, LIST}:
            folder = _literal_part(path, pattern)
            real = None if folder is None else os.path.realpath(folder, strict=True)
            return real if real is not None and os.path.isdir(real) else None
        if kind in CHANGES and not os.path.lexists(path):  # a file that is to be made
            return os.path.join(os.path.realpath(os.path.dirname(path), strict=True), os.path.basename(path))
        real = os.path.realpath(path, strict=True)
        found = os.lstat(real)
        return real if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 else None


def find_work_folder(cwd: str, root: str) -> str:
    """The top of the worktree that a folder lies in, where that is one of the project's repository; else the folder itself."""
    checkout = find_checkout(cwd, [])
    return checkout.top if checkout is not None and checkout.main == root else cwd


def _literal_part(folder: str, pattern: str) -> str | None:
    """The folder that a pattern begins in. Only `**` and the last part may be wild: another one could stand for a link."""
    if "\0" in pattern or pattern.startswith(("/", "~")) or "\\" in pattern:
        return None
    *parts, last = pattern.split("/")
    fixed = []
    for place, part in enumerate(parts):
        if part == "**":
            if any(_WILD & set(other) and other != "**" for other in parts[place:]):
                return None
            break
        if _WILD & set(part):
            return None
        fixed.append(part)
    return None if ".." in (*parts, last) else os.path.join(folder, *fixed)


def _narrow(project: str) -> str | None:
    home = os.path.realpath(os.path.expanduser("~"))
    return None if _is_in(home, project) else project


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
