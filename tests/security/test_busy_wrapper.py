"""A wrapper that has much to read, or is kept busy, still listens and still ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.integration.stage import BACKENDS, DEADLINE_S, Stage, until

DIGITS = 400_000
STOPPED_S = 15.0  # of which an idle machine needs two


FLOOD = """
    import pathlib, sys, time
    print((sys.argv[1] * int(sys.argv[2]))[: int(sys.argv[2])], end="\\r\\n\\r\\n")
    print("->relay:Lead done", end="\\r\\n\\r\\n> ", flush=True)
    pathlib.Path(sys.argv[3]).write_text('{"event": "started"}\\n')
    time.sleep(1000)
"""


@pytest.mark.terminals
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("letters", ["1", "Allow ", "1,("])
def test_a_very_long_line_keeps_nobody_from_hearing_and_stopping(stage: Stage, backend: str, letters: str) -> None:
    program = stage.folder / "flood.py"
    program.write_text(textwrap.dedent(FLOOD))
    words = [sys.executable, str(program), letters, str(DIGITS), str(stage.folder / "Bob.jsonl")]
    with stage.daemon.connect_sync("Lead") as lead:
        bob = stage.start("Bob", backend, program=words)
        assert lead.receive(timeout=DEADLINE_S).body == "done"
        start = time.monotonic()
        assert stage.command("stop", "Bob").returncode == 0
        bob.wait()
        assert time.monotonic() - start < STOPPED_S


BUSY = """
    import asyncio, os, subprocess, sys, time
    from agent_relay.terminal.agent.stop_signals import StopSignals

    program = subprocess.Popen(["sleep", "1000"])

    async def main() -> None:
        StopSignals(lambda: print("heard", flush=True), program.kill)
        print(program.pid, flush=True)
        while True:
            time.sleep(0.1)  # the loop never turns

    asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_wrapper_whose_loop_does_not_turn(number: signal.Signals) -> None:
    wrapper = subprocess.Popen([sys.executable, "-c", textwrap.dedent(BUSY)], stdout=subprocess.PIPE, text=True)
    assert wrapper.stdout is not None
    program = int(wrapper.stdout.readline())
    wrapper.send_signal(number)
    assert wrapper.wait(DEADLINE_S) == 128 + number
    assert wrapper.stdout.read() == ""  # nobody was told in order
    wrapper.stdout.close()
    until(lambda: not _is_alive(program), "its program is killed")


@pytest.mark.terminals
@pytest.mark.parametrize("backend", BACKENDS)
def test_stop_reaches_a_wrapper_that_does_not_read(stage: Stage, backend: str) -> None:
    """Held by the system it reads nothing. What `stop` said is not seen, but the signal that follows ends it once it goes on."""
    bob = stage.start("Bob", backend, turns=[])
    with stage.daemon.connect_sync("Lead") as lead:
        os.kill(bob.process.pid, signal.SIGSTOP)
        lead.control("Bob", "stop")
        until(lambda: _has_pending(bob.process.pid, signal.SIGTERM), "the daemon sends a signal")
        os.kill(bob.process.pid, signal.SIGCONT)
        bob.wait()
    until(lambda: not bob.pids(), "its program ends")


def _is_alive(pid: int) -> bool:
    """Whoever is dead and not yet buried is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def _has_pending(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask >> (number - 1) & 1 for mask in masks)
