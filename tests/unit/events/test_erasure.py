"""An event about an agent that is forgotten goes; what is others' stays, and so do the numbers of costs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_relay.events.codec import decode_event, encode_event
from agent_relay.events.erasure import erase_from, stand_in
from agent_relay.events.types import (
    ConsensusProposed,
    ConsensusResolved,
    ConsensusVote,
    LoopDetected,
    MessageDelivered,
    MessageExchanged,
    TokensUsed,
)
from tests.unit.events.examples import EXAMPLES


def exchanged(sender: str, to: str) -> bytes:
    event = MessageExchanged(session_id="", message_id="msg_1", from_=sender, to=to, body="the secret of Bob", kind="message")
    return encode_event(event)


@pytest.mark.parametrize(("sender", "to"), [("Bob", "Alice"), ("bob", "*"), ("Alice", "BOB")])
def test_what_it_said_or_alone_was_told_goes(sender: str, to: str) -> None:
    assert erase_from(exchanged(sender, to), "Bob") is None


def test_what_several_were_told_stays_theirs() -> None:
    left = erase_from(exchanged("Alice", "Carol, bob,Dave"), "Bob")
    assert left is not None
    assert json.loads(left)["to"] == "Carol,Dave"
    decode_event(left)


def test_of_a_decision_of_others_nothing_names_it() -> None:
    line = encode_event(
        ConsensusResolved(
            session_id="",
            proposal_id="p",
            outcome="approved",
            votes={"Bob": "reject", "Carol": "approve"},
            reasons={"bob": "secret"},
        )
    )
    left = erase_from(line, "Bob")
    assert left is not None
    assert "bob" not in left.decode().lower()
    assert json.loads(left)["votes"] == {"Carol": "approve"}
    decode_event(left)
    proposed = encode_event(
        ConsensusProposed(
            session_id="", proposal_id="p", title="t", proposed_by="Alice", participants=("Carol", "BOB"),
            consensus_type="weighted", weights={"Bob": 2, "Carol": 1},
        )
    )  # fmt: skip
    left = erase_from(proposed, "Bob")
    assert left is not None
    assert (json.loads(left)["participants"], json.loads(left)["weights"]) == (["Carol"], {"Carol": 1})
    assert erase_from(proposed, "Alice") is None
    voted = ConsensusVote(session_id="", proposal_id="p", voter="Bob", vote="reject")
    assert erase_from(encode_event(voted), "bob") is None


@pytest.mark.parametrize("line", [exchanged("Alice", "Carol"), exchanged("Alice", "Bobby"), b"half a li", b'{"bob": 1}'])
def test_what_is_not_about_it_is_not_touched(line: bytes) -> None:
    assert erase_from(line, "Bob") is line


@pytest.mark.parametrize(
    "event",
    [
        MessageDelivered(message_id="msg_1", to="Bob", attempt=1, latency_ms=1),
        LoopDetected(agents=("Alice", "Bob"), hops=3, stage="held", text="Alice and Bob"),
    ],
)
def test_what_happened_with_it_goes(event: Any) -> None:
    assert erase_from(encode_event(event), "Bob") is None


@pytest.mark.parametrize("kind", sorted(set(EXAMPLES) - {"tokens.used"}))
def test_whatever_it_did_goes(kind: str) -> None:
    fields = json.loads(json.dumps(EXAMPLES[kind])) if isinstance(EXAMPLES[kind], dict) else {}
    line = json.dumps({"type": kind, "_seq": 4, "_ts": 5, "_agentName": "Bob"} | fields).encode()
    assert erase_from(line, "bob") is None


def test_of_costs_the_numbers_stay_and_are_nobodys() -> None:
    used = TokensUsed(seq=3, ts=4, by_agent="Bob", session_id="s", agent_name="Bob", model="m", input_tokens=5, output_tokens=6)
    left = erase_from(encode_event(used), "bob")
    assert left is not None
    assert b"Bob" not in left
    event = decode_event(left)
    assert isinstance(event, TokensUsed)
    assert (event.seq, event.agent_name, event.by_agent, event.input_tokens) == (3, "forgotten", "forgotten", 5)


def test_a_stand_in_keeps_number_and_time() -> None:
    event = decode_event(stand_in(7, 8))
    assert (event.seq, event.ts) == (7, 8)
