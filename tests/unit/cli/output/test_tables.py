"""Tables of agents: nothing that a person has to know is left out for want of room."""

from __future__ import annotations

import io
import re

from agent_relay.cli.output.screen import Screen
from agent_relay.cli.output.tables import show_agents
from agent_relay.sdk.views import AgentInfo

NOTE = "codex app-server: Codex 0.150.1, but 0.166.0 was tested: on trial until a first message is read through it by the agent"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_notes_stand_whole_on_lines_of_their_own_however_narrow_the_terminal() -> None:
    stream = Terminal()
    screen = Screen(stream)
    screen.console.width = 40
    show_agents(screen, [AgentInfo("Bob", connected=True, state="idle", door="typing", door_note=NOTE), AgentInfo("Carol")])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()
    assert f"Bob  {NOTE}" in lines
    assert len([line for line in lines if line.startswith("Carol")]) == 1
