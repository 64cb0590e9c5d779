"""The user's other projects, as their files say: only those that run and serve a page."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent_relay.daemon.running_projects import RunningProjects

HTTP = {"url": "http://127.0.0.1:4000", "host": "127.0.0.1"}


class Home:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack

    def add(self, name: str, *, runs: bool = True, **files: object) -> Path:
        folder = self.folder / "projects" / name
        folder.mkdir(parents=True)
        for file, content in ({"project": {"root": f"/srv/{name}"}, "http": HTTP} | files).items():
            (folder / f"{file}.json").write_text(content if isinstance(content, str) else json.dumps(content))
        lock = self._stack.enter_context((folder / "relay.lock").open("w"))
        if runs:
            fcntl.flock(lock, fcntl.LOCK_EX)
        return folder


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with ExitStack() as stack:
        yield Home(tmp_path, stack)


def test_those_that_run_are_listed_with_their_agents(home: Home) -> None:
    own = home.add("own")
    home.add("shop", agents={"agents": [{"name": "A", "connected": True}, {"name": "B", "connected": False}]})
    home.add("Blog")
    home.add("stopped", runs=False)
    home.add("no page", http={"url": None, "reason": "The port is taken."})
    home.add("odd", http={"url": "javascript:alert(1)"})
    home.add("broken", http="{")
    found = RunningProjects(str(home.folder), str(own)).others()
    assert [(each.name, each.path, each.url, each.agents) for each in found] == [
        ("Blog", "/srv/Blog", HTTP["url"], 0),
        ("shop", "/srv/shop", HTTP["url"], 1),
    ]


def test_without_a_folder_there_are_none(tmp_path: Path) -> None:
    assert RunningProjects(str(tmp_path), str(tmp_path)).others() == []
