"""Git worktrees of a team's agents, below `.agent-relay/worktrees`.

git is run with a list of words, never through a shell, and without the repository's hooks. A folder is only made where no link
leads out of the project, and only removed where git knows it and nothing in it would be lost.
"""

from __future__ import annotations

import os
import subprocess

from agent_relay.cli.failures import Failure
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.team.team_file import WorktreeTable
from agent_relay.protocol.places import PROJECT_DIRECTORY
from agent_relay.repository import find_checkout

WORKTREES_FOLDER = "worktrees"
_TIMEOUT_S = 120.0
# A repository's configuration and hooks start programs; whoever can write them is not to be run by a checkout.
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never")


def worktree_path(root: str, tree: WorktreeTable) -> str:
    return os.path.join(root, PROJECT_DIRECTORY, WORKTREES_FOLDER, tree.folder or "")


def make_worktree(root: str, tree: WorktreeTable) -> bool:
    """Whether it was made now; False: it was there. Raises Failure."""
    path = worktree_path(root, tree)
    if find_checkout(os.path.realpath(root), []) is None:
        raise Failure(
            f"{clean_line(root)} is not a git repository, so it has no worktrees; remove `worktree` from the team's file."
        )
    _prepare_parent(root, os.path.dirname(path))
    if os.path.lexists(path):
        if not _is_worktree(root, path):
            raise Failure(f"{clean_line(path)} is there already and is not a worktree of this repository; move it away.")
        branch = _run(path, "symbolic-ref", "--quiet", "--short", "HEAD").strip()
        if branch != tree.branch:
            raise Failure(
                f"{clean_line(path)} has {clean_line(branch) or 'no branch'} checked out, not {tree.branch}; choose another "
                f"`folder`, or remove it: git worktree remove {clean_line(path)}"
            )
        return False
    if _succeeds(root, "show-ref", "--verify", "--quiet", f"refs/heads/{tree.branch}"):
        _run(root, "worktree", "add", "--quiet", path, tree.branch)
    else:
        _run(root, "worktree", "add", "--quiet", "-b", tree.branch, path)
    return True


def remove_worktree(root: str, path: str) -> str:
    """Why it stays; "": it is gone. Its branch always stays."""
    if not os.path.lexists(path):
        return ""
    if not _is_worktree(root, path):
        return "it is not a worktree of this repository any more"
    try:
        if _run(path, "status", "--porcelain", "--ignored", "--untracked-files=normal").strip():
            return "it has changes or files that are not committed"
        _run(root, "worktree", "remove", path)
    except Failure as failure:
        return failure.sentence
    return ""


def _is_worktree(root: str, path: str) -> bool:
    """Of this repository, in the folder of all worktrees, and reached through no link."""
    real = os.path.join(os.path.realpath(root), PROJECT_DIRECTORY, WORKTREES_FOLDER, os.path.basename(path))
    own, main = find_checkout(real, []), find_checkout(os.path.realpath(root), [])
    return os.path.realpath(path) == real and own is not None and main is not None and (own.top, own.main) == (real, main.main)


def _prepare_parent(root: str, parent: str) -> None:
    """The folder of all worktrees, hidden from git itself."""
    if os.path.realpath(parent) != os.path.join(os.path.realpath(root), PROJECT_DIRECTORY, WORKTREES_FOLDER):
        raise Failure(f"{clean_line(parent)} is a link, or lies behind one; remove it.")
    os.makedirs(parent, exist_ok=True)
    ignore = os.path.join(parent, ".gitignore")
    if not os.path.lexists(ignore):
        with open(ignore, "x", encoding="ascii") as file:
            file.write("*\n")


def _environment() -> dict[str, str]:
    """Without variables that send git elsewhere: git itself sets them in hooks and aliases."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def _call(folder: str, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - a list, and every word of it checked
            ["git", *_QUIET, *words], cwd=folder, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True,  # noqa: S607
            text=True, errors="replace", timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise Failure("git is not installed, and the team's file asks for worktrees; install git.") from None
    except subprocess.TimeoutExpired:
        raise Failure(f"git {words[0]} took longer than {_TIMEOUT_S:.0f} seconds in {clean_line(folder)}.") from None


def _succeeds(folder: str, *words: str) -> bool:
    return _call(folder, words).returncode == 0


def _run(folder: str, *words: str) -> str:
    done = _call(folder, words)
    if done.returncode:
        said = clean_line((done.stderr.strip().splitlines() or ["no reason given"])[-1])
        raise Failure(f"git {' '.join(words[:2])} failed in {clean_line(folder)}: {said}")
    return done.stdout
