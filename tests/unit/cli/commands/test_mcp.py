"""`mcp`: who speaks, and what is said where the package is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay.cli.commands.mcp import choose_speaker
from agent_relay.cli.mcp.own_agent import OwnAgent
from agent_relay.cli.mcp.wrapped_agent import WrappedAgent
from agent_relay.sdk.locate import Place

_WITHOUT = """
import sys
for name in ("mcp", "mcp_types"):
    sys.modules[name] = None
from agent_relay.cli.main import main
sys.exit(main(["mcp"]))
"""


def test_a_missing_package_is_named_with_the_way_to_get_it() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "pip install 'agent-relay[mcp]'" in done.stderr
    assert done.stdout == ""


def test_other_commands_do_not_load_it() -> None:
    code = "import sys; from agent_relay.cli.main import main; main(['agents', '--help']); sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, check=False).returncode == 0


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path), "0" * 12, str(tmp_path / "home"), str(tmp_path / "state"), str(tmp_path / "relay.sock"))


def test_inside_a_wrapper_the_wrapped_agent_speaks(place: Place, tmp_path: Path) -> None:
    inside = {"AGENT_RELAY_NAME": "Alice", "AGENT_RELAY_OUTBOX": str(tmp_path), "AGENT_RELAY_SOCKET": place.socket}
    speaker = choose_speaker(place, inside)
    assert isinstance(speaker, WrappedAgent)
    assert speaker.name == "Alice"


def test_elsewhere_somebody_speaks_for_themselves(place: Place, tmp_path: Path) -> None:
    of_another = {"AGENT_RELAY_NAME": "Alice", "AGENT_RELAY_OUTBOX": str(tmp_path), "AGENT_RELAY_SOCKET": "/another"}
    for environ in ({}, {"AGENT_RELAY_OUTBOX": str(tmp_path)}, of_another, {"AGENT_RELAY_NAME": "Alice"}):
        assert isinstance(choose_speaker(place, environ), OwnAgent)
