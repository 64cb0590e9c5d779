"""A long steady load: does anything grow?

    python -m bench.soak --minutes 0.5                 # as fast as it goes: the maximum rate
    python -m bench.soak --minutes 20 --rate 30000

Ten senders, each with a recipient of its own, on a daemon with its default durability. Every minute what the daemon holds
and how long a message takes, and at the end the slopes of the second half: memory grows until the dedup window of every
sender is full (100,000 ids each), and is to be flat after that. Every message must be stored, and arrive once and in order.
"""

from __future__ import annotations

import argparse
import multiprocessing
import select
import socket
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from multiprocessing.connection import Connection
from pathlib import Path

from bench.dialect import FailedRunError, Scan
from bench.process import read_cpu_s, read_rss_bytes
from bench.relay_wire import RelayDialect, encode_frame, open_agent
from bench.servers import Server, find_relay, run_relay

PAIRS = 10
_WINDOW = 1_000  # of one sender, unanswered; beyond it the daemon does not keep up, and the sender waits
_TURN_S = 0.005
_CHUNK_BYTES = 1 << 18
_BODY = b'"body":"'
_NUMBER, _STAMP, _TEXT = "#" * 12, "@" * 19, "x" * 80
_SILENCE_S = 30.0
_MEBIBYTE = 1024 * 1024


class End:
    """One connection."""

    def __init__(self, path: str, name: str) -> None:
        self.sock = open_agent(path, name)
        self.sock.setblocking(False)
        self.dialect = RelayDialect(path)
        self._rest = self._pending = b""

    def read(self) -> None:
        try:
            data = self.sock.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise FailedRunError("the daemon closed a connection")
        buffer = self._rest + data
        scan = self.scan(buffer)
        self._rest = buffer[scan.consumed :]
        self.write(scan.reply)

    def write(self, data: bytes) -> None:
        self._pending += data
        while self._pending:
            try:
                self._pending = self._pending[self.sock.send(self._pending) :]
            except BlockingIOError:
                return

    def scan(self, buffer: bytes) -> Scan:
        raise NotImplementedError


class Sender(End):
    def __init__(self, path: str, number: int) -> None:
        super().__init__(path, f"writer-{number}")
        frame = encode_frame("SEND", f"m-{_NUMBER}", {"body": f"{_NUMBER}{_STAMP}{_TEXT}"}, to=f"reader-{number}")
        self._pattern = frame.replace(_NUMBER.encode(), b"%012d").replace(_STAMP.encode(), b"%019d")
        self.sent = self.answered = 0

    def send_until(self, due: int) -> None:
        first, self.sent = self.sent, max(self.sent, min(due, self.answered + _WINDOW))
        now_ns = time.monotonic_ns()
        self.write(b"".join([self._pattern % (number, number, now_ns) for number in range(first, self.sent)]))

    def scan(self, buffer: bytes) -> Scan:
        scan = self.dialect.scan_answers(buffer)
        if b'"NACK"' in buffer:
            raise FailedRunError(f"a message was refused: {buffer[:400]!r}")
        self.answered += scan.frames
        return scan


class Reader(End):
    """Looks at the last message of what it is given at once: which one it is, and how long it took."""

    def __init__(self, path: str, number: int) -> None:
        super().__init__(path, f"reader-{number}")
        self.count = 0
        self.latencies_s: list[float] = []

    def scan(self, buffer: bytes) -> Scan:
        scan = self.dialect.scan_deliveries(buffer)
        if scan.frames:
            self.count += scan.frames
            place = buffer.rindex(_BODY, 0, scan.consumed) + len(_BODY)
            number, sent_ns = int(buffer[place : place + 12]), int(buffer[place + 12 : place + 31])
            if number != self.count - 1:
                raise FailedRunError(f"message {self.count - 1} was expected, {number} came")
            self.latencies_s.append((time.monotonic_ns() - sent_ns) / 1e9)
        return scan


def read_all(path: str, pipe: Connection) -> None:
    """The recipients' process. Asked through the pipe, it tells how many messages came, and the latencies since it was asked."""
    readers: dict[object, Reader] = {reader.sock: reader for reader in (Reader(path, number) for number in range(PAIRS))}
    pipe.send("ready")
    while True:
        for ready in select.select([*readers, pipe], [], [], 1.0)[0]:
            if ready in readers:
                readers[ready].read()
                continue
            try:
                pipe.recv()
            except EOFError:
                return
            latencies = [latency for reader in readers.values() for latency in reader.latencies_s]
            pipe.send((sum(reader.count for reader in readers.values()), latencies))
            for reader in readers.values():
                reader.latencies_s.clear()


