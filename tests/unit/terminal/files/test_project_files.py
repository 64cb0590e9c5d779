"""Where files really are: links, second names, odd kinds, and patterns that lead out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.terminal.files.project_files import ProjectFiles
from tests.unit.test_git_checkouts import add_worktree, make_repository


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "x.py").write_text("x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key").write_text("secret")
    return root


def find(project: Path, kind: str, path: str, pattern: str = "") -> str | None:
    return ProjectFiles(str(project), str(project)).find(kind, path, pattern)


def test_a_file_is_found_by_any_spelling(project: Path) -> None:
    real = str(project / "src" / "x.py")
    for path in ("src/x.py", "./src//x.py", "src/../src/x.py", real):
        assert find(project, "read", path) == real


def test_a_link_is_followed(project: Path) -> None:
    (project / "innocent.txt").symlink_to("../outside/key")
    (project / "folder").symlink_to("../outside")
    outside = str(project.parent / "outside")
    assert find(project, "read", "innocent.txt") == f"{outside}/key"
    assert find(project, "read", "folder/key") == f"{outside}/key"
    assert find(project, "glob", "", "folder/*") == outside


def test_what_is_not_sure_is_not_told(project: Path) -> None:
    os.mkfifo(project / "pipe")
    (project / "loop").symlink_to("loop")
    os.link(project / "src" / "x.py", project / "second.py")
    for path in ("absent", "pipe", "loop", "src", "second.py", "~/x", "~root/x", "a\0b", "", "x" * 5000):
        assert find(project, "read", path) is None


def test_a_search_through_a_folder_is_not_told(project: Path) -> None:
    assert find(project, "grep", "") is None
    assert find(project, "grep", "src") is None
    assert find(project, "grep", "src/x.py") == str(project / "src" / "x.py")


def test_a_file_that_is_to_be_made_is_where_its_folder_is(project: Path) -> None:
    (project / "folder").symlink_to("../outside")
    assert find(project, "write", "src/new.py") == str(project / "src" / "new.py")
    assert find(project, "write", "folder/new") == str(project.parent / "outside" / "new")
    assert find(project, "write", "absent/new") is None


@pytest.mark.parametrize("pattern", ["*.py", "**/*.py", "src/*", "src/**/*.py", "src/**/test/**/*.py", "{a,b}.py"])
def test_a_pattern_begins_in_a_folder(project: Path, pattern: str) -> None:
    assert find(project, "glob", "", pattern) == str(project / ("src" if pattern.startswith("src/") else ""))


@pytest.mark.parametrize(
    "pattern",
    [
        "../*",
        "src/../../*",
        "/etc/*",
        "~/*",
        "*/x",
        "s?c/*",
        "{src,link}/*",
        "**/../x",
        "src/**/*/x",
        "a\\/b",
        "absent/*",
        "x\0y",
    ],
)
def test_a_pattern_that_may_lead_elsewhere_is_not_told(project: Path, pattern: str) -> None:
    assert find(project, "glob", "", pattern) is None


def test_the_relay_s_own_files_are_not_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = project / "state"
    state.mkdir()
    (state / "x").write_text("x")
    files = ProjectFiles(str(project), str(project), (str(state),))
    assert files.find("read", "state/x") is None
    assert files.find("read", "src/x.py") is not None
    monkeypatch.setenv("AGENT_RELAY_HOME", str(project / "src"))
    assert find(project, "read", "src/x.py") is None


def test_the_project_is_the_one_that_holds_the_working_directory(project: Path) -> None:
    assert ProjectFiles(str(project / "src"), str(project)).root == str(project)
    elsewhere = str(project.parent / "outside")
    assert ProjectFiles(elsewhere, str(project)).root == elsewhere
    link = project.parent / "link"
    link.symlink_to(project)
    assert ProjectFiles(str(link), str(link)).root == str(project)


def test_a_home_folder_is_no_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project / "src"))
    assert ProjectFiles(str(project / "src"), str(project / "src")).root is None
    assert ProjectFiles(str(project), str(project)).root is None
    assert ProjectFiles("/", "/").root is None


def test_in_another_worktree_the_whole_of_it_is_what_an_agent_works_in(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    tree = add_worktree(main / ".git", tmp_path / "tree")
    (tree / "backend").mkdir()
    assert ProjectFiles(str(tree / "backend"), str(main)).root == str(tree)
    assert ProjectFiles(str(tree / "backend"), str(tmp_path / "another")).root == str(tree / "backend")
