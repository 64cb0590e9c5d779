"""Where the daemon of a project is."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from agent_relay.protocol.places import project_id
from agent_relay.sdk.locate import locate
from tests.unit.test_git_checkouts import add_worktree, give_away


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "deep" / "er").mkdir(parents=True)
    (root / ".git").mkdir()
    return root


def test_the_repository_is_the_project_also_from_a_package_in_it(project: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "h")
    place = locate(project / "deep" / "er", environ={"AGENT_RELAY_HOME": home})
    assert place.root == str(project)
    assert place.project_id == project_id(str(project))
    assert place.home == home
    assert place.state_dir == f"{home}/projects/{place.project_id}"
    assert place.name == "project"
    (project / "deep" / "pyproject.toml").touch()
    assert locate(project / "deep" / "er", environ={"AGENT_RELAY_HOME": home}) == place


@pytest.mark.parametrize("name", ["pyproject.toml", "package.json", "Cargo.toml", "go.mod"])
def test_without_a_repository_the_nearest_package_is_the_project(tmp_path: Path, name: str) -> None:
    (tmp_path / "app" / "src").mkdir(parents=True)
    (tmp_path / name).touch()
    assert locate(tmp_path / "app" / "src", environ={"HOME": "/h"}).root == str(tmp_path)
    (tmp_path / "app" / name).touch()
    assert locate(tmp_path / "app" / "src", environ={"HOME": "/h"}).root == str(tmp_path / "app")


def test_a_folder_without_any_mark_is_its_own_project(tmp_path: Path) -> None:
    assert locate(tmp_path, environ={"HOME": "/h"}).root == str(tmp_path)


def test_the_folder_of_the_relay_goes_before_the_repository(project: Path) -> None:
    (project / "deep" / ".agent-relay").mkdir()
    assert locate(project / "deep" / "er", environ={"HOME": "/h"}).root == str(project / "deep")
    assert locate(project, environ={"HOME": "/h"}).root == str(project)
    (project.parent / ".agent-relay").mkdir()  # unites all that lies below it
    assert locate(project, environ={"HOME": "/h"}).root == str(project.parent)


def test_a_worktree_is_part_of_the_project_of_its_main_one(project: Path, tmp_path: Path) -> None:
    tree = add_worktree(project / ".git", tmp_path / "elsewhere" / "tree")
    environ = {"HOME": "/h"}
    assert locate(tree, environ=environ) == locate(project, environ=environ)
    (tree / ".agent-relay").mkdir()  # made here on purpose: this worktree has a relay of its own
    assert locate(tree, environ=environ).root == str(tree)
    (project / ".agent-relay").mkdir()  # committed, so that every worktree has it: there is one relay
    assert locate(tree, environ=environ).root == str(project)
    (tree / "sub" / ".agent-relay").mkdir(parents=True)
    assert locate(tree / "sub", environ=environ).root == str(tree / "sub")


def test_a_worktree_follows_its_main_one_into_a_larger_project(project: Path, tmp_path: Path) -> None:
    (tmp_path / ".agent-relay").mkdir()
    assert locate(project, environ={"HOME": "/h"}).root == str(tmp_path)
    with tempfile.TemporaryDirectory() as other:
        tree = add_worktree(project / ".git", Path(os.path.realpath(other)) / "tree")
        assert locate(tree, environ={"HOME": "/h"}).root == str(tmp_path)


@pytest.mark.parametrize("name", [".agent-relay", ".git", "package.json"])
def test_what_another_user_made_says_nothing(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / name).mkdir()
    give_away(monkeypatch, tmp_path / name)
    place = locate(tmp_path / "work", environ={"HOME": "/h"})
    assert place.root == str(tmp_path / "work")
    assert str(tmp_path / name) in place.notes[0]
    assert "another user" in place.notes[0]


def test_a_link_leads_to_the_same_project(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)
    assert locate(link / "deep", environ={}) == locate(project, environ={})


def test_the_relays_own_home_makes_no_project(tmp_path: Path) -> None:
    (tmp_path / ".agent-relay").mkdir()
    (tmp_path / "work").mkdir()
    place = locate(tmp_path / "work", environ={"HOME": str(tmp_path)})
    assert place.home == str(tmp_path / ".agent-relay")
    assert place.root == str(tmp_path / "work")
    assert locate(tmp_path / "work", environ={"HOME": "/elsewhere"}).root == str(tmp_path)


def test_an_argument_goes_before_the_environment_before_the_rule(project: Path) -> None:
    environ = {"AGENT_RELAY_HOME": "/h", "AGENT_RELAY_SOCKET": "/run/env.sock"}
    assert locate(project, environ=environ).socket == "/run/env.sock"
    assert locate(project, socket="/run/flag.sock", environ=environ).socket == "/run/flag.sock"
    given = locate(project, state_dir="/s", environ=environ)
    assert (given.state_dir, given.socket) == ("/s", "/s/relay.sock")
    del environ["AGENT_RELAY_SOCKET"]
    place = locate(project, environ=environ)
    assert place.socket == f"{place.state_dir}/relay.sock"


def test_a_socket_path_too_long_for_the_system_moves(project: Path) -> None:
    long = "/" + "x" * 100
    by_home = locate(project, environ={"AGENT_RELAY_HOME": long})
    assert by_home.socket == f"/tmp/agent-relay-{os.getuid()}/{by_home.project_id}/relay.sock"
    one, other = locate(project, state_dir=long + "1", environ={}), locate(project, state_dir=long + "2", environ={})
    assert len(one.socket) <= 100
    assert one.socket != other.socket


def test_a_wrapped_agent_belongs_to_its_project_wherever_it_goes(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate(environ={"AGENT_RELAY_PROJECT": str(project)}).root == str(project)


def test_the_environment_names_the_project_as_it_stands(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate(environ={"AGENT_RELAY_PROJECT": str(project / "deep")}).root == str(project / "deep")
    assert locate(environ={"AGENT_RELAY_PROJECT": "project"}).root == str(project)
    assert locate(environ={"AGENT_RELAY_PROJECT": "~/project", "HOME": str(tmp_path)}).root == str(project)
    place = locate(environ={"AGENT_RELAY_PROJECT": "0123456789ab"})
    assert place.root == str(tmp_path)
    assert "there is no folder" in place.notes[0]


def test_a_working_directory_that_is_gone_is_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert locate(socket="/run/a.sock", environ={}).socket == "/run/a.sock"
