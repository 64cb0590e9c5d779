"""What docs/sdk.md, docs/consensus.md and the README show of the SDK: it runs as it stands, ends by itself, and names everything
there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import agent_relay
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.sending import SEND_OPTIONS
from agent_relay.testing.daemon import DaemonProcess

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/sdk.md").read_text()
README = (ROOT / "README.md").read_text()
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
EXAMPLES = [*_BLOCK.findall(PAGE), *_BLOCK.findall((ROOT / "docs/consensus.md").read_text())]
INTERNAL = {"heard"}  # of send: for wrappers


def test_every_example_runs_as_it_stands_and_ends_by_itself() -> None:
    """In one interpreter, one after the other: starting one takes longer than any of them."""
    assert len(EXAMPLES) > 5
    said = "".join(f"exec(compile({block!r}, 'example {number}', 'exec'), {{'__name__': '__main__'}})\n"
                   for number, block in enumerate(EXAMPLES, 1))  # fmt: skip
    with DaemonProcess() as daemon:
        done = subprocess.run(
            [sys.executable, "-c", said], capture_output=True, text=True, timeout=90, check=False,
            env={"AGENT_RELAY_SOCKET": daemon.socket, "PATH": "", "HOME": str(daemon.directory)},
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Bob: auth.py looks good.\n")


def test_the_readme_shows_the_first_example() -> None:
    assert _BLOCK.findall(README)[0] == EXAMPLES[0]


def test_the_page_names_everything_that_is_public() -> None:
    methods = {name for name in dir(RelayClient) if not name.startswith("_")}
    wanted = methods | (SEND_OPTIONS - INTERNAL) | set(agent_relay.__all__) - {"__version__"}
    assert [name for name in sorted(wanted) if not re.search(rf"\b{name}\b", PAGE)] == []


@pytest.mark.parametrize("name", ["wait", "reply", "retry_for", "slow_down", "default_channels", "held_ms"])
def test_the_page_names_what_decides_about_waiting(name: str) -> None:
    assert f"`{name}`" in PAGE or f"{name}=" in PAGE or f".{name}" in PAGE
