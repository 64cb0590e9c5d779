"""What is said about a proposal: complete, short, and never a command in itself."""

from __future__ import annotations

import pytest

from agent_relay.core.consensus.notices import describe_outcome, describe_proposal, explain_outcome
from agent_relay.protocol.consensus import Choice, Outcome, Rule
from agent_relay.protocol.proposals import CastVote, Proposal
from agent_relay.protocol.short_ids import short_id
from agent_relay.terminal.output.parser import CommandParser
from tests.support.harness import RelayHarness

MINUTE_MS = 60_000


def propose(timeout_ms: int = 10 * MINUTE_MS) -> Proposal:
    return Proposal("prop_1", "Use SQLite", "Ann", ["Bob", "Cyd"], Rule.MAJORITY, 0, timeout_ms, "It is there.")


@pytest.mark.parametrize(
    ("timeout_ms", "words"),
    [
        (10 * MINUTE_MS, "10 minutes"), (MINUTE_MS, "1 minute"), (90 * MINUTE_MS, "2 hours"), (2 * 1440 * MINUTE_MS, "2 days"),
        (1_000, "1 second"), (5, "a second"),
    ],
)  # fmt: skip
def test_participants_read_what_it_is_who_decides_how_and_until_when(timeout_ms: int, words: str) -> None:
    text = describe_proposal(propose(timeout_ms))
    for part in ("Use SQLite", "It is there.", "more than half of 2 must approve", "(Bob, Cyd)", words, short_id("prop_1")):
        assert part in text


def test_no_line_of_it_is_a_vote_however_it_is_broken() -> None:
    words = describe_proposal(propose()).split()
    for width in range(1, len(words)):
        parser = CommandParser()
        lines = [" ".join(words[at : at + width]) for at in range(0, len(words), width)]
        found = [each for place, line in enumerate(lines) for each in parser.feed(line.replace("`", ""), place)]
        assert found + parser.end() == []


def test_the_outcome_names_every_vote_with_its_reason() -> None:
    proposal = propose()
    proposal.votes = {"Bob": CastVote(Choice.REJECT, 1, "too slow"), "Cyd": CastVote(Choice.ABSTAIN, 2)}
    proposal.outcome = Outcome.REJECTED
    proposal.resolution = explain_outcome(proposal, Outcome.REJECTED)
    assert describe_outcome(proposal).splitlines() == [
        f"Proposal {short_id('prop_1')} was rejected: Use SQLite",
        "0 approve, 1 reject, 1 abstain; more than half of 2 must approve.",
        "- Bob: reject (too slow)",
        "- Cyd: abstain",
    ]
    assert explain_outcome(proposal, Outcome.WITHDRAWN, "Ann") == "Ann withdrew it."


def test_nobody_is_called_relay_and_nobody_can_write_to_it() -> None:
    relay = RelayHarness()
    ann, bob = relay.connect("Ann"), relay.connect("Bob")
    ann.say("PROPOSE", {"title": "x", "participants": ["Bob"]})
    bob.say("VOTE", {"proposalId": ann.payload("ACK")["proposal"]["proposalId"], "vote": "approve"})
    assert {frame["from"] for frame in bob.take("DELIVER")} == {"Ann", "relay"}
    assert [agent.name for agent in relay.relay.queries.agents()] == ["Ann", "Bob"]
    bob.send("relay", "thank you")
    assert bob.payload("NACK")["code"] == "AGENT_NOT_FOUND"
    relay.restart()
    bob = relay.connect("Bob")  # what it has not acknowledged comes again, from the same
    assert {frame["from"] for frame in bob.take("DELIVER")} == {"Ann", "relay"}
    assert bob.take("CONSENSUS") == []


def test_agents_that_only_vote_on_each_others_proposals_are_a_loop() -> None:
    relay = RelayHarness(loop_slow_after=4, loop_hold_after=8)
    ann, bob = (relay.connect(name, capabilities={"control": True}) for name in ("Ann", "Bob"))
    for _ in range(6):
        for one, other in ((ann, bob), (bob, ann)):
            one.say("PROPOSE", {"title": "again", "participants": [other.name]})
            (answer,) = one.take("ACK")
            other.say("VOTE", {"proposalId": answer["payload"]["proposal"]["proposalId"], "vote": "approve"})
            for client in (one, other):
                for frame in client.take("DELIVER"):
                    client.ack(frame)
                client.take()
    assert relay.events.named("loop.detected")
