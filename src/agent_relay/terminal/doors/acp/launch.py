"""The start of an ACP agent: the console is the program in the terminal, and runs the agent below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_relay.interpreter import run_module
from agent_relay.terminal.doors.acp.session import AcpDoor
from agent_relay.terminal.doors.acp.wire import socket_path
from agent_relay.terminal.doors.door import Door, DoorListener
from agent_relay.terminal.doors.launch import AgentPlace, PreparedStart, Program
from agent_relay.terminal.output.observations import Observation

CONSOLE = "agent_relay.terminal.acp"


def console_words(folder: str, socket: str, title: str, agent: Sequence[str]) -> list[str]:
    """The words that run `agent` below a console, whose own files are in the `folder`."""
    return run_module(CONSOLE, f"--folder={folder}", f"--socket={socket}", f"--title={title}", "--", *agent)


class AcpLauncher:
    """The program is a console already (`console_words`)."""

    def prepare(self, program: Program, place: AgentPlace, introduction: str) -> PreparedStart:
        del place
        return PreparedStart(program, {"introduction": introduction}, is_introduced=True)

    def doors(
        self, program: Program, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation]
    ) -> list[Door]:
        del program
        return [AcpDoor(socket_path(place.folder, place.project_id, place.agent), facts, listener)]
