"""The place of the demonstration: a directory of its own, and a daemon in it that can be killed and started again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.foreground import daemon_arguments
from agent_relay.cli.process import Answer, knock
from agent_relay.protocol.places import ENV_PREFIX
from agent_relay.sdk.locate import locate

START_DEADLINE_S = 20.0
_STOP_S = 5.0
_POLL_S = 0.02
_KNOCK_S = 1.0


class Stage:
    """Removes what it made. A directory that was given is only lent, and stays."""

    def __init__(self, socket: str | None, state_dir: str | None) -> None:
        if state_dir is not None and os.path.lexists(state_dir) and (not os.path.isdir(state_dir) or os.listdir(state_dir)):
            raise Failure(f"{state_dir} is not an empty directory; the demonstration wants one of its own.", USAGE)
        self._root = Path(tempfile.mkdtemp(prefix="agent-relay-demo-"))
        place = locate(start=self._root, socket=socket, state_dir=state_dir or self._root / "state")
        self.socket, self.state_dir = place.socket, place.state_dir
        self._daemon: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._daemon is not None
        return self._daemon.pid

    async def start_daemon(self) -> None:
        """Returns when it answers."""
        said = self._root / "said.txt"
        # Settings of the surroundings are not the demonstration's, and Ctrl-C is for the demonstration to handle.
        environ = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
        environ[f"{ENV_PREFIX}HOME"] = str(self._root / "home")
        arguments = daemon_arguments(self.socket, self.state_dir, str(self._root), {})
        with said.open("ab") as file:
            self._daemon = subprocess.Popen(  # noqa: ASYNC220, S603 - ourselves; the handle is needed to kill it
                [sys.executable, "-m", "agent_relay.daemon", *arguments],
                env=environ, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
            )  # fmt: skip
        deadline = asyncio.get_running_loop().time() + START_DEADLINE_S
        while asyncio.get_running_loop().time() < deadline and self._daemon.poll() is None:
            if (await asyncio.to_thread(knock, self.socket, _KNOCK_S)).answer is Answer.RELAY:
                return
            await asyncio.sleep(_POLL_S)
        words = said.read_text(errors="replace").strip().splitlines()
        raise Failure(words[-1].removeprefix("agent-relay: ") if words else "The daemon of the demonstration did not start.")

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
        shutil.rmtree(self._root, ignore_errors=True)
