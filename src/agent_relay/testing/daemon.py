"""A real daemon for tests: a process of its own, in a directory of its own, that can be killed and started again.

    with DaemonProcess() as daemon:
        async with daemon.connect("Alice") as alice: ...
        daemon.kill()      # SIGKILL: nothing is written any more
        daemon.start()     # the same socket, the same state

Only the process started here is ever signalled.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from agent_relay.interpreter import run_module
from agent_relay.protocol.places import ENV_HOME, ENV_PREFIX, HTTP_FILE, SOCKET_FILE
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.owner import read_api_token
from agent_relay.sdk.sync import SyncRelayClient

START_DEADLINE_S = 30.0  # a cold interpreter on a loaded machine
STOP_DEADLINE_S = 15.0
_POLL_S = 0.005


class DaemonFailed(Exception):  # noqa: N818 - named by the condition
    """The process ended, or does not answer; the text has what it printed."""


class DaemonProcess:
    """`flags` are those of the daemon's command line, `--queue-capacity=10`. Without `directory` it makes a short
    temporary one (a socket's path must be short) and `remove` takes it away."""

    def __init__(self, *flags: str, directory: str | os.PathLike[str] | None = None) -> None:
        self.flags = flags
        self.environ: dict[str, str] = {}  # further variables for it
        self.command = run_module("agent_relay.daemon")
        self._temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="relay-") if directory is None else directory)
        self.state_dir = self.directory / "state"
        self.socket = str(self.state_dir / SOCKET_FILE)
        self._output = self.directory / "daemon.out"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> DaemonProcess:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.remove()

    def start(self) -> DaemonProcess:
        """Returns when it accepts connections; raises DaemonFailed."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
        environ[ENV_HOME] = str(self.directory / "home")
        if not any(flag.startswith(("--port", "--http")) for flag in self.flags):
            environ[f"{ENV_PREFIX}HTTP"] = "false"  # most tests do not ask for it, and starting it takes a while
        environ |= self.environ
        where = ["--socket", self.socket, "--state-dir", str(self.state_dir)]
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [*self.command, *where, *self.flags],
                env=environ,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self._wait_until_it_accepts()
        return self

    @property
    def pid(self) -> int:
        if self._process is None:
            raise DaemonFailed("It was not started.")
        return self._process.pid

    def wait_for_url(self) -> str:
        """Of its HTTP server, which `--port=0` asks for; raises DaemonFailed where there is none."""
        deadline = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline and self.running:
            try:
                said = json.loads((self.state_dir / HTTP_FILE).read_text())
            except (OSError, ValueError):
                time.sleep(_POLL_S)
                continue
            if said["url"] is None:
                raise DaemonFailed(said["reason"])
            return str(said["url"])
        raise DaemonFailed(f"Its HTTP server did not start. It printed: {self.output[-2000:]}")

    @property
    def api_token(self) -> str:
        """For its HTTP API, as the owner's own programs read it."""
        token = read_api_token(self.state_dir)
        if token is None:
            raise DaemonFailed("It has no token of the API; was it started?")
        return token

    @property
    def api_headers(self) -> dict[str, str]:
        """Headers of a request of the owner's."""
        return {"Authorization": f"Bearer {self.api_token}"}

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def output(self) -> str:
        """Everything it printed, over all its lives."""
        return self._output.read_text(errors="replace") if self._output.exists() else ""

    def kill(self) -> None:
        """SIGKILL, and waits until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_DEADLINE_S)

    def restart(self, *flags: str) -> DaemonProcess:
        """SIGKILL and another start; with `flags`, other ones than before."""
        self.kill()
        self.flags = flags or self.flags
        return self.start()

    def terminate(self) -> int:
        """SIGTERM, the graceful way; returns the exit status."""
        if self._process is None:
            raise DaemonFailed("It was not started.")
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_DEADLINE_S)

    def remove(self) -> None:
        """Kills it and removes its temporary directory."""
        self.kill()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def connect(self, name: str | None = None, **options: Any) -> RelayClient:
        """A client for `async with`."""
        return RelayClient(name, socket=self.socket, **options)

    def connect_sync(self, name: str | None = None, **options: Any) -> SyncRelayClient:
        """A client for `with`."""
        return SyncRelayClient(name, socket=self.socket, **options)

    def _wait_until_it_accepts(self) -> None:
        deadline = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline and self.running:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(self.socket)
                    return
                except OSError:
                    time.sleep(_POLL_S)
        self.kill()
        raise DaemonFailed(f"The daemon did not start. It printed: {self.output[-2000:]}")
