"""Fixtures for agents in terminals, and the order in which several processes take up the tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.integration.stage import Stage

for _name in (
    "COLUMNS",
    "LINES",
):  # which pytest-xdist sets for its workers: programs would believe them rather than their terminal
    os.environ.pop(_name, None)


@pytest.fixture
def daemon(relay_daemon: DaemonProcess) -> DaemonProcess:
    """One for this test alone; files that share theirs define it anew."""
    return relay_daemon


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short one: sockets are in it."""
    path = Path(tempfile.mkdtemp(prefix="relay-w-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    scene = Stage(folder)
    yield scene
    scene.close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes share the tests, the longest begin first, one in each: a process is given two at a time."""
    if not hasattr(config, "workerinput"):
        return
    long = [item for item in items if item.get_closest_marker("longest")]
    items[:] = [item for item in items if item not in long]
    for place, item in enumerate(long):
        items.insert(2 * place, item)
