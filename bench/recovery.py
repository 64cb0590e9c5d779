"""What a start costs, and what one agent's long queue costs the others.

    python -m bench.recovery --waiting 1000000 --stored 0
    python -m bench.recovery --waiting 0 --stored 2600000
    python -m bench.recovery --waiting 200000 --stored 0 --hand-over

A daemon is given so many messages, `--waiting` of them to agents that are away, and is killed. Told are: the processor time of
the next one from its start to the first WELCOME, its memory then, and, with `--hand-over`, the longest answer to a PING of
somebody else's while one agent is given all that waits for it. The numbers of this and the last release are in the README.
"""

from __future__ import annotations

import argparse
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.process import read_cpu_s, read_rss_bytes
from bench.relay_wire import cut_frames, encode_frame, open_agent
from bench.servers import find_relay

_WINDOW = 2_000  # SENDs that are under way at once
_PING_EVERY_S = 0.002
_DELIVER = b'{"v":2,"type":"DELIVER","id":"'
_CAPACITY = ("--queue-capacity", "3000000", "--queue-bytes", "8000000000", "--http=false")


class Client:
    """A connection that reads whole frames."""

    def __init__(self, path: str, name: str) -> None:
        self.sock = open_agent(path, name)
        self.sock.settimeout(120)
        self._left = b""

    def read(self) -> list[bytes]:
        data = self._left + self.sock.recv(1 << 18)
        if len(data) == len(self._left):
            raise SystemExit("the daemon closed the connection")
        end = 0
        while len(data) - end >= 4 and len(data) - end - 4 >= (length := struct.unpack_from(">I", data, end)[0]):
            end += 4 + length
        self._left = data[end:]
        return list(cut_frames(data[:end]))


class Daemon:
    def __init__(self, directory: Path) -> None:
        self._command = [*find_relay(), "up", "--foreground", "--state-dir", str(directory / "s"), *_CAPACITY]
        self.socket = str(directory / "s" / "relay.sock")
        self._environment = os.environ | {"AGENT_RELAY_HOME": str(directory / "home")}
        self._output = (directory / "out").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        if self._process is not None:
            os.kill(self.pid, signal.SIGKILL)
            self._process.wait()

    def connect(self, name: str) -> Client:
        ends_at = time.monotonic() + 120
        while True:
            try:
                return Client(self.socket, name)
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > ends_at:
                    raise
                time.sleep(0.002)


def fill(daemon: Daemon, waiting: int, stored: int, agents: int) -> None:
    names = [f"Away{number}" for number in range(agents)]
    for name in (*names, "Here"):
        daemon.connect(name).sock.close()
    sender = daemon.connect("Sender")
    body = "x" * 200
    plan = [("Away", waiting), ("Here", stored)]
    reader = subprocess.Popen([sys.executable, "-m", "bench.recovery", "--read", daemon.socket, "Here", str(stored)])
    number = 0
    for kind, count in plan:
        answered = sent = 0
        while answered < count:
            room = min(_WINDOW - (sent - answered), count - sent)
            if room:
                to = names if kind == "Away" else ["Here"]
                frames = [
                    encode_frame("SEND", f"m-{number + place}", {"body": body}, to=to[(number + place) % len(to)])
                    for place in range(room)
                ]
                sender.sock.sendall(b"".join(frames))
                number += room
                sent += room
            for frame in sender.read():
                if b'"NACK"' in frame:
                    raise SystemExit(f"refused: {frame[:300]!r}")
                answered += b'"ACK"' in frame
    reader.wait()


def read_queue(path: str, name: str, count: int) -> None:
    """Acknowledges so many messages, as fast as they come."""
    client = Client(path, name)
    got = 0
    while got < count:
        ids = [frame[30 : frame.index(b'"', 30)].decode() for frame in client.read() if frame.startswith(_DELIVER)]
        got += len(ids)
        client.sock.sendall(b"".join(encode_frame("ACK", f"a-{id_}", {"ack_id": id_}) for id_ in ids))


def worst_ping_ms(client: Client, until: subprocess.Popen[bytes]) -> tuple[float, float]:
    """The longest and the median."""
    times = []
    while until.poll() is None:
        began = time.perf_counter()
        client.sock.sendall(encode_frame("PING", "p", {"nonce": "x"}))
        while not any(b'"PONG"' in frame for frame in client.read()):
            pass
        times.append((time.perf_counter() - began) * 1_000)
        time.sleep(_PING_EVERY_S)
    times.sort()
    return times[-1], times[len(times) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.recovery", description=__doc__)
    parser.add_argument("--waiting", type=int, default=0, help="messages for agents that are away")
    parser.add_argument("--stored", type=int, default=0, help="messages that were read")
    parser.add_argument("--agents", type=int, default=1, help="how many are away")
    parser.add_argument("--hand-over", action="store_true", help="let the first of them come, and measure the others' wait")
    parser.add_argument("--read", nargs=3, metavar=("SOCKET", "NAME", "COUNT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read_queue(options.read[0], options.read[1], int(options.read[2]))
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        daemon = Daemon(Path(directory))
        try:
            daemon.start()
            began = time.monotonic()
            fill(daemon, options.waiting, options.stored, options.agents)
            print(f"filled in {time.monotonic() - began:.0f} s, {read_rss_bytes(daemon.pid) / 2**20:.0f} MB", flush=True)
            daemon.kill()
            began = time.monotonic()
            daemon.start()
            bystander = daemon.connect("Bystander")
            print(
                f"{options.waiting} waiting, {options.stored} stored: first WELCOME after {read_cpu_s(daemon.pid):.2f} s of "
                f"processor time ({time.monotonic() - began:.2f} s), {read_rss_bytes(daemon.pid) / 2**20:.0f} MB", flush=True,
            )  # fmt: skip
            if options.hand_over:
                began = time.monotonic()
                count = str(options.waiting // options.agents)
                reader = subprocess.Popen([sys.executable, "-m", "bench.recovery", "--read", daemon.socket, "Away0", count])
                worst, median = worst_ping_ms(bystander, reader)
                print(
                    f"{count} handed over in {time.monotonic() - began:.1f} s: a PING took {worst:.1f} ms at most, "
                    f"{median:.2f} ms as a rule; {read_rss_bytes(daemon.pid) / 2**20:.0f} MB"
                )
        finally:
            daemon.kill()


if __name__ == "__main__":
    main()
