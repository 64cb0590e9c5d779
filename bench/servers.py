"""The processes under test, each in a temporary directory of its own, gone when the block ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.arc_wire import read_port
from bench.dialect import FailedRunError
from bench.forwarder import READY
from bench.nats_wire import connect_nats
from bench.relay_wire import connect_unix

LOG = "server.log"
SOCKET, _STATE = "relay.sock", "state"
START_TIMEOUT_S = 20.0
_STOP_TIMEOUT_S = 10.0
_LOOK_EVERY_S = 0.002
Result = TypeVar("Result")
# A run measures the path of a message and not what happens when a window is overrun or a clock runs out: the queue
# holds everything a fast sender can be ahead, and no message is sent again because the machine was busy.
RELAY_FLAGS = ("--queue-capacity", "1000000", "--max-inflight", "1000", "--ack-timeout-ms", "60000", "--heartbeat-ms", "60000")

ARC_FLAGS = ("--arc-rate-limit", "0", "--arc-hourly-limit", "0", "--arc-registrations-per-hour", "0", "--arc-open")


@dataclass(frozen=True, slots=True)
class Server:
    pid: int
    directory: Path
    started_ns: int  # right before exec


def find_relay() -> list[str]:
    beside = Path(sys.executable).with_name("agent-relay")
    return [str(beside) if beside.exists() else "agent-relay"]


def find_nats() -> str | None:
    beside = Path(sys.executable).with_name("nats-server")
    return str(beside) if beside.exists() else shutil.which("nats-server")


def find_redis() -> str | None:
    return shutil.which("redis-server")


@contextmanager
def run_relay(command: Sequence[str], *flags: str, wait: bool = True) -> Iterator[tuple[Server, str]]:
    """The daemon with its default durability (fsync before an answer); yields it and its socket's path."""
    with own_directory() as directory, run_daemon(command, directory, "--no-http", *flags) as server:
        path = str(directory / SOCKET)
        if wait:
            wait_until(lambda: connect_unix(path).close(), server)
        yield server, path


@contextmanager
def run_arc_relay(command: Sequence[str]) -> Iterator[tuple[Server, int]]:
    """The same daemon with HTTP and without limits on how much an agent may send; yields it and its port."""
    with own_directory() as directory, run_daemon(command, directory, "--port", "0", *ARC_FLAGS) as server:
        yield server, wait_until(lambda: read_port(directory / _STATE), server)


@contextmanager
def run_daemon(command: Sequence[str], directory: Path, *flags: str, may_end: bool = False) -> Iterator[Server]:
    places = ["--socket", str(directory / SOCKET), "--state-dir", str(directory / _STATE)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode; a checkout is to have it as well
    environment |= {"HOME": str(directory), "AGENT_RELAY_HOME": str(directory / "home")}
    with running(
        [*command, "up", "--foreground", *places, *RELAY_FLAGS, *flags], directory, environment, may_end=may_end
    ) as server:
        yield server


@contextmanager
def run_arc_peer(kind: str) -> Iterator[tuple[Server, int]]:
    with own_directory() as directory, running(*_module("bench.arc_relays", kind, directory)) as server:
        yield server, wait_until(lambda: int(_read_ready(directory)), server)


@contextmanager
def run_forwarder() -> Iterator[tuple[Server, str]]:
    with own_directory() as directory:
        path = str(directory / "forwarder.sock")
        with running(*_module("bench.forwarder", path, directory)) as server:
            wait_until(lambda: _read_ready(directory), server)
            yield server, path


@contextmanager
def run_nats(binary: str, sync_always: bool) -> Iterator[tuple[Server, int]]:
    """JetStream with its file store on a free port; yields it and the port."""
    with own_directory() as directory:
        sync = "sync_interval: always" if sync_always else ""
        config = directory / "nats.conf"
        config.write_text(
            f'listen: "127.0.0.1:-1"\nports_file_dir: {json.dumps(str(directory))}\n'
            f"jetstream {{\n store_dir: {json.dumps(str(directory / 'store'))}\n {sync}\n}}\n"
        )
        with running([binary, "--config", str(config)], directory, dict(os.environ)) as server:
            port = wait_until(lambda: _read_port(directory), server)
            wait_until(lambda: connect_nats(port).close(), server)
            yield server, port


@contextmanager
def run_redis(binary: str, sync: str) -> Iterator[tuple[Server, str]]:
    """Redis with an append-only file that is flushed `everysec` or `always`; yields it and its socket's path."""
    with own_directory() as directory:
        path = str(directory / "redis.sock")
        options = {"port": "0", "unixsocket": path, "dir": str(directory), "appendonly": "yes", "appendfsync": sync, "save": ""}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        with running([binary, *words], directory, dict(os.environ)) as server:
            wait_until(lambda: connect_unix(path).close(), server)
            yield server, path


def _module(name: str, argument: str, directory: Path) -> tuple[list[str], Path, dict[str, str]]:
    """What `_running` needs for a server that is a module of the bench."""
    paths = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return [sys.executable, "-m", name, argument], directory, os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _read_ready(directory: Path) -> str:
    """What it printed after the word."""
    _, found, rest = (directory / LOG).read_text().partition(READY)
    if not found:
        raise ValueError("it does not listen yet")
    return rest


def _read_port(directory: Path) -> int:
    for path in directory.glob("*.ports"):
        return int(json.loads(path.read_text())["nats"][0].rpartition(":")[2])
    raise FileNotFoundError


def wait_until(attempt: Callable[[], Result], server: Server) -> Result:
    """Repeats what fails while a server is not there yet, as long as it may take to start."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return attempt()
        except (OSError, ValueError) as error:
            if time.monotonic() > deadline or not _is_running(server.pid):
                raise FailedRunError(f"the server did not start: {_last_words(server.directory) or error}") from None
        time.sleep(_LOOK_EVERY_S)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _last_words(directory: Path) -> str:
    lines = (directory / LOG).read_text(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


@contextmanager
def own_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


@contextmanager
def running(command: Sequence[str], directory: Path, environment: dict[str, str], *, may_end: bool = False) -> Iterator[Server]:
    """A process for the length of the block. `may_end`: it is killed on purpose."""
    with open(directory / LOG, "ab") as log:
        started_ns = time.monotonic_ns()
        try:
            process = subprocess.Popen(
                command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        except OSError as error:
            raise FailedRunError(f"{command[0]} cannot be started: {error.strerror}") from None
    try:
        yield Server(process.pid, directory, started_ns)
        if process.poll() is not None and not may_end:
            raise FailedRunError(f"the server ended during the run: {_last_words(directory)}")
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """The group this process was started in, so that nothing of a server outlives its run."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_STOP_TIMEOUT_S)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()
