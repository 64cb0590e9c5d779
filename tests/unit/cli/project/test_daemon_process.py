"""Who is at a socket, whether a lock is held, and what may be cleared away."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.cli.project.daemon_process import Answer, Process, knock, locked_pid, remove_leftovers
from agent_relay.private_files import is_locked
from agent_relay.protocol.framing import encode_frame


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ar-") as path:  # a socket's path must be short
        yield Path(path)


def listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    return listener


def answer_with(listener: socket.socket, said: bytes) -> threading.Thread:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(said)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_nobody(folder: Path) -> None:
    assert knock(str(folder / "none.sock"), 1).answer is Answer.NOBODY
    (folder / "file").touch()
    assert knock(str(folder / "file" / "none.sock"), 1).answer is Answer.NOBODY
    listen(folder / "dead.sock").close()
    assert knock(str(folder / "dead.sock"), 1).answer is Answer.NOBODY


def test_a_host_without_its_cluster_is_a_daemon_of_ours(folder: Path) -> None:
    refusal = b'{"v":2,"type":"ERROR","id":"e","ts":1,"payload":{"code":"SERVICE_UNAVAILABLE","message":"no seat","fatal":true}}'
    with listen(folder / "s.sock") as listener:
        answer_with(listener, encode_frame(refusal))
        found = knock(str(folder / "s.sock"), 5)
    assert (found.answer, found.pid) == (Answer.RELAY, os.getpid())


def test_somebody_who_says_nothing(folder: Path) -> None:
    with listen(folder / "s.sock"):
        found = knock(str(folder / "s.sock"), 0.2)
    assert (found.answer, found.pid) == (Answer.SILENCE, os.getpid())


WELCOME_OF_ANOTHER = (
    b'{"v":2,"type":"WELCOME","id":"1","ts":1,"payload":{"session_id":"s","resume_token":"t",'
    b'"server":{"max_frame_bytes":1,"heartbeat_ms":1,"name":"another"}}}'
)


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", encode_frame(b"{}"), encode_frame(WELCOME_OF_ANOTHER)]
)
def test_somebody_else(folder: Path, said: bytes) -> None:
    with listen(folder / "s.sock") as listener:
        thread = answer_with(listener, said)
        assert knock(str(folder / "s.sock"), 5).answer is Answer.STRANGER
        thread.join(5)


def test_a_lock_is_held_as_long_as_its_holder_lives(folder: Path) -> None:
    lock = folder / "relay.lock"
    assert not is_locked(str(lock))
    lock.touch()
    (folder / "relay.pid").write_text("4711\n")
    assert not is_locked(str(lock))
    assert locked_pid(str(folder)) is None
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert is_locked(str(lock))
        assert locked_pid(str(folder)) == 4711
        (folder / "relay.pid").write_text("nonsense")
        assert locked_pid(str(folder)) is None
    assert not is_locked(str(lock))


def test_only_leftovers_are_removed(folder: Path) -> None:
    (folder / "relay.pid").write_text("4711\n")
    (folder / "relay.lock").touch()
    with listen(folder / "live.sock"), (folder / "relay.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert remove_leftovers(str(folder / "live.sock"), str(folder)) == []
    assert remove_leftovers(str(folder / "live.sock"), str(folder)) == [str(folder / "live.sock"), str(folder / "relay.pid")]
    assert remove_leftovers(str(folder / "relay.lock"), str(folder)) == []
    assert (folder / "relay.lock").exists()


def test_a_process_is_told_and_waited_for() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process = Process(child.pid)
    try:
        assert not process.wait(0)
        process.send(signal.SIGKILL)
        assert process.wait(10)
        process.send(signal.SIGKILL)  # to nobody: no error
    finally:
        process.close()
        child.kill()
        child.wait()
    with pytest.raises(ProcessLookupError):
        Process(child.pid)
