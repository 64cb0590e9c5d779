"""The demonstration of several hosts, as `make demo-cluster` runs it; nothing is left of it afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.demo.counting import NAMES, all_sayings, speaker, word
from tests.cluster.demo.show import LAST
from tests.integration.stage import until

ROOT = Path(__file__).parents[2]
DEADLINE_S = 200.0


def test_everybody_counts_in_turn_and_each_number_is_said_once() -> None:
    sayings = all_sayings(LAST)
    said = [saying for number in range(1, LAST + 1) for saying in sayings if saying.text == word(number)]
    assert [saying.sender for saying in said] == [speaker(number) for number in range(1, LAST + 1)]
    assert {name for saying in sayings for name in saying.to} == set(NAMES)
    assert len(sayings) == len(set(sayings))


def begin(folder: Path) -> subprocess.Popen[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("AGENT_RELAY_", "TMUX"))}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cluster.demo"], cwd=ROOT, env=environ | {"TMPDIR": str(folder)}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def has_no_traces(folder: Path, pid: int) -> None:
    def processes() -> str:
        listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
        return "\n".join(line for line in listed.splitlines() if str(folder) in line)

    until(lambda: not processes(), f"no process is left: {processes()}")
    assert not list(folder.glob("relay-*"))
    namespaces = Path("/run/netns")
    assert not (list(namespaces.glob(f"rl{pid}-*")) if namespaces.exists() else [])


@pytest.mark.terminals
def test_a_leader_and_a_host_are_killed_and_every_message_arrives_once(folder: Path) -> None:
    demo = begin(folder)
    out, _ = demo.communicate(timeout=DEADLINE_S)
    assert demo.returncode == 0, out
    assert out.count("killed with kill -9") == 2
    assert "Every message arrived once and in order" in out
    found = re.search(r"delivered (\d+) of (\d+); lost 0, doubled 0, out of order 0", out)
    assert found is not None, out
    assert found[1] == found[2] == str(sum(len(saying.to) for saying in all_sayings(LAST)))
    has_no_traces(folder, demo.pid)


@pytest.mark.terminals
def test_whoever_interrupts_it_has_nothing_to_clear_away(folder: Path) -> None:
    demo = begin(folder)
    assert demo.stdout is not None
    for line in demo.stdout:
        if word(2) in line:
            break
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=DEADLINE_S)
    assert demo.returncode == 130
    has_no_traces(folder, demo.pid)