@dataclass
class Sample:
    minute: float
    sent_per_s: float
    cpu_us: float
    rss_mib: float
    fds: int
    wal_mib: float
    database_mib: float
    events_mib: float
    median_ms: float
    p99_ms: float

    def __str__(self) -> str:
        return " ".join(f"{getattr(self, name):>12.2f}" for name in FIELDS)


FIELDS = [field.name for field in fields(Sample)]


def run(minutes: float, rate: float, flags: Sequence[str]) -> None:
    with run_relay(find_relay(), *flags) as (server, path):
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        recipients = multiprocessing.get_context("spawn").Process(target=read_all, args=(path, theirs), daemon=True)
        recipients.start()
        theirs.close()
        ours.recv()
        senders: dict[socket.socket, Sender] = {end.sock: end for end in (Sender(path, number) for number in range(PAIRS))}
        print(" ".join(f"{name:>12}" for name in FIELDS), flush=True)
        samples: list[Sample] = []
        began, sent, cpu_s = time.monotonic(), 0, read_cpu_s(server.pid)
        every_s = min(60.0, minutes * 60 / 4)
        for turn in range(round(minutes * 60 / every_s)):
            starts = began + turn * every_s
            _send(senders, rate / PAIRS, began, starts + every_s)
            before, sent = sent, sum(sender.answered for sender in senders.values())
            cpu_before_s, cpu_s = cpu_s, read_cpu_s(server.pid)
            ours.send("tell")
            _, latencies = ours.recv()
            took_s = time.monotonic() - starts
            cpu_us = (cpu_s - cpu_before_s) * 1e6 / max(sent - before, 1)
            samples.append(_take(server, (time.monotonic() - began) / 60, (sent - before) / took_s, cpu_us, latencies))
            print(samples[-1], flush=True)
        total = _finish(senders, ours)
        recipients.terminate()
        recipients.join()
    half = samples[len(samples) // 2 :]
    print("slopes per minute, second half: " + ", ".join(f"{name} {_slope(half, name):+.3f}" for name in FIELDS[1:]))
    print(f"{total} messages sent, each stored, each arrived once and in order")


def _send(senders: dict[socket.socket, Sender], rate: float, began: float, until: float) -> None:
    while (now := time.monotonic()) < until:
        for sender in senders.values():
            sender.send_until(int((now - began) * rate) if rate else sender.answered + _WINDOW)
        for sock in select.select([*senders], [], [], _TURN_S)[0]:
            senders[sock].read()
        if rate and (left := now + _TURN_S - time.monotonic()) > 0:
            time.sleep(left)


def _finish(senders: dict[socket.socket, Sender], recipients: Connection) -> int:
    """All that was sent must have been answered and have arrived."""
    ends = time.monotonic() + _SILENCE_S
    total = sum(sender.sent for sender in senders.values())
    answered = came = 0
    while time.monotonic() < ends:
        for sock in select.select([*senders], [], [], _TURN_S)[0]:
            senders[sock].read()
        for sender in senders.values():
            sender.write(b"")
        answered = sum(sender.answered for sender in senders.values())
        recipients.send("tell")
        came, _ = recipients.recv()
        if answered == came == total:
            return total
    raise FailedRunError(f"{total} messages were sent, {answered} answered, {came} came")


def _take(server: Server, minute: float, rate: float, cpu_us: float, latencies: list[float]) -> Sample:
    state = server.directory / "state"
    fds = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
    sizes = {path.name: path.stat().st_size / _MEBIBYTE for path in state.rglob("*") if path.is_file()}
    latencies = sorted(latencies) or [0.0]
    return Sample(
        minute, rate, cpu_us, read_rss_bytes(server.pid) / _MEBIBYTE, fds,
        sum(size for name, size in sizes.items() if name.endswith("sqlite-wal")),
        sum(size for name, size in sizes.items() if name.endswith("sqlite")),
        sum(size for name, size in sizes.items() if name.startswith("events")),
        statistics.median(latencies) * 1000, latencies[int(len(latencies) * 0.99)] * 1000,
    )  # fmt: skip


def _slope(samples: list[Sample], name: str) -> float:
    """By least squares."""
    if len(samples) < 2:
        return 0.0
    minutes, values = [sample.minute for sample in samples], [float(getattr(sample, name)) for sample in samples]
    return statistics.linear_regression(minutes, values).slope


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--rate", type=float, default=0, help="messages per second of all senders; 0, the default: as many as go")
    parser.add_argument("--flag", action="append", default=[], help="of the daemon, as --flag=--dedup-ids=10000")
    options = parser.parse_args()
    try:
        run(options.minutes, options.rate, options.flag)
    except FailedRunError as error:
        sys.exit(f"The run failed: {error}")


if __name__ == "__main__":
    main()
