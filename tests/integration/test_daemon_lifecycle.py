"""The daemon as a process: it refuses what it cannot have, stops in order, and leaves others alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.protocol.places import ENV_HOME, ENV_PREFIX
from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient, encode

STOP_S = 8.0  # draining takes at most 5 s, and the machine may be busy
REFUSE_S = 30.0
PATIENT = "--heartbeat-ms=60s"  # on a busy machine a client says nothing for as long as another process takes to start


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(PATIENT) as daemon:
        yield daemon


def refused(
    folder: Path, *, state: Path, socket_path: Path | str, flags: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """A daemon that must not start: how it ended and what it said."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
    environ[ENV_HOME] = str(folder / "home")
    command = [sys.executable, "-m", "agent_relay.daemon", "--state-dir", str(state), "--socket", str(socket_path), *flags]
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=REFUSE_S, check=False)


def assert_sentence(ended: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit status 1 and one readable line, no traceback."""
    assert ended.returncode == 1, ended
    assert ended.stdout == ""
    assert ended.stderr.startswith("agent-relay: ")
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert [word for word in words if word not in ended.stderr] == [], ended.stderr


def assert_undisturbed(daemon: DaemonProcess, client: RawClient, pid: int) -> None:
    client.flush()
    assert daemon.running
    assert (daemon.state_dir / "relay.pid").read_text() == f"{pid}\n"
    with RawClient(daemon.socket) as newcomer:
        newcomer.hello("Newcomer")


def signal_and_wait(daemon: DaemonProcess, number: int) -> tuple[int, float]:
    """How it ended, and after how many seconds."""
    assert daemon._process is not None
    started = time.monotonic()
    daemon._process.send_signal(number)
    status = daemon._process.wait(STOP_S + 10)
    return status, time.monotonic() - started


def left_over(daemon: DaemonProcess) -> set[str]:
    return {path.name for path in daemon.state_dir.iterdir()} & {"relay.sock", "relay.pid", "relay.lock"}


def stall(daemon: DaemonProcess, name: str = "Stalled") -> socket.socket:
    """A client that says HELLO and never reads, with more waiting for it than the system takes."""
    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deaf.connect(daemon.socket)
    with RawClient(daemon.socket) as sender:
        deaf.sendall(encode(sender.hello_frame(name)))
        sender.hello("Sender")
        deadline = time.monotonic() + STOP_S
        while not any(agent["name"] == name and agent["connected"] for agent in sender.request("LIST_AGENTS", {})["agents"]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for _ in range(4):
            sender.send_stored(name, "x" * 400_000)
    return deaf


# --- start ------------------------------------------------------------------------------------------------------------


def test_a_second_daemon_in_the_same_place_is_refused_and_the_first_undisturbed(daemon: DaemonProcess, tmp_path: Path) -> None:
    with RawClient(daemon.socket) as client:
        client.hello("Alice")
        for socket_path in (daemon.socket, tmp_path / "other.sock"):
            ended = refused(tmp_path, state=daemon.state_dir, socket_path=socket_path)
            assert_sentence(ended, "Another daemon is running", str(daemon.state_dir), "agent-relay status")
        assert_undisturbed(daemon, client, daemon.pid)


def test_a_second_daemon_on_the_first_one_s_socket_is_refused_and_the_first_undisturbed(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    with RawClient(daemon.socket) as client:
        client.hello("Alice")
        ended = refused(tmp_path, state=tmp_path / "state", socket_path=daemon.socket)
        assert_sentence(ended, daemon.socket)
        assert_undisturbed(daemon, client, daemon.pid)


def test_two_daemons_in_two_places_cannot_share_a_socket(tmp_path: Path) -> None:
    with DaemonProcess(PATIENT) as first:
        shared = str(first.directory / "shared.sock")
        first.kill()
        first.socket = shared
        first.start()
        with RawClient(shared) as client:
            client.hello("Alice")
            ended = refused(tmp_path, state=tmp_path / "state", socket_path=shared)
            assert_sentence(ended)
            assert_undisturbed(first, client, first.pid)
        first.terminate()
        assert not os.path.lexists(shared)
        assert not os.path.lexists(shared + ".lock")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_starts_again_in_its_old_place(daemon: DaemonProcess, how: signal.Signals) -> None:
    with RawClient(daemon.socket) as client:
        session = client.hello("Alice")["session_id"]
        client.flush()
        token = client.token
    signal_and_wait(daemon, how)
    assert os.path.lexists(daemon.socket) is (how == signal.SIGKILL)
    daemon.start()
    with RawClient(daemon.socket) as client:
        assert client.hello("Alice", token=token)["session_id"] == session


def test_a_file_in_the_place_of_its_directory_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("precious")
    ended = refused(tmp_path, state=tmp_path / "state", socket_path=tmp_path / "s.sock")
    assert_sentence(ended, "is not a directory", "--state-dir")
    assert (tmp_path / "state").read_text() == "precious"


def test_a_file_in_the_place_of_its_socket_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "s.sock").write_text("precious")
    ended = refused(tmp_path, state=tmp_path / "state", socket_path=tmp_path / "s.sock")
    assert_sentence(ended, "is not a socket", "--socket")
    assert (tmp_path / "s.sock").read_text() == "precious"


def test_a_socket_s_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    ended = refused(tmp_path, state=tmp_path / "state", socket_path=tmp_path / ("x" * 110))
    assert_sentence(ended, "cannot be opened", "too long")


@pytest.mark.parametrize("damage", ["no database at all", "cut short"])
def test_a_damaged_database_is_refused_and_kept(daemon: DaemonProcess, tmp_path: Path, damage: str) -> None:
    with RawClient(daemon.socket) as client:
        client.hello("Alice")
        for _ in range(50):
            client.send("Alice", "x" * 4_000)
        client.flush()
    assert daemon.terminate() == 0
    database = daemon.state_dir / "messages.sqlite"
    if damage == "cut short":
        os.truncate(database, database.stat().st_size // 2)
    else:
        database.write_bytes(b"these are my notes\n" * 1_000)
    before = database.read_bytes()
    ended = refused(tmp_path, state=daemon.state_dir, socket_path=daemon.socket)
    assert_sentence(ended, str(database))
    assert database.read_bytes() == before
    assert left_over(daemon) == set()


def test_a_setting_that_cannot_be_used_is_exit_2(tmp_path: Path) -> None:
    ended = refused(tmp_path, state=tmp_path / "state", socket_path=tmp_path / "s.sock", flags=("--heartbeat-ms", "soon"))
    assert ended.returncode == 2
    assert "--heartbeat-ms" in ended.stderr
    assert "Traceback" not in ended.stderr


# --- stop -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_says_goodbye_to_everyone_and_leaves_nothing_behind(daemon: DaemonProcess, number: signal.Signals) -> None:
    with RawClient(daemon.socket) as agent, RawClient(daemon.socket) as observer, RawClient(daemon.socket) as silent:
        agent.hello("Alice")
        observer.hello("watcher", mode="observer")
        status, seconds = signal_and_wait(daemon, number)
        for client in (agent, observer, silent):
            assert client.expect("BYE")["payload"]["reason"] == "shutdown"
            client.wait_closed()
    assert (status, left_over(daemon)) == (0, set())
    assert seconds < STOP_S
    assert daemon.output == ""


def test_it_stops_within_seconds_even_if_a_client_never_reads(daemon: DaemonProcess) -> None:
    with stall(daemon):
        status, seconds = signal_and_wait(daemon, signal.SIGTERM)
    assert (status, left_over(daemon)) == (0, set())
    assert seconds < STOP_S


def test_a_second_signal_stops_it_at_once(daemon: DaemonProcess) -> None:
    with stall(daemon):
        assert daemon._process is not None
        daemon._process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        while os.path.lexists(daemon.socket):  # it has heard the first one
            assert time.monotonic() < deadline
            time.sleep(0.005)
        status, seconds = signal_and_wait(daemon, signal.SIGTERM)
    assert (status, left_over(daemon)) == (1, set())
    assert seconds < 4.5  # draining would take five


def test_what_was_acknowledged_before_it_stopped_is_there_after_it_started_again(daemon: DaemonProcess) -> None:
    with RawClient(daemon.socket) as alice, RawClient(daemon.socket) as bob:
        alice.hello("Alice")
        bob.hello("Bob")
        bob.flush()
        token = bob.token
        bob.close()
        for number in range(300):
            alice.send("Bob", str(number))
        assert daemon._process is not None
        daemon._process.send_signal(signal.SIGTERM)  # in the middle of it
        for number in range(300, 400):
            alice.send("Bob", str(number))
        alice.wait_closed()
        frames = alice.listen(0)
        stored = {frame["payload"]["ack_id"] for frame in frames if frame["payload"].get("stage") == "stored"}
        assert daemon._process.wait(STOP_S + 10) == 0
    daemon.start()
    with RawClient(daemon.socket) as bob:
        bob.auto_ack = True
        bob.hello("Bob", token=token)
        arrived = bob.deliveries(len(stored))
        assert [frame["delivery"]["seq"] for frame in arrived] == list(range(1, len(stored) + 1))
        bob.expect_none("DELIVER")


def test_it_stops_while_messages_wait_for_somebody_who_is_away(daemon: DaemonProcess) -> None:
    with RawClient(daemon.socket) as alice, RawClient(daemon.socket) as bob:
        alice.hello("Alice")
        bob.hello("Bob")
        bob.close()
        alice.send_stored("Bob", "later")
        status, seconds = signal_and_wait(daemon, signal.SIGTERM)
    assert status == 0
    assert seconds < 4.5  # nobody is waited for, which would take five
