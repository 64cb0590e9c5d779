"""The wrappers of one host, as long as somebody has to hear of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_relay.daemon import wrapper_processes
from agent_relay.daemon.cluster.host_agents import HostAgents
from agent_relay.daemon.config import Config, load_config
from agent_relay.ports.agents import SessionRow, SessionStatus
from agent_relay.protocol.errors import RelayError

ROW = SessionRow("ses_1", "Bob", "claude", "", "pty", "Lead", 0, host="b", task="a long task")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Programs are found, and none is run: threads that would are counted."""
    STARTED.clear()
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(wrapper_processes.WrapperProcesses, "_in_thread", lambda _self, row, _work: STARTED.append(row.name))
    state = tmp_path / "state"
    state.mkdir()
    flags: Mapping[str, Any] = {"max_agents": "2"}
    return load_config(flags, {}, project_root=str(tmp_path), home=str(tmp_path), state_dir=str(state), socket="x")


STARTED: list[str] = []


def make(config: Config) -> HostAgents:
    return HostAgents(config, "b", lambda callback: callback())


def test_a_start_that_is_asked_for_twice_is_one(config: Config) -> None:
    agents = make(config)
    session = replace(ROW)
    agents.start(session, {})
    agents.start(replace(ROW), {})
    again = make(config)  # and over a restart of the daemon
    again.start(replace(ROW), {})
    assert STARTED == ["Bob"]
    assert session.cwd == config.project_root
    assert [row.task for row in again.rows] == [None]  # the seat has it


def test_the_settings_of_this_host_decide(config: Config) -> None:
    agents = make(config)
    with pytest.raises(RelayError, match="may not be started here"):
        agents.start(replace(ROW, cli="vim"), {})
    with pytest.raises(RelayError, match="may not be set"):
        agents.start(replace(ROW), {"LD_PRELOAD": "/tmp/x.so"})
    with pytest.raises(RelayError, match="spawn_unattended"):
        agents.start(replace(ROW, permission_mode="bypassPermissions"), {})
    with pytest.raises(RelayError, match="outside the project"):
        agents.start(replace(ROW, cwd="/etc"), {})
    for number in (1, 2):
        agents.start(replace(ROW, id=f"ses_{number}"), {})
    with pytest.raises(RelayError, match="max_agents"):
        agents.start(replace(ROW, id="ses_3"), {})
    assert len(STARTED) == 2


def test_an_end_is_kept_until_the_seat_has_heard_of_it(config: Config) -> None:
    agents = make(config)
    agents.start(replace(ROW), {})
    agents.has_news = False
    agents.launched("ses_1", 4_194_305, "no such process")
    agents.running("ses_1")
    assert agents.has_news
    told = [replace(row) for row in agents.rows]
    agents.ended("ses_1", 3)
    agents.forget(told)  # that was before it ended
    (row,) = make(config).rows
    assert (row.status, row.exit_code, row.pid) == (SessionStatus.ENDED, 3, 4_194_305)
    agents.forget([row])
    assert make(config).rows == []


def test_a_start_that_failed_keeps_its_reason(config: Config) -> None:
    agents = make(config)
    agents.start(replace(ROW), {})
    agents.failed("ses_1", "No terminal.")
    (row,) = make(config).rows
    assert (row.is_failed, row.failure) == (True, "No terminal.")


def test_a_process_that_only_its_wrapper_knows_is_watched(config: Config) -> None:
    agents = make(config)
    agents.start(replace(ROW), {})
    agents.adopt(replace(ROW, pid=7, pid_started="x"))
    agents.adopt(replace(ROW, pid=8, pid_started="y"))
    assert [(row.pid, row.pid_started) for row in agents.rows] == [(7, "x")]
    assert STARTED == ["Bob", "Bob"]  # one thread that runs it, one that watches
