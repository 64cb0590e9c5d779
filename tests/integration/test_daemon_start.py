"""What happens before the first WELCOME, and what waits until it was said.

How long the start takes depends on the machine and on whoever else is on it, so it is held to what it imports and to the
processor's time. `bench` measures the rest.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from agent_relay.protocol.places import ENV_HOME
from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient

MOST_CPU_S = 1.0  # 0.2 s on an idle machine, 0.4 s without bytecode, and half as much again where others use the caches
REFUSE_S = 30.0
# Python runs a `sitecustomize` before anything else. This one lets nothing through that the first answer can do without: the
# main thread ends where it asks for it, and other threads wait until the file is there.
GATE = """
import os, sys, threading, time
from importlib.machinery import PathFinder

PACKAGES = {"agent_relay", "msgspec", "typing_extensions", "uvloop"}
ROOMS = {"version", "interpreter", "repository", "private_files"}
ROOMS |= {"protocol", "events", "ports", "core", "storage", "transports", "daemon"}
SHORT_WAY = {"agent_relay.__main__", "agent_relay.cli", "agent_relay.cli.main", "agent_relay.cli.foreground", "agent_relay.sdk"}
SHORT_WAY |= {"agent_relay.sdk.locate"}
LATER = ("agent_relay.daemon.arc", "agent_relay.storage.arc_", "agent_relay.transports.arc.", "agent_relay.transports.http.")
NOT_LATER = {"agent_relay.transports.http.port", "agent_relay.transports.arc.settings"}
NEEDLESS = {"argparse", "email", "html", "http", "multiprocessing", "shutil", "tomllib", "unittest", "xml", "zipfile"}


def is_needed(name):
    package, _, rest = name.partition(".")
    if package != "agent_relay":
        return package in PACKAGES or (package in sys.stdlib_module_names and package not in NEEDLESS)
    if name in NOT_LATER or name in SHORT_WAY:
        return True
    return (not rest or rest.partition(".")[0] in ROOMS) and not name.startswith(LATER)


class Gate:
    def find_spec(self, name, path=None, target=None):
        if is_needed(name) or PathFinder.find_spec(name, path) is None:  # some ask for modules of another Python's
            return
        while not os.path.exists(os.environ["GATE_OPEN"]):
            if threading.current_thread() is threading.main_thread():
                raise SystemExit(f"{name} was imported before the first WELCOME")
            time.sleep(0.01)


sys.meta_path.insert(0, Gate())
"""


@pytest.fixture
def gate(tmp_path: Path) -> dict[str, str]:
    """Variables for a process that is to be gated."""
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "sitecustomize.py").write_text(GATE)
    return {"PYTHONPATH": str(tmp_path / "gate"), "GATE_OPEN": str(tmp_path / "open")}


def test_the_first_welcome_needs_none_of_what_http_needs_which_comes_after_it(gate: dict[str, str]) -> None:
    daemon = DaemonProcess("--port=0")
    daemon.environ, daemon.command = gate, [sys.executable, "-m", "agent_relay.daemon"]  # one that minds PYTHONPATH
    with daemon:
        with RawClient(daemon.socket) as client:
            client.hello("Alice")
        assert not (daemon.state_dir / "http.json").exists()
        Path(gate["GATE_OPEN"]).touch()
        assert httpx.get(f"{daemon.wait_for_url()}/health").status_code == 200


def test_the_short_way_of_the_command_line_needs_nothing_more(gate: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "state").write_text("precious")  # so that it gets as far as the daemon itself, and no further
    command = [sys.executable, "-m", "agent_relay", "up", "--foreground", "--no-http", "--state-dir", str(tmp_path / "state")]
    environ = os.environ | gate | {ENV_HOME: str(tmp_path / "home")}
    ended = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=REFUSE_S, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "is not a directory" in ended.stderr


def test_from_exec_to_the_first_welcome_is_quick() -> None:
    assert min(_cpu_s_of_a_start() for _ in range(3)) < MOST_CPU_S


def _cpu_s_of_a_start() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with DaemonProcess() as daemon, RawClient(daemon.socket) as client:
        client.hello("Alice")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)  # it was killed and waited for
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
