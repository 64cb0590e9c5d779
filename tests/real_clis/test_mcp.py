"""The relay's tools, called by the models of real CLIs that `agent-relay init` has set up."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest

from agent_relay.sdk.sync import SyncRelayClient
from tests.real_clis.harness import DEADLINE_S, Agent, Lab
from tests.real_clis.model.script import Turn, on_message

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(900)]
every_cli = pytest.mark.parametrize("cli", ["claude", "codex", "gemini", "opencode"])
_LOOK_S = 1.0
MOST_LOOKS = 20


def call(tool: str, **arguments: Any) -> str:
    return f"{tool} {json.dumps(arguments)}"


def receive(client: SyncRelayClient, agent: Agent) -> Any:
    """The next message. What the CLI asks about its tools meanwhile, a person permits."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(TimeoutError):
            return client.receive(timeout=_LOOK_S)
        if "relay" in agent.screen and any(mark in agent.screen for mark in ASKS):
            agent.approve()
    offered = agent.model.asked[-1].tools if agent.model.asked else ()
    raise AssertionError(f"Nothing came from {agent.name}, whose tools are {offered}.\n{agent.describe()}")


def wait_for_tools(lab: Lab, agent: Agent) -> int:
    """Some CLIs begin before their servers are there. Returns how many messages it took to see that they are."""
    sent = 0
    while not any(tool.endswith("relay_send") for tool in agent.model.asked[-1].tools):
        sent += 1
        assert sent < MOST_LOOKS, agent.describe()
        body = f"look again {sent}"
        lab.send(agent.name, body)
        agent.until(lambda said=body: agent.times_told(said), "the model is told")
        agent.until(lambda: agent.is_idle, "it is idle")
    return sent


ASKS = ("Do you want to proceed", "Allow execution", "Permission required", "Allow the agent-relay", "Run tool")


@every_cli
def test_tool_sends(lab: Lab, cli: str) -> None:
    turns = [Turn(on_message("report"), command=call("relay_send", to="Carol", text="from my tool"), then="Reported.")]
    bob = lab.start(cli, "Bob", turns, tools=True)
    with lab.client("Carol") as carol:
        looks = wait_for_tools(lab, bob)
        lab.send("Bob", "report")
        message = receive(carol, bob)
        assert (message.from_, message.body) == ("Bob", "from my tool"), bob.describe()
        bob.until(lambda: bob.model.answered[-1].reply.text == "Reported.", "the model hears that it was sent")
        with pytest.raises(TimeoutError):
            carol.receive(timeout=_LOOK_S)
    lab.wait_until_settled(bob, 1 + looks)


@every_cli
def test_tool_asks(lab: Lab, cli: str) -> None:
    turns = [Turn(on_message("find out"), command=call("relay_ask", to="Carol", text="ready?", seconds=200), then="Now I know.")]
    bob = lab.start(cli, "Bob", turns, tools=True)
    with lab.client("Carol") as carol:
        wait_for_tools(lab, bob)
        lab.send("Bob", "find out")
        question = receive(carol, bob)
        assert (question.from_, question.body) == ("Bob", "ready?"), bob.describe()
        question.reply("as ready as ever")
        bob.until(lambda: bob.model.answered[-1].reply.text == "Now I know.", "the model is given the answer")
