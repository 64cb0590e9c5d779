"""The dashboard's files: which are given out, as what, and what is not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent_relay.dashboard.files import FOLDER, MEDIA, DashboardFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "static"
    (inner / "views").mkdir(parents=True)
    (inner / "index.html").write_text("<!doctype html>")
    (inner / "views" / "list.js").write_text("export const one = 1;")
    (inner / ".hidden.js").write_text("1")
    (tmp_path / "secret.js").write_text("secret")
    return inner


def test_a_file_comes_with_its_type_and_mark(folder: Path) -> None:
    asset = DashboardFiles(folder).find("views/list.js")
    assert asset is not None
    assert (asset.content, asset.media) == (b"export const one = 1;", "text/javascript; charset=utf-8")
    assert asset.etag.startswith('"')


def test_a_file_that_was_changed_is_read_again(folder: Path) -> None:
    files = DashboardFiles(folder)
    before = files.find("index.html")
    (folder / "index.html").write_text("<!doctype html><title>Other</title>")
    after = files.find("index.html")
    assert before is not None
    assert after is not None
    assert after.content.endswith(b"</title>")
    assert after.etag != before.etag


def test_a_file_that_did_not_change_is_not_read_again(folder: Path) -> None:
    files = DashboardFiles(folder)
    assert files.find("index.html") is files.find("index.html")


@pytest.mark.parametrize(
    "path",
    [
        "../secret.js", "views/../../secret.js", "/secret.js", "", "views", "views/", "views//list.js", ".hidden.js",
        "./index.html", "nothing.js", "index.html\0.js", "views\\list.js", "list.py", "a/" * 200 + "b.js",
    ],
)  # fmt: skip
def test_nothing_else_is_given_out(folder: Path, path: str) -> None:
    assert DashboardFiles(folder).find(path) is None


def test_a_link_leads_nowhere(folder: Path, tmp_path: Path) -> None:
    os.symlink(tmp_path / "secret.js", folder / "link.js")
    os.symlink(tmp_path, folder / "up")
    files = DashboardFiles(folder)
    assert files.find("link.js") is None
    assert files.find("up/secret.js") is None


def test_every_file_of_the_package_is_given_out() -> None:
    """One of another type or with another name would be there for nothing, but for the licences of others' work."""
    files = DashboardFiles()
    there = [path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file() and "LICENSE" not in path.name]
    assert "index.html" in there
    assert [path for path in there if files.find(path) is None] == []
    assert {Path(path).suffix for path in there} <= set(MEDIA)


def test_git_and_so_the_wheel_leave_none_of_them_out() -> None:
    """What is built into a wheel is what git does not ignore."""
    paths = [str(path) for path in FOLDER.rglob("*") if path.is_file()]
    command = ["git", "-c", "safe.directory=*", "check-ignore", "--stdin"]
    found = subprocess.run(command, check=False, input="\n".join(paths), text=True, capture_output=True, cwd=FOLDER)
    assert found.returncode in {1, 128}, found.stdout  # none is ignored; or there is no repository
