"""An agent behind the wall of --sandbox, with the real bubblewrap: what it reaches of the relay, and what it does not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.stage import BACKENDS, Stage, until
from tests.security.inside import Inside
from tests.security.test_agents import RAW

pytestmark = [
    pytest.mark.terminals,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed; scripts/setup dev tests does it"),
]


@pytest.fixture
def stage() -> Iterator[Stage]:
    """As people have it: what the relay keeps lies in the home, which an agent sees."""
    with tempfile.TemporaryDirectory(prefix="ar-", ignore_cleanup_errors=True) as folder:  # short: a socket lies in it
        home = Path(folder)
        (home / "relay").mkdir()
        (home / "home").mkdir()
        (home / "home" / "config.toml").write_text("")
        (home / "secret").write_text("of the person")
        found = Stage(home, "--port=0", directory=home / "relay")
        yield found
        found.close()


def wrap(stage: Stage, name: str, backend: str, *options: str) -> Inside:
    """The scripted agent keeps its record, and its hands, in a folder of its own that the wall leaves open."""
    return Inside(stage, name, backend, "--sandbox", *options, folder=stage.project)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_relays_files_and_other_agents_are_out_of_reach(stage: Stage, backend: str) -> None:
    alice = stage.start("Alice", backend)
    bob = wrap(stage, "Bob", backend)
    state = stage.daemon.state_dir
    for path in (
        state / "api-token",
        state / "messages.sqlite",
        state / "seats.json",
        alice.team / "run.json",
        state / "tmux.sock",
    ):
        assert bob.shell(f"cat {path}").status != 0, path
    for path in (alice.outbox, stage.folder / "home" / "config.toml"):
        assert bob.shell(f"ls -A {path}").status != 0, path
    pids = bob.shell("ls /proc | grep -c '^[0-9]'")
    assert int(pids.text) < 15
    assert bob.shell(f"cat /proc/{stage.daemon.pid}/environ").status != 0
    assert bob.shell(f"echo x > {stage.folder / 'secret'}").status != 0  # the home is to read
    assert bob.shell(f"cat {stage.folder / 'secret'} && echo x > {stage.project / 'new'}").text == "of the person"
    assert (stage.project / "new").read_text() == "x\n"


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_sends_receives_and_is_known_at_the_socket(stage: Stage, backend: str) -> None:
    bob = wrap(stage, "Bob", backend)
    with stage.daemon.connect_sync("Carol") as carol:
        assert bob.relay("send", "Carol", "'from behind the wall'").status == 0
        assert carol.receive(timeout=60).body == "from behind the wall"
        carol.send("Bob", "hello there")
        until(lambda: "hello there" in bob.agent.messages, "Bob got it")
    said = bob.python(RAW, stage.daemon.socket, "-", json.dumps({"command": "pause", "agent": "Bob"}), prefix="env -i setsid")
    assert json.loads(said.text)["details"]["reason"] == "inside_agent"
    inbox = bob.shell('cat "$AGENT_RELAY_INBOX"')
    assert "hello there" in inbox.text


def test_network_and_home_are_as_asked(stage: Stage) -> None:
    port = stage.daemon.wait_for_url().rpartition(":")[2]
    knock = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
    (stage.folder / "open").mkdir()
    bob = wrap(stage, "Bob", "pty", "--sandbox-network", "off", "--sandbox-home", str(stage.folder / "open"))
    assert bob.python(knock).status != 0
    assert bob.shell(f"cat {stage.folder / 'secret'}").status != 0
    assert bob.shell(f"echo x > {stage.folder / 'open' / 'new'}").status == 0
    eve = wrap(stage, "Eve", "pty", "--sandbox-home", "none")
    assert eve.python(knock).status == 0
    assert eve.shell(f"cat {stage.folder / 'secret'}").status != 0


def test_who_stands_behind_a_wall_starts_nobody_in_front_of_it(stage: Stage) -> None:
    sleeper = stage.folder / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 1000\n")
    sleeper.chmod(0o755)
    stage.daemon.kill()
    stage.daemon.flags = (f"--spawn-allow={sleeper}", f"--project-root={stage.project}")
    stage.daemon.start()
    bob = wrap(stage, "Bob", "pty", "--sandbox-network", "off")
    said = bob.relay("spawn", "Carol", str(sleeper), "--json")
    assert said.status == 0, said
    listed = json.loads(stage.command("agents", "--json").stdout)
    assert "Carol" in json.dumps(listed)
    sessions = json.loads((stage.daemon.state_dir / "sessions.json").read_text())
    assert [session["sandbox"] for session in sessions] == [{"network": "off", "home": "ro"}]
    wrapper = Path(f"/proc/{sessions[0]['pid']}/cmdline").read_bytes().split(b"\0")
    assert b"--sandbox" in wrapper
    assert b"--sandbox-network=off" in wrapper
    os.kill(sessions[0]["pid"], signal.SIGTERM)


def test_what_is_missing_is_said_with_its_mending(stage: Stage) -> None:
    words = ["-n", "Bob", "--backend", "pty", "--sandbox", *stage.where, "/bin/sleep", "1"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "agent_relay", *words],
        env=stage.environ | {"PATH": str(stage.folder)}, cwd=stage.project, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "sudo apt-get install bubblewrap" in done.stderr
