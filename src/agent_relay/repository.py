"""The git repository that a folder belongs to, read from git's own files. git is never run: a repository's configuration can
start programs.

A linked worktree has a `.git` file that names its folder in the repository, and that folder names the worktree in return. Both
must agree: an unpacked archive can bring any `.git` file along, and would otherwise join a repository of its author's choice.
Only what belongs to this user, or to root, is believed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

GIT = ".git"
_GITDIR = "gitdir:"
_MAX_BYTES = 8_192  # of a file that holds one path; twice what a path may have
_MAX_CONFIG_BYTES = 262_144
_SECTION = re.compile(r"\s*\[\s*([A-Za-z0-9.-]+)(?:\s+(\"[^\"]*\"))?\s*\]")
_WORKTREE = re.compile(r"\s*worktree\s*=\s*(.*?)\s*$", re.IGNORECASE)


class Checkout(NamedTuple):
    top: str  # of the working tree that the folder lies in
    main: str  # what all worktrees of the repository share: the main working tree, or the bare repository


class _Broken(Exception):  # noqa: N818 - named by the condition
    """A repository that cannot be used; the text says why."""


def find_checkout(folder: str, notes: list[str]) -> Checkout | None:
    """`folder` is a real path. What was not believed on the way is added to `notes`."""
    for directory in folders_upwards(folder):
        entry = os.path.join(directory, GIT)
        if os.path.lexists(entry):
            if not is_own(entry):
                notes.append(f"{entry} is ignored: it belongs to another user.")
                continue
            try:
                return _read_entry(directory, entry)
            except (_Broken, OSError) as error:
                why = error if isinstance(error, _Broken) else error.strerror
                notes.append(f"{entry} is not used ({why}): {directory} counts as a project of its own.")
                return Checkout(directory, directory)
        elif _is_git_folder(directory):
            main = _main_tree(directory)
            return Checkout(main, main)
    return None


def belongs_to(folder: str, root: str) -> bool:
    """Whether a folder lies in a working tree of the repository at `root`, wherever that tree is. Both are real paths."""
    checkout = find_checkout(folder, [])
    while checkout is not None and checkout.main != root:
        above = os.path.dirname(checkout.top)
        checkout = None if above == checkout.top else find_checkout(above, [])
    return checkout is not None


def folders_upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def is_own(path: str) -> bool:
    """Ours or root's; where it is a link, both the link and what it leads to."""
    try:
        owners = {os.lstat(path).st_uid}
        if os.path.exists(path):
            owners.add(os.stat(path).st_uid)
    except OSError:
        return False
    return owners <= {os.geteuid(), 0}


def _read_entry(directory: str, entry: str) -> Checkout:
    if stat.S_ISDIR(os.stat(entry).st_mode):
        return Checkout(directory, directory)
    git_folder = _read_pointer(entry)
    if not os.path.isdir(git_folder):
        raise _Broken(f"there is no folder {git_folder}")
    named = os.path.join(git_folder, "commondir")
    if not os.path.lexists(named):  # a submodule, or a repository whose git folder lies elsewhere
        return Checkout(directory, directory)
    common = _follow(git_folder, _read_small(named))
    for path in (git_folder, common):
        if not is_own(path):
            raise _Broken(f"{path} belongs to another user")
    back = _follow(git_folder, _read_small(os.path.join(git_folder, "gitdir")))
    if os.path.dirname(git_folder) != os.path.join(common, "worktrees") or back != os.path.realpath(entry):
        raise _Broken(f"{common} does not know this worktree; if it was moved, run: git worktree repair")
    return Checkout(directory, _main_tree(common))


def _main_tree(common: str) -> str:
    """The working tree that says this is its git folder; without one, the git folder itself: it is bare."""
    for candidate in (os.path.dirname(common), _configured_tree(common)):
        try:
            entry = os.path.join(candidate, GIT)
            if candidate and is_own(entry) and (os.path.realpath(entry) == common or _read_pointer(entry) == common):
                return candidate
        except (_Broken, OSError):
            continue
    return common


def _configured_tree(common: str) -> str:
    """Of a submodule: its git folder lies in that of the repository around it, and names its working tree."""
    try:
        lines = _read_small(os.path.join(common, "config"), _MAX_CONFIG_BYTES).splitlines()
    except (_Broken, OSError):
        return ""
    section = ""
    for line in lines:
        if heading := _SECTION.match(line):
            section = heading[1].lower() + (heading[2] or "")
        elif section == "core" and (found := _WORKTREE.match(line)):
            return _follow(common, found[1].strip('"'))
    return ""


def _is_git_folder(directory: str) -> bool:
    names = ("HEAD", "objects", "refs")
    return all(os.path.lexists(os.path.join(directory, name)) for name in names) and is_own(os.path.join(directory, "HEAD"))


def _read_pointer(path: str) -> str:
    """The folder that a `.git` file names."""
    said = _read_small(path)
    if not said.startswith(_GITDIR):
        raise _Broken("it does not name a git folder")
    return _follow(os.path.dirname(path), said.removeprefix(_GITDIR))


def _follow(base: str, said: str) -> str:
    path = said.strip()
    if not path or "\0" in path:
        raise _Broken("it names no path")
    return os.path.realpath(os.path.join(base, path))


def _read_small(path: str, most_bytes: int = _MAX_BYTES) -> str:
    # Without waiting: whoever put a pipe there would keep every command from starting.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise _Broken(f"{path} is not a file")
        if found.st_size > most_bytes:
            raise _Broken(f"{path} is too large")
        return os.fsdecode(file.read(most_bytes))
