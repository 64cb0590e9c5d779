"""A short folder for sockets, and every test on both kinds of loop."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator

import pytest

from .parts import LOOPS


@pytest.fixture
def folder() -> Iterator[str]:
    path = tempfile.mkdtemp(prefix="relay-")
    yield path
    shutil.rmtree(path)


@pytest.fixture
def path(folder: str) -> str:
    return f"{folder}/relay.sock"


@pytest.fixture(params=LOOPS)
def loop_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
