"""Shadows over a real daemon: through kill -9, by the SDK and by the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from agent_relay.testing.daemon import DaemonProcess

DEADLINE_S = 60.0


def command(daemon: DaemonProcess, *words: str) -> str:
    where = ["--socket", daemon.socket, "--state-dir", str(daemon.state_dir)]
    done = subprocess.run(
        [sys.executable, "-m", "agent_relay", *words, *where], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_copies_survive_kill_9_and_are_marked_wherever_they_are_read(start_relay_daemon: Callable[..., DaemonProcess]) -> None:
    daemon = start_relay_daemon("--shadows=Auditor:Alice")
    with daemon.connect_sync("Auditor", default_channels=False) as auditor, auditor.receive(timeout=DEADLINE_S) as told:
        assert "You get a copy of what Alice sends or receives." in told.body
    with daemon.connect_sync("Alice", default_channels=False) as alice, daemon.connect_sync("Bob", default_channels=False) as bob:
        with alice.receive(timeout=DEADLINE_S) as notice:
            assert notice.kind == "shadows"
        receipt = alice.send("Bob", "the plan")
        assert (receipt.recipients, receipt.queued) == (1, 0)
        with bob.receive(timeout=DEADLINE_S) as message:
            assert (message.body, message.is_copy, message.shadows) == ("the plan", False, ("Auditor",))
    daemon.kill()
    daemon.start()
    peeked = command(daemon, "inbox", "--as", "Auditor", "--peek")
    assert "Alice → Bob" in peeked
    assert peeked.splitlines()[0].endswith("copy")
    with daemon.connect_sync("Auditor", default_channels=False) as auditor, auditor.receive(timeout=DEADLINE_S) as copy:
        assert (copy.from_, copy.to, copy.body, copy.id) == ("Alice", "Bob", "the plan", receipt.message_id)
        assert copy.is_copy
    shown = json.loads(command(daemon, "explain", receipt.message_id, "--json"))["message"]["recipients"]
    assert [(each["name"], each.get("copy", False)) for each in shown] == [("Bob", False), ("Auditor", True)]
