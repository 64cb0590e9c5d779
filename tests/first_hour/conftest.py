"""The installed wheel, made once for all workers, and a newcomer for each test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.first_hour.newcomer import Newcomer, install, newcomer


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    base = tmp_path_factory.getbasetemp()
    return install((base.parent if run else base) / "first-hour")


@pytest.fixture
def person(commands: Path) -> Iterator[Newcomer]:
    assert len(tempfile.gettempdir()) < 60, "sockets are made below it: their paths must be short"
    with newcomer(commands) as somebody:
        yield somebody
