"""The load itself: lanes that move bytes through sockets, and the three ways of driving them.

A lane is one connection. `drive` keeps any number of lanes full (window by window), `drive_paced` sends at a fixed
rate whatever comes back, `drive_turns` waits for each message before the next. Every chunk that arrives is kept with
its time; what it means is counted cheaply here and checked thoroughly after the clock has stopped.
"""

from __future__ import annotations

import select
import socket
import time
from array import array
from collections.abc import Sequence

from bench.dialect import Dialect, FailedRunError, Scan, Stream

_CHUNK_BYTES = 1 << 18
_POLL_S = 0.5  # how often a paced run that has written everything looks at the clock
_LEAST_RATE = 0.9  # of the rate asked for: a machine that cannot hold it tells nothing about latency at that rate
_SILENCE_S = 10.0  # nothing arrived for so long: what is missing will not come any more


class Lane:
    """One connection: what arrived, when, and what is to be written."""

    def __init__(self, dialect: Dialect, stream: Stream, sock: socket.socket) -> None:
        self.dialect = dialect
        self.stream = stream
        self.sock = sock
        self.chunks: list[bytes] = []
        self.times_ns = array("q")  # of each answer or delivery, as it came
        self.pings = self.pongs = 0
        self.end_ns = 0
        self.follower: FollowingLane | None = None  # who may send more once this lane has read
        self._rest = b""
        self._pending = bytearray()
        sock.setblocking(False)

    @property
    def count(self) -> int:
        return len(self.times_ns)

    @property
    def wanted(self) -> int:
        """Answers or deliveries that must come."""
        return self.stream.messages

    @property
    def finished(self) -> bool:
        return self.count >= self.wanted and self.pongs >= self.pings and not self._pending

    def read(self) -> None:
        try:
            chunk = self.sock.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        now_ns = time.monotonic_ns()
        if not chunk:
            raise FailedRunError(f"the server closed a connection of {self.stream.sender} after {self.count} messages")
        self.chunks.append(chunk)
        buffer = self._rest + chunk if self._rest else chunk
        count, pongs, consumed, reply = self.scan(buffer)
        self._rest = buffer[consumed:] if consumed < len(buffer) else b""
        if count:
            self.times_ns.extend([now_ns] * count)
        self.pongs += pongs
        self.end_ns = now_ns
        self._pending += reply

    def flush(self) -> bool:
        """Writes what can be written; False: the socket is full."""
        while self._pending:
            try:
                sent = self.sock.send(self._pending)
            except BlockingIOError:
                return False
            del self._pending[:sent]
        return True

    def ask_for_pong(self) -> None:
        """What was said before a PING has been taken when the PONG is here."""
        if self.dialect.ping:
            self._pending += self.dialect.ping
            self.pings += 1

    def scan(self, buffer: bytes) -> Scan:
        raise NotImplementedError


class SenderLane(Lane):
    """Keeps at most `window` messages unanswered; with a window of 0, sends what it is allowed and no more.

    All frames are encoded before the clock starts, so a window is a slice of one buffer.
    """

    def __init__(self, dialect: Dialect, stream: Stream, sock: socket.socket, window: int) -> None:
        super().__init__(dialect, stream, sock)
        self._frames = memoryview(dialect.encode_messages(stream))
        self._frame_bytes = len(self._frames) // stream.messages
        self._sent_bytes = 0
        self._window = window
        self._allowed_bytes = 0
        self.allow(window)

    @property
    def finished(self) -> bool:
        return self._sent_bytes == len(self._frames) and super().finished

    def allow(self, messages: int) -> None:
        """The first so many messages of the stream may go."""
        self._allowed_bytes = min(messages * self._frame_bytes, len(self._frames))

    def scan(self, buffer: bytes) -> Scan:
        return self.dialect.scan_answers(buffer)

    def read(self) -> None:
        super().read()
        if self._window:
            self.allow(self.count + self._window)

    def flush(self) -> bool:
        if self._sent_bytes % self._frame_bytes == 0 and not super().flush():
            return False  # what was begun is written to its end first: a frame never stands inside another
        while self._sent_bytes < self._allowed_bytes:
            try:
                self._sent_bytes += self.sock.send(self._frames[self._sent_bytes : self._allowed_bytes])
            except BlockingIOError:
                return False
        return super().flush()


