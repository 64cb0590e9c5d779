from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.cli.interrupts import ending_at_once, ending_in_order

# Presses Ctrl-C at a moment of its own: when a module begins to be imported, or when a thing is done that Python tells of.
PRESSED = """
import os, signal, sys
moment = sys.argv.pop(1)

def hear(event, arguments):
    if moment == event or (event == "import" and arguments[0] == moment):
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(hear)
from agent_relay.cli.main import main
sys.exit(main())
"""
INBOX = ["inbox", "--as", "Bob", "--follow"]
LISTEN = ["arc", "listen", "--url", "http://127.0.0.1:9"]


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("agent_relay.cli.app", INBOX),
        ("agent_relay.sdk.client", INBOX),
        ("socket.__new__", INBOX),  # the loop is half made
        ("agent_relay.cli.project.link", LISTEN),  # what is to be done is there, and has not begun
    ],
)
def test_a_command_that_has_begun_nothing_ends_at_once_and_without_a_word(tmp_path: Path, moment: str, words: list[str]) -> None:
    environ = {**os.environ, "AGENT_RELAY_HOME": str(tmp_path), "AGENT_RELAY_ARC_TOKEN": "tok"}
    ended = subprocess.run(
        [sys.executable, "-c", PRESSED, moment, *words], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


def test_one_that_has_begun_is_told_and_then_it_is_as_before() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ending_at_once():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
        with pytest.raises(KeyboardInterrupt), ending_in_order():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("other", [signal.SIG_IGN, lambda *_: None])
def test_what_somebody_else_decided_stands(other: Any) -> None:
    signal.signal(signal.SIGINT, other)
    with ending_at_once(), ending_in_order():
        assert signal.getsignal(signal.SIGINT) is other
    assert signal.getsignal(signal.SIGINT) is other


def test_a_thread_beside_the_first_decides_nothing() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen: list[object] = []

    def work() -> None:
        with ending_at_once():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
