"""The longest pause in which a sender at an edge gets no answer, after something was killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import time
from collections.abc import Callable
from itertools import pairwise

from bench.cluster_servers import Cluster
from bench.dialect import FailedRunError
from bench.relay_wire import encode_frame, open_agent

_ATTEMPT_S = 0.25
_BEFORE_S, _AFTER_S, _MOST_S = 1.5, 5.0, 60.0
_PACE_S = 0.005


def _lose_seat(cluster: Cluster) -> int:
    return cluster.hosts[0].server.pid


def _lose_leader(cluster: Cluster) -> int:
    return cluster.stream_leader.server.pid


def _lose_follower(cluster: Cluster) -> int:
    leader = cluster.stream_leader
    return next(node.server.pid for node in cluster.nodes if node is not leader)


FAULTS: dict[str, Callable[[Cluster], int]] = {
    "the seat's host": _lose_seat,
    "the NATS server that leads the log": _lose_leader,
    "another NATS server": _lose_follower,
}


def measure_pause(cluster: Cluster, fault: str) -> float:
    """Seconds. The sender is at an edge; what is not answered is sent again, over a new connection where the old one closed."""
    sender = _Sender(cluster.hosts[1].path)
    victim = FAULTS[fault](cluster)
    try:
        sender.send_until(lambda now, begun: now - begun > _BEFORE_S)
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        count = len(sender.answers)
        sender.send_until(
            lambda now, _: now - killed > _AFTER_S and len(sender.answers) > count + 20 and now - sender.answers[-1] < 0.5
        )
    finally:
        sender.close()
    times = sender.answers[count - 1 :]
    return max(later - earlier for earlier, later in pairwise(times))


class _Sender:
    def __init__(self, path: str) -> None:
        self._path = path
        self._sock: socket.socket | None = None
        self._buffer = b""
        self._number = 0
        self.answers: list[float] = []  # when each message was answered

    def send_until(self, is_over: Callable[[float, float], bool]) -> None:
        begun = time.monotonic()
        while not is_over(time.monotonic(), begun):
            if time.monotonic() - begun > _MOST_S:
                raise FailedRunError(f"no answers for {_MOST_S:g} s after the fault")
            with contextlib.suppress(OSError, FailedRunError):
                self._exchange()

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _exchange(self) -> None:
        """One message and its answer. A message without one stays the next to be sent: its id is the same."""
        if self._sock is None:
            time.sleep(_PACE_S)
            self._sock = open_agent(self._path, "pausing-0")
            self._sock.settimeout(_ATTEMPT_S)
            self._buffer = b""
            self._send()
        try:
            while not self._is_answered():
                data = self._sock.recv(1 << 16)
                if not data:
                    raise ConnectionResetError
                self._buffer += data
        except TimeoutError:
            return  # not yet: it is waited for further on this connection
        except OSError:
            self.close()
            return
        self.answers.append(time.monotonic())
        self._number += 1
        time.sleep(_PACE_S)
        self._send()

    def _send(self) -> None:
        assert self._sock is not None
        try:
            self._sock.sendall(encode_frame("SEND", f"m-{self._number}", {"kind": "message", "body": "x" * 200}, to="first"))
        except OSError:
            self.close()

    def _is_answered(self) -> bool:
        """Whether the answer to the message under way is among the frames that came; PINGs are answered."""
        assert self._sock is not None
        found = False
        while len(self._buffer) >= 4 and len(self._buffer) >= 4 + (length := struct.unpack_from(">I", self._buffer)[0]):
            frame, self._buffer = self._buffer[4 : 4 + length], self._buffer[4 + length :]
            if b'"PING"' in frame[:40]:
                self._sock.sendall(
                    encode_frame("PONG", "bench-pong", {"nonce": frame.partition(b'"nonce":"')[2].split(b'"')[0].decode()})
                )
            found = found or (b'"ACK"' in frame[:40] and f'"m-{self._number}"'.encode() in frame)
        return found