class FollowingLane(SenderLane):
    """Is not answered: keeps at most `window` messages ahead of what its recipients were given."""

    def __init__(self, dialect: Dialect, stream: Stream, sock: socket.socket, window: int) -> None:
        super().__init__(dialect, stream, sock, 0)
        self._ahead = window
        self._delivered = 0
        self.heard(0)

    @property
    def wanted(self) -> int:
        return 0

    def heard(self, deliveries: int) -> None:
        self._delivered += deliveries
        self.allow(self._delivered // len(self.stream.recipients) + self._ahead)


class ReceiverLane(Lane):
    """Acknowledges what it is given. The last acknowledgement is followed by a PING: its PONG stops the clock."""

    def __init__(self, dialect: Dialect, stream: Stream, sock: socket.socket, follower: FollowingLane | None = None) -> None:
        super().__init__(dialect, stream, sock)
        self.follower = follower

    def scan(self, buffer: bytes) -> Scan:
        return self.dialect.scan_deliveries(buffer)

    def read(self) -> None:
        before = self.count
        super().read()
        if self.follower is not None:
            self.follower.heard(self.count - before)
        if before < self.stream.messages <= self.count:
            self.ask_for_pong()


def drive(lanes: Sequence[Lane]) -> None:
    """Until every lane has finished."""
    waiting = {lane.sock.fileno(): lane for lane in lanes}
    with select.epoll() as epoll:
        full = {handle for handle, lane in waiting.items() if not lane.flush()}
        for handle in waiting:
            epoll.register(handle, select.EPOLLIN | select.EPOLLOUT if handle in full else select.EPOLLIN)
        unfinished = {handle for handle, lane in waiting.items() if not lane.finished}

        def write(lane: Lane) -> None:
            handle = lane.sock.fileno()
            if lane.flush():
                if handle in full:
                    full.discard(handle)
                    epoll.modify(handle, select.EPOLLIN)
            elif handle not in full:
                full.add(handle)
                epoll.modify(handle, select.EPOLLIN | select.EPOLLOUT)
            if lane.finished:
                unfinished.discard(handle)

        while unfinished:
            ready = epoll.poll(_SILENCE_S)
            if not ready:
                raise _silence(lanes)
            for handle, events in ready:
                lane = waiting[handle]
                if events & ~select.EPOLLOUT:
                    lane.read()
                write(lane)
                if lane.follower is not None:
                    write(lane.follower)


def drive_paced(lane: SenderLane, rate: int) -> array[int]:
    """One message every 1/rate seconds; returns when each was written. Never waits for an answer."""
    written_ns = array("q")
    interval_ns = 1_000_000_000 // rate
    messages = lane.stream.messages
    heard_at = time.monotonic()
    start_ns = time.monotonic_ns() + interval_ns
    while not lane.finished:
        now_ns = time.monotonic_ns()
        due = min((now_ns - start_ns) // interval_ns + 1, messages)
        while len(written_ns) < due:
            lane.allow(len(written_ns) + 1)
            written_ns.append(time.monotonic_ns())
            _flush_all(lane)
        wait_s = (start_ns + due * interval_ns - time.monotonic_ns()) / 1e9 if due < messages else _POLL_S
        if select.select([lane.sock], [], [], max(wait_s, 0))[0]:
            lane.read()
            _flush_all(lane)
            heard_at = time.monotonic()
        elif time.monotonic() > heard_at + _SILENCE_S:
            raise _silence([lane])
    _check_rate(written_ns, rate)
    return written_ns


def drive_turns(sender: SenderLane, receiver: ReceiverLane) -> array[int]:
    """The next message only after the last was answered and delivered; returns when each was written."""
    written_ns = array("q")
    lanes: dict[socket.socket, Lane] = {sender.sock: sender, receiver.sock: receiver}
    for turn in range(1, sender.stream.messages + 1):
        sender.allow(turn)
        written_ns.append(time.monotonic_ns())
        _flush_all(sender)
        while sender.count < turn or receiver.count < turn:
            ready, _, _ = select.select([*lanes], [], [], _SILENCE_S)
            if not ready:
                raise _silence([sender, receiver])
            for sock in ready:
                lanes[sock].read()
                _flush_all(lanes[sock])
    drive([sender, receiver])
    return written_ns


def _flush_all(lane: Lane) -> None:
    while not lane.flush():
        if not select.select([], [lane.sock], [], _SILENCE_S)[1]:
            raise _silence([lane])


def _check_rate(written_ns: array[int], rate: int) -> None:
    took_s = (written_ns[-1] - written_ns[0]) / 1e9
    held = (len(written_ns) - 1) / took_s if took_s else 0.0
    if len(written_ns) > 1 and held < _LEAST_RATE * rate:
        raise FailedRunError(f"the load generator could not hold {rate} messages a second, it reached {held:.0f}")


def _silence(lanes: Sequence[Lane]) -> FailedRunError:
    done = sum(lane.count for lane in lanes)
    wanted = sum(lane.wanted for lane in lanes)
    return FailedRunError(f"{wanted - done} of {wanted} answers or deliveries did not come: {_SILENCE_S:g} s of silence")
