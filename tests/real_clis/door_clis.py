"""The CLIs that have doors: which, what proves a reading, how a person refuses, how the door is taken away, and what one cannot.

A scene of test_doors.py is the same for all of them. What a CLI cannot do stands in its `limits`, with what happens instead: the
scene proves that, and the table says it.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import NamedTuple

from agent_relay.terminal.delivery.door_selection import TYPING
from tests.real_clis.harness import DEADLINE_S, Agent, Lab


class DoorCli(NamedTuple):
    name: str
    door: str  # the one a plain start opens
    evidence: str  # of a reading, as `explain` names it
    proof: str  # the same for people
    refuse: Callable[[Agent], None]  # as a person does it, at the open dialog
    take_away: Callable[[Lab, Agent], None]  # its door, in the middle of a turn
    loss: str  # what that is, and what follows
    next_way: str  # which messages go through then
    limits: Mapping[str, str] = {}  # by scene

    def way_to_idle(self) -> str:
        return TYPING if "idle" in self.limits else self.door


def _press_escape(agent: Agent) -> None:
    agent.press("Escape")


def _reject(agent: Agent) -> None:
    """opencode's third option; it may ask for a reason then."""
    agent.press("Right", "Right", "Enter")
    agent.until(lambda: "Reject permission" in agent.screen or not agent.is_asking, "it is refused")
    if "Reject permission" in agent.screen:
        agent.press("Enter")


def _delete_inbox(lab: Lab, agent: Agent) -> None:
    del agent
    sockets = list((lab.folder / "home-Bob" / "run" / "cc-socks").glob("[0-9]*.sock"))
    assert sockets
    for path in sockets:
        path.unlink()


def _kill_server(lab: Lab, agent: Agent) -> None:
    pattern = rf"^\S+ app-server --listen unix://{lab.daemon.state_dir}/"
    found = subprocess.run(["pgrep", "-f", "--", pattern], capture_output=True, text=True, check=False)
    [pid] = found.stdout.split()
    agent.play()  # the turn that was broken off is not begun again
    os.kill(int(pid), signal.SIGKILL)


def _delete_hook(lab: Lab, agent: Agent) -> None:
    del lab
    (agent.team / "gemini-hook.sh").unlink()


def _kill_program(lab: Lab, agent: Agent) -> None:
    agent.play()
    os.kill(agent.program_pid, signal.SIGKILL)
    agent.process.wait(DEADLINE_S)  # the wrapper ends with it
    lab.wrap_again(agent)


_BY_KEYS = "by keys on its screen: a Gemini CLI hook cannot answer an open dialog"

DOOR_CLIS = {
    cli.name: cli
    for cli in (
        DoorCli(
            "claude", "claude inbox", "transcript", "its id in the session file", _press_escape,
            _delete_inbox, "its socket deleted: the stop hook takes over", "claude stop hook",
        ),
        DoorCli(
            "codex", "codex app-server", "transcript", "its id in the conversation", _press_escape,
            _kill_server, "its server killed: it is restarted, and the door reopens", "codex app-server",
        ),
        DoorCli(
            "gemini", "gemini hooks", "transcript", "its text in the session file", _press_escape,
            _delete_hook, "its hook deleted: typed", TYPING,
            limits={
                "idle": "typed: Gemini CLI accepts nothing from outside while idle",
                "draft": "yes, while it works; idle, the message waits for the draft to go, since it has to be typed",
                "approve": _BY_KEYS,
                "deny": _BY_KEYS,
                "http": _BY_KEYS,
            },
        ),
        DoorCli(
            "opencode", "opencode server", "session", "the model request that contains it", _reject,
            _kill_program, "its server is the program: both killed, and started again", "opencode server",
        ),
    )
}  # fmt: skip
