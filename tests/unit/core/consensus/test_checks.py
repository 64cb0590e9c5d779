"""PROPOSE and VOTE that are wrong: each is refused by the name of its field, and nothing is kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import HarnessClient, RelayHarness

GOOD: dict[str, Any] = {"title": "T", "participants": ["Bob", "Cyd"]}


@pytest.fixture
def ann() -> HarnessClient:
    relay = RelayHarness()
    client = relay.connect("Ann")
    relay.connect("Bob")
    relay.connect("Cyd")
    return client


def refusal(client: HarnessClient, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    client.say(kind, payload)
    (frame,) = client.take("ACK", "NACK", "ERROR")
    assert frame["type"] in {"NACK", "ERROR"}, frame
    found: dict[str, Any] = frame["payload"]
    return found


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ({"title": "  "}, "title", "is empty"),
        ({"title": "x" * 201}, "title", "at most 200"),
        ({"description": "x" * 20_001}, "description", "at most 20000"),
        ({"consensusType": "plurality"}, "consensusType", "majority, unanimous, quorum, weighted"),
        ({"timeoutMs": 31 * 86_400_000}, "timeoutMs", "30 days"),
        ({"participants": []}, "participants", "name agents or a channel"),
        ({"consensusType": "quorum"}, "quorum", "is missing"),
        ({"consensusType": "quorum", "quorum": 3}, "quorum", "count 2"),
        ({"consensusType": "quorum", "quorum": "0%"}, "quorum", "1% to 100%"),
        ({"consensusType": "quorum", "quorum": "most"}, "quorum", "'most'"),
        ({"quorum": 1}, "quorum", "this one is majority"),
        ({"weights": {"Bob": 2}}, "weights", "this one is majority"),
        ({"consensusType": "weighted", "weights": {"Eve": 2}}, "weights", "not a participant"),
        ({"consensusType": "weighted", "weights": {"Bob": 1_001}}, "weights", "at most 1000"),
    ],
)
def test_what_is_wrong_with_a_proposal_is_named(ann: HarnessClient, wrong: dict[str, Any], field: str, words: str) -> None:
    found = refusal(ann, "PROPOSE", GOOD | wrong)
    assert (found["code"], found["details"]["field"]) == ("INVALID_FORMAT", f"payload.{field}")
    assert words in found["message"]


@pytest.mark.parametrize(
    ("participants", "code"),
    [
        (["Eve"], "AGENT_NOT_FOUND"),
        (["#none"], "CHANNEL_NOT_FOUND"),
        (["not a name"], "INVALID_TARGET"),
        (["*"], "INVALID_TARGET"),
    ],
)  # fmt: skip
def test_participants_must_be_there(ann: HarnessClient, participants: list[str], code: str) -> None:
    assert refusal(ann, "PROPOSE", GOOD | {"participants": participants})["code"] == code


@pytest.mark.parametrize(
    "wrong", [{"title": 5}, {"timeoutMs": 0}, {"weights": {"Bob": 0}}, {"quorum": 1.5}, {"participants": "Bob"}]
)
def test_fields_of_a_wrong_type_are_refused_as_in_any_frame(ann: HarnessClient, wrong: dict[str, Any]) -> None:
    assert refusal(ann, "PROPOSE", GOOD | wrong)["code"] == "INVALID_FORMAT"


def test_an_empty_channel_is_nobody(ann: HarnessClient) -> None:
    ann.say("CHANNEL_JOIN", {"channel": "#mine"})
    ann.take("ACK")
    assert "its other members" in refusal(ann, "PROPOSE", GOOD | {"participants": ["#mine"]})["message"]


@pytest.mark.parametrize(
    ("wrong", "code", "words"),
    [
        ({"vote": "maybe"}, "INVALID_FORMAT", "approve, reject, abstain"),
        ({"reason": "x" * 1_001}, "INVALID_FORMAT", "at most 1000"),
        ({"proposalId": "prop_none"}, "ROUTE_NOT_FOUND", "agent-relay proposals"),
        ({"proposalId": "3f9c2a11"}, "ROUTE_NOT_FOUND", "3f9c2a11"),
    ],
)
def test_what_is_wrong_with_a_vote_is_named(ann: HarnessClient, wrong: dict[str, Any], code: str, words: str) -> None:
    ann.say("PROPOSE", GOOD | {"participants": ["Ann", "Bob"]})
    id_ = ann.payload("ACK")["proposal"]["proposalId"]
    found = refusal(ann, "VOTE", {"proposalId": id_, "vote": "approve"} | wrong)
    assert found["code"] == code
    assert words in found["message"]


def test_names_are_spelled_as_their_agents_do_and_count_once(ann: HarnessClient) -> None:
    ann.say(
        "PROPOSE",
        GOOD | {"title": " a\n b ", "participants": ["bob", "BOB", "cyd"], "consensusType": "weighted", "weights": {"bOb": 3}},
    )
    proposal = ann.payload("ACK")["proposal"]
    assert (proposal["title"], proposal["participants"], proposal["weights"]) == ("a b", ["Bob", "Cyd"], {"Bob": 3})
