"""The place of the demonstration: a directory of its own, and a daemon in it that can be killed and started again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket as sockets
import subprocess
import tempfile
from pathlib import Path

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.foreground import daemon_arguments
from agent_relay.cli.project.daemon_process import Answer, knock
from agent_relay.cli.project.http_server import find_page_address, wait_for_http_place
from agent_relay.interpreter import run_module
from agent_relay.protocol.places import ENV_PREFIX
from agent_relay.sdk.locate import Place, locate

START_DEADLINE_S = 20.0
_STOP_S = 5.0
_POLL_S = 0.02
_KNOCK_S = 1.0
_LONGEST_ROOT = 60  # bytes; beyond it sockets would have to move to a place that is not ours to remove


class Stage:
    """Removes what it made. A directory that was given is only lent, and stays."""

    def __init__(self, socket: str | None, state_dir: str | None) -> None:
        if state_dir is not None and os.path.lexists(state_dir) and (not os.path.isdir(state_dir) or os.listdir(state_dir)):
            raise Failure(f"{state_dir} is not an empty directory; the demo needs its own.", USAGE)
        usual = tempfile.gettempdir()
        short = usual if len(os.fsencode(usual)) <= _LONGEST_ROOT else "/tmp"  # noqa: S108 - made private by mkdtemp
        self.root = Path(tempfile.mkdtemp(prefix="agent-relay-demo-", dir=short))
        # Settings of the surroundings are not the demonstration's, nor is a tmux it may run in.
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith((ENV_PREFIX, "TMUX"))}
        self.environ[f"{ENV_PREFIX}HOME"] = str(self.root / "home")
        self.place: Place = locate(
            start=self.root, socket=socket, state_dir=state_dir or self.root / "state", environ=self.environ
        )
        self.socket, self.state_dir, self.project_id = self.place.socket, self.place.state_dir, self.place.project_id
        self._port = _free_port()  # the same one after the crash, so that a page that shows it goes on
        self._daemon: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._daemon is not None
        return self._daemon.pid

    async def start_daemon(self) -> None:
        """Returns when it answers."""
        said = self.root / "daemon.txt"
        arguments = daemon_arguments(self.socket, self.state_dir, str(self.root), {"port": str(self._port)})
        with said.open("ab") as file:
            self._daemon = subprocess.Popen(  # noqa: ASYNC220, S603 - ourselves; the handle is needed to kill it
                run_module("agent_relay.daemon", *arguments),
                env=self.environ, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
            )  # fmt: skip
        deadline = asyncio.get_running_loop().time() + START_DEADLINE_S
        while asyncio.get_running_loop().time() < deadline and self._daemon.poll() is None:
            if (await asyncio.to_thread(knock, self.socket, _KNOCK_S)).answer is Answer.RELAY:
                return
            await asyncio.sleep(_POLL_S)
        words = said.read_text(errors="replace").strip().splitlines()
        raise Failure(words[-1].removeprefix("agent-relay: ") if words else "The daemon of the demo did not start.")

    async def dashboard(self) -> str | None:
        """The address of the page that shows it live, with a code that lets it in; None: not here."""
        found = await asyncio.to_thread(wait_for_http_place, self.state_dir)
        return None if found is None or found.url is None else await asyncio.to_thread(find_page_address, self.state_dir, found)

    def check(self) -> None:
        """Raises when the daemon has ended and nobody wanted it to."""
        if self._daemon is not None and self._daemon.poll() not in {None, -signal.SIGKILL}:
            raise Failure(f"The daemon exited during the demo, with {self._daemon.returncode}.")

    def kill_daemon(self) -> None:
        """`kill -9`: no goodbye, nothing written any more."""
        assert self._daemon is not None
        self._daemon.send_signal(signal.SIGKILL)
        self._daemon.wait()

    def close(self) -> None:
        if self._daemon is not None and self._daemon.poll() is None:
            self._daemon.terminate()
            try:
                self._daemon.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._daemon.kill()
                self._daemon.wait()
        shutil.rmtree(self.root, ignore_errors=True)


def _free_port() -> int:
    with sockets.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
