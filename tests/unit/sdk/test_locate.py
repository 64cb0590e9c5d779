"""Where the daemon of a project is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.protocol.places import project_id
from agent_relay.sdk.locate import locate


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "deep" / "er").mkdir(parents=True)
    (root / ".git").mkdir()
    return root


def test_the_nearest_marker_upwards_is_the_project(project: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "h")
    place = locate(project / "deep" / "er", environ={"AGENT_RELAY_HOME": home})
    assert place.root == str(project)
    assert place.project_id == project_id(str(project))
    assert place.home == home
    assert place.state_dir == f"{home}/projects/{place.project_id}"
    (project / "deep" / "pyproject.toml").touch()
    assert locate(project / "deep" / "er", environ={"AGENT_RELAY_HOME": home}).root == str(project / "deep")


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
    assert locate(environ={"AGENT_RELAY_PROJECT": "0123456789ab"}).root == str(tmp_path)


def test_a_working_directory_that_is_gone_is_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert locate(socket="/run/a.sock", environ={}).socket == "/run/a.sock"
