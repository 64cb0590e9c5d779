"""Worktrees of agents with a real git: made, kept, removed, and never anywhere else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_relay.cli.failures import Failure
from agent_relay.cli.team.team_file import WorktreeTable
from agent_relay.cli.team.worktrees import make_worktree, remove_worktree, worktree_path

TREE = WorktreeTable("review", "Bob")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=N", "-c", "user.email=n@example.org", *words], cwd=folder, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("a\n")
    (folder / ".gitignore").write_text("*.cache\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_it_is_made_once_on_its_branch_and_git_sees_nothing_new(project: Path) -> None:
    assert make_worktree(str(project), TREE)
    path = Path(worktree_path(str(project), TREE))
    assert git(path, "branch", "--show-current").strip() == "review"
    assert (path / "a.txt").exists()
    assert not make_worktree(str(project), TREE)
    assert git(project, "status", "--porcelain") == ""


def test_an_existing_branch_is_used(project: Path) -> None:
    git(project, "branch", "review")
    assert make_worktree(str(project), TREE)


def test_a_clean_one_is_removed_and_its_branch_stays(project: Path) -> None:
    make_worktree(str(project), TREE)
    path = worktree_path(str(project), TREE)
    assert remove_worktree(str(project), path) == ""
    assert not Path(path).exists()
    assert "review" in git(project, "branch")
    assert remove_worktree(str(project), path) == ""  # gone already


@pytest.mark.parametrize("name", ["a.txt", "new.txt", "x.cache"])
def test_one_with_anything_to_lose_is_kept(project: Path, name: str) -> None:
    make_worktree(str(project), TREE)
    path = Path(worktree_path(str(project), TREE))
    (path / name).write_text("work\n")
    assert "not committed" in remove_worktree(str(project), str(path))
    assert (path / name).read_text() == "work\n"


def test_a_branch_that_is_checked_out_elsewhere_is_told(project: Path) -> None:
    current = git(project, "branch", "--show-current").strip()
    with pytest.raises(Failure, match="git worktree"):
        make_worktree(str(project), WorktreeTable(current, "Bob"))


def test_another_branch_in_its_folder_is_told(project: Path) -> None:
    make_worktree(str(project), TREE)
    with pytest.raises(Failure, match="has review checked out"):
        make_worktree(str(project), WorktreeTable("other", "Bob"))


def test_a_folder_that_is_no_worktree_is_left_alone(project: Path, tmp_path: Path) -> None:
    path = Path(worktree_path(str(project), TREE))
    path.mkdir(parents=True)
    (path / "mine").write_text("x")
    with pytest.raises(Failure, match="not a worktree"):
        make_worktree(str(project), TREE)
    assert "not a worktree" in remove_worktree(str(project), str(path))
    assert (path / "mine").exists()
    assert "not a worktree" in remove_worktree(str(project), str(tmp_path))
    assert "not a worktree" in remove_worktree(str(project), str(project))


@pytest.mark.parametrize("link", [".agent-relay", ".agent-relay/worktrees", ".agent-relay/worktrees/Bob"])
def test_a_link_out_of_the_project_is_not_followed(project: Path, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place = project / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)
    with pytest.raises(Failure):
        make_worktree(str(project), TREE)
    assert list(outside.iterdir()) == []


def test_hooks_of_the_repository_do_not_run(project: Path) -> None:
    hook = project / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {project}/ran\n")
    hook.chmod(0o755)
    make_worktree(str(project), TREE)
    assert not (project / "ran").exists()


def test_a_folder_without_git_is_told(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="not a git repository"):
        make_worktree(str(tmp_path), TREE)
