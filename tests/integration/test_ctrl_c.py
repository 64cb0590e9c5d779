"""Ctrl-C is never missed: every command that follows or waits is pressed at many moments, and ends each time."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.integration.stage import until

PRESSING = Path(__file__).with_name("pressing.py")
TIMES = 25
DEADLINE_S = 300.0
AT_ONCE, IN_ORDER = -2, 130  # before it has begun anything, and after


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess("--port=0") as made:
        made.wait_for_url()
        yield made


def press(daemon: DaemonProcess, *words: str, times: int = TIMES) -> dict[int, tuple[int | str, str]]:
    where = ["--socket", daemon.socket, "--state-dir", str(daemon.state_dir)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
    environ["AGENT_RELAY_HOME"] = str(daemon.directory / "home")
    done = subprocess.run(
        [sys.executable, str(PRESSING), str(times), *words, *where], env=environ, cwd=daemon.directory, check=False,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {int(step): tuple(end) for step, end in json.loads(done.stdout).items()}


def relay(daemon: DaemonProcess, *words: str) -> str:
    where = ["--socket", daemon.socket, "--state-dir", str(daemon.state_dir)]
    words = (sys.executable, "-m", "agent_relay", *words, *where)
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout


def check(ends: dict[int, tuple[int | str, str]], *ways: int) -> None:
    """It ended in one of these ways, and without a word; in the last of them where it was asleep."""
    assert {status for status, _ in ends.values()} <= {*ways}, ends
    assert {said for _, said in ends.values()} == {""}, ends
    assert ends[max(ends)][0] == ways[-1]


@pytest.mark.parametrize(
    "words", [("inbox", "--as", "Bob", "--follow"), ("events", "--follow"), ("events", "--follow", "--since", "0")], ids=" ".join
)
def test_following_ends_whenever_it_is_pressed(daemon: DaemonProcess, words: tuple[str, ...]) -> None:
    check(press(daemon, *words), AT_ONCE, IN_ORDER)


def test_listening_does(daemon: DaemonProcess) -> None:
    relay(daemon, "arc", "register", "listener")
    check(press(daemon, "arc", "listen", "--as", "listener"), AT_ONCE, IN_ORDER)


def test_waiting_for_an_answer_does(daemon: DaemonProcess) -> None:
    with daemon.connect_sync("Silent"):
        check(press(daemon, "send", "Silent", "Are you there?", "--from", "Alice", "--reply", "60s"), AT_ONCE, IN_ORDER)


def test_the_log_of_an_agent_does(daemon: DaemonProcess) -> None:
    """It never sleeps for long."""
    team = daemon.state_dir / "team" / "Carol"
    team.mkdir(parents=True)
    (team / "history.log").write_text("a line\n")
    (team / "screen.json").write_text('{"rows": ["a row"], "is_over": false}')
    with (team / "screen.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as its wrapper does
        check(press(daemon, "logs", "Carol", "--follow", times=5), AT_ONCE, IN_ORDER)


def test_a_bridge_ends_in_order(daemon: DaemonProcess) -> None:
    url = daemon.wait_for_url()
    invite = json.loads(relay(daemon, "arc", "invite", "--json"))["invite"]
    relay(daemon, "arc", "register", "far-away", "--url", url, "--invite", invite)
    check(press(daemon, "bridge", "--url", url, "--map", "Near=far-away"), AT_ONCE, IN_ORDER, 0)


NEVER_UP = """
    import sys, time
    from agent_relay.cli.commands import up
    from agent_relay.cli.main import main
    code = "import os, sys, time; print(os.getpid(), file=sys.stderr); time.sleep(1000)"
    up.run_module = lambda *_: [sys.executable, "-c", code]
    sys.exit(main())
"""


def test_whoever_waits_for_a_new_daemon_takes_it_along(tmp_path: Path) -> None:
    words = ["up", "--no-http", "--socket", str(tmp_path / "s.sock"), "--state-dir", str(tmp_path / "state")]
    waiting = subprocess.Popen([sys.executable, "-c", textwrap.dedent(NEVER_UP), *words], cwd=tmp_path, stderr=subprocess.PIPE)
    log = tmp_path / "state" / "daemon.log"
    until(lambda: log.exists() and log.read_text().endswith("\n"), "the daemon is started, and does not answer")
    waiting.send_signal(signal.SIGINT)
    _, said = waiting.communicate(timeout=60)
    assert (waiting.returncode, said) == (IN_ORDER, b"")
    until(lambda: not Path(f"/proc/{log.read_text().strip()}").exists(), "the daemon is stopped")


SLEEPS = """
    import asyncio, os, signal, sys, threading, time
    from agent_relay.cli.interrupts import ending_at_once
    from agent_relay.cli.project.link import run
    from agent_relay.terminal.agent.stop_signals import StopSignals

    number = signal.Signals[sys.argv[1]]

    def press(first):
        clock = time.pthread_getcpuclockid(first)
        before = -1.0
        while before != (before := time.clock_gettime(clock)):
            time.sleep(0.3)
        signal.pthread_kill(threading.get_ident(), number)

    async def wait():
        over = asyncio.Event()
        if number is not signal.SIGINT:
            StopSignals(over.set, lambda: None)  # as wrappers have it
        await over.wait()

    threading.Thread(target=press, args=[threading.get_ident()]).start()
    try:
        with ending_at_once():
            run(wait())
        print("told")
    except KeyboardInterrupt:
        print("interrupted")
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.parametrize(("number", "said"), [("SIGINT", "interrupted"), ("SIGTERM", "told")])
def test_a_signal_that_does_not_wake_the_loop_is_heard_all_the_same(number: str, said: str) -> None:
    """It came to another thread, or right before the loop fell asleep; nothing else would wake this one."""
    words = [sys.executable, "-c", textwrap.dedent(SLEEPS), number]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == (f"{said}\n", "")
