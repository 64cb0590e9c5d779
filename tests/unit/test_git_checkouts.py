"""Which repository a folder belongs to, as git's files say: every layout, and every lie."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_relay.repository import Checkout, belongs_to, find_checkout


def make_repository(path: Path) -> Path:
    """As `git init` leaves it, as far as anybody looks."""
    git = path / ".git"
    make_git_folder(git)
    return path


def make_git_folder(git: Path) -> Path:
    for name in ("objects", "refs"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text("[core]\n\tbare = false\n")
    return git


def add_worktree(common: Path, path: Path, name: str = "") -> Path:
    """As `git worktree add` leaves it."""
    entry = common / "worktrees" / (name or path.name)
    entry.mkdir(parents=True)
    path.mkdir(parents=True)
    (path / ".git").write_text(f"gitdir: {entry}\n")
    (entry / "commondir").write_text("../..\n")
    (entry / "gitdir").write_text(f"{path / '.git'}\n")
    (entry / "HEAD").write_text("ref: refs/heads/other\n")
    return path


def give_away(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """From now on these look as if they belonged to another user; only root could really do it."""
    strangers = {str(path) for path in paths}
    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, _lie(getattr(os, name), strangers))


def _lie(look: Callable[..., os.stat_result], strangers: set[str]) -> Callable[..., os.stat_result]:
    def look_again(path: object, *arguments: object, **options: object) -> os.stat_result:
        found = look(path, *arguments, **options)
        return os.stat_result([*found[:4], 12345, *found[5:10]]) if str(path) in strangers else found

    return look_again


@pytest.fixture
def main(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "main")


def find(folder: Path) -> Checkout | None:
    notes: list[str] = []
    found = find_checkout(os.path.realpath(folder), notes)
    assert notes == []
    return found


def find_with_note(folder: Path) -> tuple[Checkout | None, str]:
    notes: list[str] = []
    found = find_checkout(os.path.realpath(folder), notes)
    (note,) = notes
    return found, note


def test_no_repository(tmp_path: Path) -> None:
    assert find(tmp_path) is None


def test_a_repository_and_what_is_below_it(main: Path) -> None:
    deep = main / "src" / "deep"
    deep.mkdir(parents=True)
    for folder in (main, deep, main / ".git", main / ".git" / "refs"):
        assert find(folder) == Checkout(str(main), str(main)), folder


def test_all_worktrees_belong_to_the_main_one(main: Path, tmp_path: Path) -> None:
    outside = add_worktree(main / ".git", tmp_path / "elsewhere" / "feature")
    inside = add_worktree(main / ".git", main / ".worktrees" / "fix")
    (outside / "backend").mkdir()
    assert find(outside) == find(outside / "backend") == Checkout(str(outside), str(main))
    assert find(inside) == Checkout(str(inside), str(main))
    assert find(main / ".git" / "worktrees" / "feature") == Checkout(str(main), str(main))


def test_worktrees_with_relative_paths(main: Path, tmp_path: Path) -> None:
    other = add_worktree(main / ".git", tmp_path / "other")
    (other / ".git").write_text("gitdir: ../main/.git/worktrees/other\n")
    (main / ".git" / "worktrees" / "other" / "gitdir").write_text("../../../../other/.git\n")
    assert find(other) == Checkout(str(other), str(main))


def test_a_submodule_is_a_repository_of_its_own_and_so_are_its_worktrees(main: Path, tmp_path: Path) -> None:
    git = make_git_folder(main / ".git" / "modules" / "lib")
    (git / "config").write_text('[core]\n\tworktree = ../../../lib\n[remote "core"]\n\tworktree = /nowhere\n')
    (main / "lib").mkdir()
    (main / "lib" / ".git").write_text("gitdir: ../.git/modules/lib\n")
    assert find(main / "lib") == Checkout(str(main / "lib"), str(main / "lib"))
    other = add_worktree(git, tmp_path / "lib-fix")
    assert find(other) == Checkout(str(other), str(main / "lib"))


def test_a_bare_repository_and_its_worktrees(tmp_path: Path) -> None:
    bare = make_git_folder(tmp_path / "project.git")
    tree = add_worktree(bare, tmp_path / "tree")
    assert find(tree) == Checkout(str(tree), str(bare))
    assert find(bare) == find(bare / "refs") == Checkout(str(bare), str(bare))


def test_a_bare_repository_in_a_hidden_folder(tmp_path: Path) -> None:
    """`git clone --bare URL .bare`, and a `.git` file that leads there."""
    project = tmp_path / "project"
    bare = make_git_folder(project / ".bare")
    (project / ".git").write_text("gitdir: ./.bare\n")
    tree = add_worktree(bare, project / "feature")
    assert {find(folder).main for folder in (project, tree, bare)} == {str(project)}  # type: ignore[union-attr]


def test_a_link_leads_to_the_same_repository(main: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(main)
    assert find(tmp_path / "link") == find(main)


@pytest.mark.parametrize(
    "content",
    ["", "gitdir:\n", "hello\n", "gitdir: /nowhere/at/all\n", "gitdir: .git\n", "gitdir: " + "x" * 20_000, "gitdir: a\0b\n"],
)
def test_a_broken_git_file_makes_a_project_of_its_folder(main: Path, content: str) -> None:
    folder = main / "sub"
    folder.mkdir()
    (folder / ".git").write_text(content)
    found, note = find_with_note(folder)
    assert found == Checkout(str(folder), str(folder))
    assert "counts as a project of its own" in note


def test_a_git_file_that_is_no_file(main: Path) -> None:
    folder = main / "sub"
    folder.mkdir()
    os.mkfifo(folder / ".git")  # whoever waited for it would wait for ever
    assert find_with_note(folder)[0] == Checkout(str(folder), str(folder))
    (folder / ".git").unlink()
    (folder / ".git").symlink_to(folder / ".git")
    assert find_with_note(folder)[0] == Checkout(str(folder), str(folder))


def test_nobody_joins_a_repository_that_does_not_know_them(main: Path, tmp_path: Path) -> None:
    """As an unpacked archive may try, with the `.git` file of a real worktree."""
    real = add_worktree(main / ".git", tmp_path / "real")
    forged = tmp_path / "forged"
    forged.mkdir()
    (forged / ".git").write_text((real / ".git").read_text())
    found, note = find_with_note(forged)
    assert found == Checkout(str(forged), str(forged))
    assert "git worktree repair" in note
    assert not belongs_to(str(forged), str(main))


def test_nobody_joins_through_a_folder_of_their_own(main: Path, tmp_path: Path) -> None:
    """The folder that the `.git` file names says that it is part of another repository, which does not have it."""
    forged, entry = tmp_path / "forged", tmp_path / "entry"
    forged.mkdir()
    entry.mkdir()
    (forged / ".git").write_text(f"gitdir: {entry}\n")
    (entry / "commondir").write_text(f"{main / '.git'}\n")
    (entry / "gitdir").write_text(f"{forged / '.git'}\n")
    assert find_with_note(forged)[0] == Checkout(str(forged), str(forged))


def test_a_configured_tree_counts_only_where_it_agrees(tmp_path: Path) -> None:
    victim = make_repository(tmp_path / "victim")
    bare = make_git_folder(tmp_path / "evil.git")
    (bare / "config").write_text(f"[core]\n\tworktree = {victim}\n")
    assert find(bare) == Checkout(str(bare), str(bare))


def test_a_git_folder_of_another_user_is_passed_over(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = make_repository(main / "below")
    give_away(monkeypatch, below / ".git")
    found, note = find_with_note(below)
    assert found == Checkout(str(main), str(main))
    assert "another user" in note


def test_nobody_is_led_into_the_repository_of_another_user(main: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = add_worktree(main / ".git", tmp_path / "tree")
    give_away(monkeypatch, main / ".git")
    found, note = find_with_note(tree)
    assert found == Checkout(str(tree), str(tree))
    assert "belongs to another user" in note


def test_belonging(main: Path, tmp_path: Path) -> None:
    tree = add_worktree(main / ".git", tmp_path / "tree")
    inner = make_repository(tree / "inner")
    other = make_repository(tmp_path / "other")
    root = str(main)
    assert belongs_to(str(main), root)
    assert belongs_to(str(tree), root)
    assert belongs_to(str(inner), root)  # it lies in one of its worktrees
    assert not belongs_to(str(other), root)
    assert not belongs_to(str(tmp_path), root)
