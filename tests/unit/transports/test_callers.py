"""Which agent's terminal a process runs in: real processes, and what they look like."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.transports import process_table
from agent_relay.transports.callers import Callers
from agent_relay.transports.http.callers import TracedHttp, find_holders
from agent_relay.transports.process_table import Process, environment_of, look_at

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
SOCKET = "/run/some.sock"
# A child of a child, which says its number and waits.
NESTED = "import subprocess, sys; subprocess.run([sys.executable, '-Ic', {inner!r}])"
WAIT = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"


@contextmanager
def running(code: str, **options: object) -> Iterator[tuple[int, int]]:
    """The process, and the one that waits: itself, or its child."""
    process = subprocess.Popen(
        [sys.executable, "-Ic", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )
    try:
        yield process.pid, int(process.stdout.readline())
    finally:
        process.communicate()


def seen(pid: int) -> Process:
    found = look_at(pid)
    assert found is not None
    return found


def make(folder: Path) -> Callers:
    return Callers(str(folder / "seats.json"), SOCKET)


def test_below_the_program_is_inside(tmp_path: Path) -> None:
    callers = make(tmp_path)
    with running(NESTED.format(inner=WAIT)) as (program, child), running(WAIT) as (wrapper, _), running(WAIT) as (other, _):
        callers.seat("Bob", seen(wrapper), program)
        for pid in (program, child):
            assert callers.trace(seen(pid)) == Caller("Bob")
        assert callers.trace(seen(other)) == Caller()
        assert callers.trace(seen(wrapper)) == OWNER  # it speaks for Bob by the name it holds
        assert make(tmp_path).trace(seen(child)) == Caller("Bob")  # a new daemon
        assert (tmp_path / "seats.json").stat().st_mode & 0o077 == 0
    later = make(tmp_path)
    assert later._seats == []


def test_below_the_wrapper_is_inside_before_the_program_is_known(tmp_path: Path) -> None:
    callers = make(tmp_path)
    with running(NESTED.format(inner=WAIT)) as (wrapper, child):
        callers.seat("Bob", seen(wrapper), None)
        assert callers.trace(seen(child)) == Caller("Bob")


def test_what_the_daemon_started_is_the_owners_whoever_started_the_daemon(tmp_path: Path) -> None:
    callers = make(tmp_path)
    callers.seat("Bob", seen(os.getppid()), None)  # we are the daemon, and below Bob's wrapper
    with running(WAIT) as (child, _):
        assert callers.trace(seen(child)) == Caller()


def test_an_environment_speaks_against_its_process(tmp_path: Path) -> None:
    callers = make(tmp_path)
    given = {"AGENT_RELAY_NAME": "Bob", "AGENT_RELAY_TOKEN": "run_x", "AGENT_RELAY_SOCKET": SOCKET}
    with running(WAIT, env=given) as (pid, _):
        assert environment_of(pid)["AGENT_RELAY_NAME"] == "Bob"
        assert callers.trace(seen(pid)) == Caller("Bob")
        assert Callers(str(tmp_path / "x"), "/run/other.sock").trace(seen(pid)) == Caller()
    with running(WAIT, env={"AGENT_RELAY_NAME": "Bob", "AGENT_RELAY_SOCKET": SOCKET}) as (pid, _):
        assert callers.trace(seen(pid)) == Caller()  # a person may set it


def test_at_the_programs_terminal_is_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {50: Process(50, 1, "34816", "1"), 60: Process(60, 1, "34816", "2"), 70: Process(70, 1, "34817", "3")}
    monkeypatch.setattr("agent_relay.transports.callers.look_at", table.get)
    callers = make(tmp_path)
    callers.seat("Bob", Process(40, 1, "", "0"), 50)
    assert [callers.trace(table[pid]).agent for pid in (60, 70)] == ["Bob", None]


def test_a_process_that_is_gone_is_nobody(tmp_path: Path) -> None:
    callers = make(tmp_path)
    with running(WAIT) as (pid, _):
        found = seen(pid)
    assert callers.trace(found) == Caller(is_lost=True)
    assert callers.trace(None) == Caller(is_lost=True)
    own = seen(os.getpid())
    assert callers.trace(own._replace(started="0")) == Caller(is_lost=True)  # another one has its number


@pytest.mark.parametrize("content", ["", "[]", "{", '[{"agent": 1}]', "\udcff"])
def test_a_file_that_cannot_be_read_is_no_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "seats.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert make(tmp_path)._seats == []


def test_what_ps_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc."""

    def say(text: str) -> None:
        done = subprocess.CompletedProcess([], 0, text)
        monkeypatch.setattr(process_table.subprocess, "run", lambda *_, **__: done)

    say("  501 ttys003  Mon Nov 16 05:20:10 2026\n")
    assert process_table._ask_ps(7) == Process(7, 501, "ttys003", "Mon Nov 16 05:20:10 2026")
    say("    1 ??       Mon Nov 16 05:20:10 2026\n")
    assert process_table._ask_ps(7) == Process(7, 1, "", "Mon Nov 16 05:20:10 2026")
    say("")
    assert process_table._ask_ps(7) is None


# --- HTTP ---------------------------------------------------------------------------------------------------------------


def refuse(caller: Caller, right: str) -> None:
    raise AssertionError((caller, right))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::"])
def test_the_other_end_of_a_connection_is_found(tmp_path: Path, host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip("no IPv6 here")
        listener.listen()
        port = listener.getsockname()[1]
        to = "127.0.0.1" if host == "::" else host  # over a socket of both kinds it is written ::ffff:127.0.0.1
        code = f"import socket; link = socket.create_connection(({to!r}, {port})); {WAIT}"
        with running(code) as (pid, _):
            served, client = listener.accept()
            server = served.getsockname()[:2]
            assert find_holders(client[:2], server) == [pid]
            callers = make(tmp_path)
            traced = TracedHttp(callers, refuse)
            assert asyncio.run(traced.find(client[:2], server)) == Caller(via="http")
            callers.seat("Bob", seen(os.getppid()), pid)
            assert asyncio.run(traced.find(client[:2], server)) == Caller("Bob", "http")
        served.close()
        assert asyncio.run(traced.find(client[:2], server)) == Caller(via="http", is_lost=True)
        assert asyncio.run(traced.find(("192.0.2.7", 4242), server)) == Caller(via="http")  # another machine: the token is all


def test_seats_are_json(tmp_path: Path) -> None:
    callers = make(tmp_path)
    callers.seat("Bob", seen(os.getpid()), None)
    (seat,) = json.loads((tmp_path / "seats.json").read_text())
    assert (seat["agent"], seat["pid"], seat["is_wrapper"]) == ("Bob", os.getpid(), True)
