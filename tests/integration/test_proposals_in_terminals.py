"""Agents in real terminals that are asked to vote: they read the proposal, write `->relay:vote`, and hear the outcome; and the
commands, inside an agent's shell and outside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_relay.sdk.sync import SyncRelayClient
from tests.integration.stage import DEADLINE_S, Stage, until

pytestmark = pytest.mark.terminals
ASKED = "->relay:vote ([0-9a-f]{8}) approve"


def votes(choice: str, reason: str) -> list[dict[str, Any]]:
    """As soon as it reads of a proposal, it votes; of the outcome it reports."""
    return [
        {"when": ASKED, "busy_ms": 20, "say": [rf"->relay:vote \1 {choice} {reason}"]},
        {"when": "was (approved|rejected): Use SQLite", "busy_ms": 20, "say": [r"->relay:Lead I heard \1"]},
        {"when": "does not count", "busy_ms": 20, "say": ["->relay:Lead it was refused"]},
    ]


def test_agents_in_terminals_vote_and_hear_the_outcome(stage: Stage) -> None:
    with SyncRelayClient("Lead", socket=stage.daemon.socket) as lead:
        stage.start("Bob", "pty", turns=votes("approve", "No new service."))
        stage.start("Carol", "tmux", turns=votes("approve", "Fast enough."))
        proposal = lead.propose("Use SQLite", ["Bob", "Carol"], rule="unanimous", timeout=600)
        assert proposal.outcome(DEADLINE_S * 2) == "approved"
        assert {name: cast.reason for name, cast in proposal.info.votes.items()} == {
            "Bob": "No new service.", "Carol": "Fast enough.",
        }  # fmt: skip
        assert {cast.heard for cast in proposal.info.votes.values()} == {"screen"}
        heard: dict[str, str] = {}
        while len(heard) < 2:
            message = lead.receive(DEADLINE_S)
            message.ack()
            if message.kind == "message":
                heard[message.from_] = message.body
        assert heard == {"Bob": "I heard approved", "Carol": "I heard approved"}


def test_a_vote_that_does_not_count_is_told_to_the_agent(stage: Stage) -> None:
    with SyncRelayClient("Lead", socket=stage.daemon.socket) as lead:
        stage.start("Bob", "pty", turns=votes("maybe", "I cannot decide."))
        proposal = lead.propose("Use SQLite", ["Bob"], timeout=600)
        assert until(lambda: lead.receive(DEADLINE_S).body == "it was refused")
        assert lead.proposal(proposal.id).info.votes == {}


def test_the_commands_inside_an_agents_shell_and_outside(stage: Stage) -> None:
    with SyncRelayClient("Lead", socket=stage.daemon.socket) as lead:
        bob = stage.start("Bob", "pty", turns=[])
        until(lambda: bob.team.joinpath("run.json").exists(), "the wrapper is there")
        until(lambda: any(agent.name == "Bob" and agent.connected for agent in lead.agents().agents), "Bob is there")
        made = stage.command("propose", "Take a break", "--to", "Lead", "--deadline", "10m", "--json", **bob.shell)
        assert (made.returncode, made.stderr) == (0, "")
        proposal = json.loads(made.stdout)
        assert (proposal["proposedBy"], proposal["participants"]) == ("Bob", ["Lead"])
        listed = stage.command("proposals")
        assert proposal["shortId"] in listed.stdout
        asked = lead.propose("Use SQLite", ["Bob", "Lead"])
        voted = stage.command("vote", asked.id, "approve", "--reason", "Fine.", "--json", **bob.shell)
        assert (voted.returncode, voted.stderr) == (0, "")
        cast = json.loads(voted.stdout)["votes"]["Bob"]
        assert (cast["vote"], cast["reason"], "heard" in cast) == ("approve", "Fine.", False)
        refused = stage.command("withdraw", asked.id, **bob.shell)
        assert (refused.returncode, "Only Lead" in refused.stderr) == (1, True)
        gone = stage.command("withdraw", proposal["shortId"], "--reason", "Later.", **bob.shell)
        assert (gone.returncode, "Bob withdrew it: Later." in gone.stdout) == (0, True)
        strange = stage.command("vote", asked.id, "approve")  # a person who was not asked
        assert (strange.returncode, "is not a participant" in strange.stderr) == (1, True)
        wrong = stage.command("propose", "x", "--to", "Lead", "--weight", "Lead=0")
        assert (wrong.returncode, "Bob=3" in wrong.stderr) == (2, True)
        assert stage.command("proposals", "--all", "--json").returncode == 0
