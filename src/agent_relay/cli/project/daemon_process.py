"""The daemon as a process: who answers at the socket, whether it lives, how it is told to stop.

A pid file lies and pids are reused, so the kernel is asked: the socket says which process listens on it, the lock says
whether a daemon lives, and a signal goes through a handle on the process where the system has one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import stat
import struct
import time
from dataclasses import dataclass
from enum import Enum, auto

from agent_relay.private_files import is_locked
from agent_relay.protocol import places
from agent_relay.protocol.decode import BadFrame, decode_daemon_frame
from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.envelope import Error, Welcome
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.framing import FrameDecoder
from agent_relay.sdk.errors import StrangerAtSocket
from agent_relay.sdk.peers import check_folder, check_peer

SERVER_NAME = "agent-relay"
_POLL_S = 0.02
_PEERCRED = struct.Struct("3i")
_LOCAL_PEERPID = 0x002  # macOS


class Answer(Enum):
    NOBODY = auto()  # no socket, or one that nobody listens on
    RELAY = auto()  # a daemon of ours said WELCOME, or that it cannot serve anybody now
    SILENCE = auto()  # somebody listens and said nothing in time
    STRANGER = auto()  # somebody listens and is not a daemon of ours, or does not talk to this user


@dataclass(frozen=True, slots=True)
class KnockResult:
    answer: Answer
    pid: int | None = None
    version: str = ""
    why: str = ""  # a sentence, where it is not to be trusted


def knock(path: str, timeout_s: float) -> KnockResult:
    """Asks who listens there, as an observer: it takes no name and changes nothing."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            check_folder(path)
            connection.connect(path)
            check_peer(connection, path)
        except StrangerAtSocket as stranger:
            return KnockResult(Answer.STRANGER, why=stranger.message)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return KnockResult(Answer.NOBODY)
        except TimeoutError:
            return KnockResult(Answer.SILENCE)
        except OSError:
            return KnockResult(Answer.STRANGER)
        pid = peer_pid(connection)
        try:
            return _greet(connection, pid, time.monotonic() + timeout_s)
        except TimeoutError:
            return KnockResult(Answer.SILENCE, pid)
        except OSError:
            return KnockResult(Answer.STRANGER, pid)


def _greet(connection: socket.socket, pid: int | None, deadline: float) -> KnockResult:
    hello = {"agent": "observer", "version": 2, "mode": "observer"}
    connection.sendall(encode_envelope("HELLO", "h_1", time.time_ns() // 1_000_000, hello))
    decoder = FrameDecoder()
    while True:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        chunk = connection.recv(65_536)
        frames = decoder.feed(chunk)
        if frames:
            return _judge(frames[0], pid)
        if not chunk or decoder.oversize_bytes is not None:
            return KnockResult(Answer.STRANGER, pid)


def _judge(frame: bytes, pid: int | None) -> KnockResult:
    try:
        said = decode_daemon_frame(frame)
    except BadFrame:
        return KnockResult(Answer.STRANGER, pid)
    if isinstance(said, Welcome) and said.payload.server.name == SERVER_NAME:
        return KnockResult(Answer.RELAY, pid, said.payload.server.version)
    if isinstance(said, Error) and said.payload.code == ErrorCode.SERVICE_UNAVAILABLE:
        return KnockResult(Answer.RELAY, pid)  # a host without its cluster; it has to be known to be told to stop
    return KnockResult(Answer.STRANGER, pid)


def peer_pid(connection: socket.socket) -> int | None:
    """The process that listens at the other end; None where the system does not say (or lives in another namespace)."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            pid = _PEERCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size))[0]
        else:
            pid = connection.getsockopt(0, _LOCAL_PEERPID)
    except OSError:
        return None
    return pid if pid > 0 else None


def is_held(state_dir: str) -> bool:
    """Whether a daemon runs with this directory, though it may not have said its pid yet."""
    return is_locked(os.path.join(state_dir, places.LOCK_FILE))


def locked_pid(state_dir: str) -> int | None:
    """The pid of the daemon that holds the directory's lock; None if nobody holds it or the pid is not known yet."""
    if not is_held(state_dir):
        return None
    try:
        with open(os.path.join(state_dir, places.PID_FILE), encoding="ascii") as file:
            pid = int(file.read(32))
    except (OSError, ValueError):
        return None
    return pid if pid > 1 else None


def remove_leftovers(socket_path: str, state_dir: str) -> list[str]:
    """Removes what a killed daemon left behind, and only that; returns what was removed."""
    removed = []
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(os.lstat(socket_path).st_mode) and knock(socket_path, 1.0).answer is Answer.NOBODY:
            os.unlink(socket_path)
            removed.append(socket_path)
    if not is_held(state_dir):
        pid_file = os.path.join(state_dir, places.PID_FILE)
        with contextlib.suppress(OSError):
            os.unlink(pid_file)
            removed.append(pid_file)
    return removed


class Process:
    """A handle that stays with one process, also when its pid is given to another."""

    def __init__(self, pid: int) -> None:
        """Raises ProcessLookupError if there is none."""
        self.pid = pid
        self._handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        if self._handle is None:
            os.kill(pid, 0)

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, number)
            else:
                os.kill(self.pid, number)

    def wait(self, timeout_s: float) -> bool:
        """True once it has ended."""
        if self._handle is not None:
            return bool(select.select([self._handle], [], [], max(0.0, timeout_s))[0])
        deadline = time.monotonic() + timeout_s
        while self._lives():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def _lives(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
