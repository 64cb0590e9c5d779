"""Wrappers that died while their program runs on in tmux: found, and started again with the words of the first start.

A wrapper leaves those words in its agent's folder and takes them away when it ends by itself. What it is started with again takes
the program up as it is: nothing is typed twice, and messages that wait are delivered.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from agent_relay.cli.failures import Failure
from agent_relay.cli.wrapper.wrappers import find_wrappers
from agent_relay.interpreter import run_module
from agent_relay.protocol.places import TEAM_FOLDER
from agent_relay.terminal.files.private_files import load_private, save_private

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place
    from agent_relay.terminal.backends.tmux_server import TmuxServer

START_FILE = "wrapper-start.json"
MAX_REVIVALS = 3  # of one wrapper; one that dies again and again has a reason
_END_S = 30.0


class WrapperStart(Struct, frozen=True):
    words: tuple[str, ...] = ()  # behind the program's name, but for the descriptor
    cwd: str = ""


class NotStarted(Failure):
    """`pid`: of the process that did not become a wrapper."""

    def __init__(self, sentence: str, status: int, pid: int) -> None:
        super().__init__(sentence, status)
        self.pid = pid


def note_start(team: str, start: WrapperStart) -> None:
    with contextlib.suppress(OSError):  # then it cannot be started again by itself
        save_private(os.path.join(team, START_FILE), start)


def forget_start(team: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(team, START_FILE))


def start_wrapper(start: WrapperStart) -> tuple[subprocess.Popen[bytes], str]:
    """The process and the agent's name. Raises NotStarted with its reason."""
    reading, writing = os.pipe()
    words = [start.words[0], f"--ready-descriptor={writing}", *start.words[1:]]
    try:
        # Its own session, so that a closed window does not take the agent along.
        process = subprocess.Popen(  # noqa: S603 - ourselves
            run_module("agent_relay", *words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, pass_fds=(writing,), cwd=start.cwd or None,
        )  # fmt: skip
    finally:
        os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    told = json.loads(said) if said else {"sentence": "The wrapper failed to start; AGENT_RELAY_DEBUG=1 may show why."}
    if "name" not in told:
        process.wait(_END_S)
        raise NotStarted(str(told["sentence"]), int(told.get("status", 1)), process.pid)
    return process, str(told["name"])


def find_left_alone(place: Place) -> list[str]:
    """Agents whose program runs in the project's tmux without a wrapper."""
    from agent_relay.terminal.agent.attachment import running_agents
    from agent_relay.terminal.agent.launch import WrapFailed, pick_backend, tmux_server
    from agent_relay.terminal.backends.tmux_server import tmux_socket_path

    if not os.path.exists(tmux_socket_path(place.state_dir, place.project_id, os.getuid())):
        return []
    try:
        server = tmux_server(pick_backend("tmux"), place.state_dir, place.project_id)
        names = sorted(os.listdir(os.path.join(place.state_dir, TEAM_FOLDER)), key=str.lower)
    except (WrapFailed, OSError):
        return []
    running = running_agents(server, names)
    wrapped = {wrapper.name for wrapper in find_wrappers(place.state_dir)}
    return [name for name in running if name not in wrapped]


def revive(place: Place, name: str) -> subprocess.Popen[bytes]:
    """Raises Failure where it is not known how it was started, or it does not start."""
    from agent_relay.terminal.agent.launch import Home

    start = load_private(os.path.join(Home(place.state_dir, name).team, START_FILE), WrapperStart)
    if not start.words:
        raise Failure(f"How {name} was started is not known; run its command again: agent-relay -n {name} CMD...")
    try:
        return start_wrapper(start)[0]
    except OSError as error:
        raise Failure(f"{name} was started in {start.cwd}, which cannot be entered: {error.strerror}.") from None


class WrapperKeeper:
    """Starts a wrapper again that was killed while its program runs on, as long as the person looks at the program."""

    def __init__(self, place: Place, server: TmuxServer, name: str, process: subprocess.Popen[bytes]) -> None:
        self._place = place
        self._server = server
        self._name = name
        self.process = process
        threading.Thread(target=self._keep, name="wrapper keeper", daemon=True).start()

    def _keep(self) -> None:
        from agent_relay.terminal.agent.attachment import is_running

        for _ in range(MAX_REVIVALS):
            if self.process.wait() >= 0 or not is_running(self._server, self._name):
                return
            try:
                self.process = revive(self._place, self._name)
            except (Failure, msgspec.MsgspecError, OSError, subprocess.SubprocessError):
                return
