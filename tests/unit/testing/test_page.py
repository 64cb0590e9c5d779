"""The examples of docs/testing.md run as they stand, and the page names every fixture and class there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay import testing
from agent_relay.cli.demo.agent_script import Turn
from agent_relay.testing import plugin
from agent_relay.testing.daemon import DaemonProcess

pytestmark = pytest.mark.terminals

PAGE = (Path(__file__).parents[3] / "docs/testing.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run_pytest(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """As a stranger runs it: with the plugin because the package is installed, and with nothing of ours besides."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "AGENT_RELAY_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--rootdir", str(folder), *words],
        cwd=folder, env=environ, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


def test_every_example_is_a_test_that_passes(tmp_path: Path) -> None:
    assert len(EXAMPLES) >= 5
    for number, example in enumerate(EXAMPLES):
        (tmp_path / f"test_example_{number}.py").write_text(example)
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(EXAMPLES)} passed" in done.stdout


def test_the_page_names_every_fixture_and_class() -> None:
    fixtures = {name for name in vars(plugin) if name.startswith(("relay_", "start_relay_"))}
    assert fixtures == {"relay_daemon", "start_relay_daemon", "start_relay_agent", "relay_clock"}
    members = {name for name in vars(DaemonProcess) if not name.startswith("_")} - {"remove", "api_token"}
    wanted = fixtures | (set(testing.__all__) - {"DaemonFailed"}) | members | (set(Turn.__struct_fields__) - {"line_ms"})
    assert [name for name in sorted(wanted) if not re.search(rf"`[^`\n]*\b{name}\b", PAGE)] == []
