"""`python -m bench.instructions`: the instructions that the daemon spends on a message, counted by callgrind.

They hardly depend on the machine or on its other work, so that two versions can be compared on a busy one: `--relay` names
the command of the other. The daemon runs as ever, under valgrind, with its store and its events. One client sends turns of
messages to another, all of a turn in one write, and goes on when every one of them is answered, delivered and acknowledged. A
short run and a long one are compared, so what starting and stopping cost is not counted; nor are the kernel's instructions.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from bench.dialect import Dialect, FailedRunError, Stream
from bench.relay_wire import RelayDialect, connect_unix
from bench.servers import LOG, RELAY_FLAGS, SOCKET, find_relay, own_directory

_SHORT, _LONG = 1_000, 4_000  # messages
_PATIENCE_S = 300.0  # under valgrind, everything takes some fifty times as long
_CHUNK_BYTES = 1 << 18
_REST_S = 10.0  # by then it has written the events, indexed the words, and noted how far recipients have come
_TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)


def count_run(relay: list[str], messages: int, turn: int) -> dict[str, int]:
    """The instructions of each thread of a daemon that passes on so many messages, by the order in which the threads began."""
    with own_directory() as directory:
        out, path = directory / "callgrind", str(directory / SOCKET)
        command = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}", *relay]
        command += ["up", "--foreground", "--socket", path, "--state-dir", str(directory / "state"), "--no-http", *RELAY_FLAGS]
        environment = {"HOME": str(directory), "AGENT_RELAY_HOME": str(directory / "home"), "PYTHONHASHSEED": "0"}
        with (directory / LOG).open("wb") as log:
            daemon = subprocess.Popen(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait_for(path, daemon)
            _send_turns(RelayDialect(path), messages, turn)
            time.sleep(_REST_S)
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(_PATIENCE_S)
        files = sorted(directory.glob("callgrind-*"))
        if not files:
            raise FailedRunError(f"callgrind counted nothing: {(directory / LOG).read_text(errors='replace')[-500:]}")
        return {file.name: int(_TOTAL.findall(file.read_text())[0]) for file in files}


def _wait_for(path: str, daemon: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return connect_unix(path).close()
        except OSError:
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise FailedRunError("the daemon did not start under valgrind") from None
        time.sleep(0.1)


def _send_turns(dialect: Dialect, messages: int, turn: int) -> None:
    stream = Stream(0, "Alice", ("Bob",), messages)
    frames = dialect.encode_messages(stream)
    size = len(frames) // messages
    with dialect.open_receiver("Bob") as bob, dialect.open_sender("Alice") as alice:
        for sock in (alice, bob):
            sock.settimeout(_PATIENCE_S)
        for first in range(0, messages, turn):
            last = min(first + turn, messages)
            alice.sendall(frames[first * size : last * size])
            bob.sendall(_read(dialect, bob, last - first, dialect.ping, deliveries=True))
            _read(dialect, alice, last - first, b"", deliveries=False)


def _read(dialect: Dialect, sock: socket.socket, count: int, ping: bytes, *, deliveries: bool) -> bytes:
    """Reads until so many came; what must be written back, with a PING behind it."""
    scan = dialect.scan_deliveries if deliveries else dialect.scan_answers
    buffer, reply = b"", b""
    while count:
        chunk = sock.recv(_CHUNK_BYTES)
        if not chunk:
            raise FailedRunError("the daemon closed a connection")
        buffer += chunk
        found = scan(buffer)
        buffer, reply, count = buffer[found.consumed :], reply + found.reply, count - found.frames
    return reply + ping


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("--relay", metavar="COMMAND", help="the daemon's command; by default agent-relay beside this Python")
    parser.add_argument("--turn", type=int, default=64, help="messages that are sent at once")
    options = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed: apt-get install valgrind")
    relay = shlex.split(options.relay) if options.relay else [str(Path(word).resolve()) for word in find_relay()]
    # The first run is for Python alone, which compiles what it has no bytecode of yet.
    _, short, long = (count_run(relay, messages, options.turn) for messages in (options.turn, _SHORT, _LONG))
    each = [round((count - short.get(thread, 0)) / (_LONG - _SHORT)) for thread, count in long.items()]
    print(f"{sum(each):,} instructions per message, by thread: " + ", ".join(f"{count:,}" for count in each if abs(count) > 100))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
