"""The plugin is in every pytest run of whoever has us installed: it costs nothing there and changes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay import testing
from agent_relay.testing import plugin

from .test_page import run_pytest

STRANGER = """
import sys

import pytest


@pytest.fixture
def daemon():
    return "of my own"


def test_mine(daemon, request):
    assert daemon == "of my own"
    assert [name for name in request.fixturenames if "relay" in name] == []
    loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "agent_relay")
    assert loaded == ["agent_relay", "agent_relay.testing", "agent_relay.testing.plugin", "agent_relay.version"]
"""


def test_a_foreign_suite_does_not_notice_it(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(STRANGER)
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_loading_it_loads_nothing_that_pytest_has_not_loaded() -> None:
    code = "import sys, pytest; before = set(sys.modules); import agent_relay.testing.plugin; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert all(name.startswith("agent_relay") for name in done.stdout.split()), done.stdout


def test_it_has_fixtures_and_no_hooks() -> None:
    assert [name for name in vars(plugin) if name.startswith("pytest_")] == []


def test_every_public_name_is_there_and_no_other() -> None:
    assert [getattr(testing, name).__name__ for name in testing.__all__] == testing.__all__
    with pytest.raises(AttributeError):
        _ = testing.Nothing  # type: ignore[attr-defined]
