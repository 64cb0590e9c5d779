"""Telling processes apart, waiting for one that is not ours, and signalling no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from agent_relay.daemon.processes import find_environment_above, is_same, send_signal, start_mark, wait_for_end


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_a_mark_is_that_of_one_process(child: subprocess.Popen[bytes]) -> None:
    mark = start_mark(child.pid)
    assert mark
    assert is_same(child.pid, mark)
    assert not is_same(child.pid, mark + "0")
    assert not is_same(os.getpid(), mark)
    child.kill()
    child.wait()
    assert (start_mark(child.pid), is_same(child.pid, mark)) == ("", False)


def test_one_that_nobody_has_waited_for_is_gone_as_well(child: subprocess.Popen[bytes]) -> None:
    mark = start_mark(child.pid)
    child.kill()
    wait_for_end(child.pid, mark)
    assert not is_same(child.pid, mark)
    assert start_mark(child.pid) == mark  # its number is not given to another yet
    child.wait()
    assert start_mark(child.pid) == ""


@pytest.mark.parametrize("has_handles", [True, False])
def test_the_end_is_waited_for(child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, has_handles: bool) -> None:
    if not has_handles:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    waiting = threading.Thread(target=wait_for_end, args=(child.pid, start_mark(child.pid)))
    waiting.start()
    assert waiting.is_alive()
    child.kill()
    waiting.join(20)
    assert not waiting.is_alive()


def test_nothing_is_waited_for_that_is_another(child: subprocess.Popen[bytes]) -> None:
    wait_for_end(child.pid, "another")
    wait_for_end(0, "")
    assert child.poll() is None


def test_only_this_very_process_is_signalled(child: subprocess.Popen[bytes]) -> None:
    send_signal(child.pid, "another", signal.SIGKILL)
    send_signal(0, "", signal.SIGKILL, to_group=True)
    assert child.poll() is None
    send_signal(child.pid, start_mark(child.pid), signal.SIGTERM, to_group=True)
    assert child.wait(20) == -signal.SIGTERM


def test_the_nearest_above_that_was_given_a_variable_is_found() -> None:
    look = "from agent_relay.daemon.processes import find_environment_above as find; print(find('GIVEN').get('GIVEN'))"
    own = {name: value for name, value in os.environ.items() if name != "GIVEN"}
    script = f'env -u GIVEN "{sys.executable}" -c "{look}"; true'
    outer = ["env", "GIVEN=outer", "sh", "-c", 'env GIVEN=inner sh -c "$SCRIPT"; true']
    done = subprocess.run(outer, env=own | {"SCRIPT": script}, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "inner\n"
    assert find_environment_above("GIVEN_TO_NOBODY") == {}
