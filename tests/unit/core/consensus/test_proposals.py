"""Proposals in the core: what is durable before anybody is told, deadlines over restarts, departures, and who may what."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core.consensus.proposals import DOCUMENTS, MOST_OPEN_OF_ONE, MOST_RESOLVED
from agent_relay.ports.callers import Caller
from agent_relay.protocol.short_ids import short_id
from tests.support.harness import HarnessClient, RelayHarness

KNOWS = {"consensus": True}


class Scene:
    def __init__(self, *names: str, **limits: Any) -> None:
        self.relay = RelayHarness(**limits)
        self.clients: dict[str, HarnessClient] = {}
        self.connect(*(names or ("Ann", "Bob", "Cyd", "Dan")))

    def connect(self, *names: str) -> None:
        for name in names:
            self.clients[name] = self.relay.connect(name, capabilities=KNOWS)

    def __getitem__(self, name: str) -> HarnessClient:
        return self.clients[name]

    def propose(self, by: str = "Ann", participants: Any = ("Bob", "Cyd", "Dan"), **more: Any) -> dict[str, Any]:
        """The answer; it must be an ACK."""
        self[by].say("PROPOSE", {"title": "Use SQLite", "participants": list(participants), **more})
        return self.answer(by)

    def answer(self, by: str) -> dict[str, Any]:
        (frame,) = self[by].take("ACK", "NACK", "ERROR")
        assert frame["type"] == "ACK", frame
        proposal: dict[str, Any] = frame["payload"]["proposal"]
        return proposal

    def vote(self, by: str, id_: str, vote: str, **more: Any) -> dict[str, Any]:
        self[by].say("VOTE", {"proposalId": id_, "vote": vote, **more})
        return self.answer(by)

    def refused(self, by: str, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        self[by].say(kind, payload)
        (frame,) = self[by].take("ACK", "NACK", "ERROR")
        assert frame["type"] == "NACK", frame
        found: dict[str, Any] = frame["payload"]
        return found

    def withdraw(self, by: str, id_: str, **more: Any) -> dict[str, Any]:
        self[by].say("CONTROL", {"command": "withdraw_proposal", "id": id_, **more})
        return self.answer(by)

    def messages(self, to: str, kind: str) -> list[dict[str, Any]]:
        """Acknowledged, so that none comes again."""
        found = [frame for frame in self[to].take("DELIVER") if frame["payload"].get("kind") == kind]
        for frame in found:
            self[to].ack(frame)
        return found

    def events(self, kind: str) -> list[dict[str, Any]]:
        self.relay.advance(50)
        return self.relay.events.named(kind)

    def find(self, id_: str) -> dict[str, Any]:
        observer = self.relay.connect("looker", mode="observer")
        observer.say("HISTORY", {"view": "proposals", "id": id_})
        (found,) = observer.payload("HISTORY_RESULT")["proposals"]
        assert isinstance(found, dict)
        return found

    def restart(self, later_ms: int = 0, *names: str) -> None:
        self.relay.restart(wall_ms_later=later_ms)
        self.connect(*(names or self.clients))
        self.relay.advance(1_100)


@pytest.fixture
def scene() -> Scene:
    return Scene()


# --- from PROPOSE to the outcome ------------------------------------------------------------------------------------------


def test_participants_are_asked_and_everybody_hears_the_outcome(scene: Scene) -> None:
    proposal = scene.propose(description="It is there already.", timeoutMs=60_000)
    assert proposal["participants"] == ["Bob", "Cyd", "Dan"]
    assert (proposal["proposedBy"], proposal["expiresAt"] - proposal["proposedAt"]) == ("Ann", 60_000)
    (asked,) = scene.messages("Bob", "proposal")
    body = asked["payload"]["body"]
    assert asked["from"] == "Ann"
    assert "Use SQLite" in body
    assert "It is there already." in body
    assert f"->relay:vote {short_id(proposal['proposalId'])} approve|reject|abstain" in body
    assert asked["payload"]["data"]["proposalId"] == proposal["proposalId"]
    assert scene.messages("Ann", "proposal") == []
    scene.vote("Bob", proposal["proposalId"], "approve", reason="Fast enough.")
    done = scene.vote("Cyd", short_id(proposal["proposalId"]), "Approve")  # two of three: Dan cannot change it
    assert (done["outcome"], done["votes"]["Bob"]["reason"]) == ("approved", "Fast enough.")
    for name in ("Ann", "Bob", "Cyd", "Dan"):
        (told,) = scene.messages(name, "consensus")
        assert told["from"] == "relay"
        assert "was approved" in told["payload"]["body"]
        assert "Bob: approve (Fast enough.)" in told["payload"]["body"]
        said = scene[name].payload("CONSENSUS")
        assert (said["outcome"], said["votes"]) == ("approved", {"Bob": "approve", "Cyd": "approve"})
    (proposed,) = scene.events("consensus.proposed")
    assert (proposed["proposedBy"], proposed["consensusType"], proposed["participants"]) == (
        "Ann",
        "majority",
        ["Bob", "Cyd", "Dan"],
    )
    assert [(event["voter"], event["vote"], event.get("reason")) for event in scene.events("consensus.vote")] == [
        ("Bob", "approve", "Fast enough."), ("Cyd", "approve", None),
    ]  # fmt: skip
    (resolved,) = scene.events("consensus.resolved")
    assert (resolved["outcome"], resolved["votes"]) == ("approved", {"Bob": "approve", "Cyd": "approve"})
    assert resolved["reasons"] == {"Bob": "Fast enough."}


def test_a_vote_may_be_changed_until_it_is_decided(scene: Scene) -> None:
    id_ = scene.propose()["proposalId"]
    scene.vote("Bob", id_, "reject")
    assert scene.vote("Bob", id_, "approve")["outcome"] is None
    assert scene.vote("Cyd", id_, "reject")["outcome"] is None
    assert scene.vote("Dan", id_, "approve")["outcome"] == "approved"
    assert scene.vote("Dan", id_, "approve")["outcome"] == "approved"  # said again: a client that lost the answer
    over = scene.refused("Bob", "VOTE", {"proposalId": id_, "vote": "reject"})
    assert (over["code"], over["details"]["reason"]) == ("REJECTED", "resolved")
    assert len(scene.events("consensus.resolved")) == 1


def test_a_channel_stands_for_its_other_members_of_this_moment(scene: Scene) -> None:
    for name in ("Ann", "Bob", "Cyd"):
        scene[name].say("CHANNEL_JOIN", {"channel": "#dev"})
        scene[name].take("ACK")
    proposal = scene.propose(participants=["#dev", "bob"])
    assert proposal["participants"] == ["Bob", "Cyd"]
    scene["Dan"].say("CHANNEL_JOIN", {"channel": "#dev"})
    scene["Dan"].take("ACK")
    refusal = scene.refused("Dan", "VOTE", {"proposalId": proposal["proposalId"], "vote": "approve"})
    assert (refusal["code"], refusal["details"]["reason"]) == ("PERMISSION_DENIED", "not_a_participant")
    assert scene.propose(participants=["Ann", "Bob"])["participants"] == ["Ann", "Bob"]  # named, the proposer votes too


# --- durable first -------------------------------------------------------------------------------------------------------


def test_nobody_is_told_before_it_is_durable(scene: Scene) -> None:
    scene.relay.store.hold()
    scene["Ann"].say("PROPOSE", {"title": "x", "participants": ["Bob"]})
    assert scene["Ann"].take("ACK", "NACK") == []
    assert scene["Bob"].take("DELIVER") == []
    scene.relay.store.release()
    scene.relay.tick()
    id_ = scene.answer("Ann")["proposalId"]
    assert len(scene.messages("Bob", "proposal")) == 1
    scene.relay.store.hold()
    scene["Bob"].say("VOTE", {"proposalId": id_, "vote": "approve"})
    assert scene["Bob"].take("ACK", "CONSENSUS") == []
    assert scene.events("consensus.resolved") == []
    scene.relay.store.release()
    scene.relay.tick()
    assert scene.answer("Bob")["outcome"] == "approved"


def test_a_store_that_fails_delays_the_answer_and_loses_nothing(scene: Scene) -> None:
    id_ = scene.propose()["proposalId"]
    scene.relay.store.fail_next()
    scene["Bob"].say("VOTE", {"proposalId": id_, "vote": "approve"})
    scene.relay.advance(500)
    assert list(scene.answer("Bob")["votes"]) == ["Bob"]


def test_a_propose_that_is_said_again_is_the_same_proposal(scene: Scene) -> None:
    asked = {"title": "x", "participants": ["Bob"]}
    scene["Ann"].say("PROPOSE", asked, id="p-1")
    first = scene.answer("Ann")["proposalId"]
    scene["Ann"].say("PROPOSE", asked, id="p-1")
    assert scene.answer("Ann")["proposalId"] == first
    scene.restart()
    scene["Ann"].say("PROPOSE", asked, id="p-1")
    assert scene.answer("Ann")["proposalId"] == first
    scene["Cyd"].say("PROPOSE", asked, id="p-1")  # somebody else's id
    assert scene.answer("Cyd")["proposalId"] != first


# --- restarts and the deadline ---------------------------------------------------------------------------------------------


def test_it_survives_a_crash_with_its_votes_and_its_deadline(scene: Scene) -> None:
    id_ = scene.propose(timeoutMs=60_000)["proposalId"]
    scene.vote("Bob", id_, "approve", reason="yes")
    scene.messages("Bob", "proposal")
    scene.restart(20_000)
    assert len(scene.messages("Cyd", "proposal")) == 1  # it had not acknowledged it
    found = scene.find(id_)
    assert (found["votes"]["Bob"]["reason"], found["outcome"]) == ("yes", None)
    scene.relay.advance(35_000)
    assert scene.find(id_)["outcome"] is None
    scene.relay.advance(5_000)
    assert scene.find(id_)["outcome"] == "timeout"
    (told,) = scene.messages("Ann", "consensus")
    assert "ended without a decision" in told["payload"]["body"]
    assert "1 approve, 0 reject, 2 have not voted" in told["payload"]["body"]


def test_a_daemon_that_was_down_past_the_deadline_ends_it_at_once(scene: Scene) -> None:
    id_ = scene.propose(timeoutMs=60_000)["proposalId"]
    scene.restart(3_600_000)
    assert scene.find(id_)["outcome"] == "timeout"
    assert len(scene.messages("Ann", "consensus")) == 1
    scene.restart()
    assert scene.messages("Ann", "consensus") == []  # told once
    assert scene.find(id_)["outcome"] == "timeout"


def test_a_wall_clock_that_jumps_ends_nothing(scene: Scene) -> None:
    id_ = scene.propose(timeoutMs=60_000)["proposalId"]
    scene.relay.wall_ms += 3_600_000
    scene.relay.advance(30_000)
    assert scene.find(id_)["outcome"] is None


def test_an_outcome_whose_notice_was_not_stored_is_told_by_the_next_daemon(scene: Scene) -> None:
    id_ = scene.propose(participants=["Bob"])["proposalId"]
    scene.relay.store.hold()
    scene["Bob"].say("VOTE", {"proposalId": id_, "vote": "reject"})
    assert scene.relay.store.step_held()  # the document; the notices behind it are lost
    scene.restart()
    assert scene.find(id_)["outcome"] == "rejected"
    assert len(scene.messages("Ann", "consensus")) == 1
    scene.restart()
    assert scene.messages("Ann", "consensus") == []


def test_a_document_that_cannot_be_read_is_passed_over(scene: Scene) -> None:
    id_ = scene.propose()["proposalId"]
    scene.relay.turn(lambda: scene.relay.relay.keep_document(DOCUMENTS + "prop_0", b"{}", lambda: None))
    scene.restart()
    assert scene.find(id_)["outcome"] is None
    assert scene.relay.log.named("proposal_unreadable")


# --- departures -----------------------------------------------------------------------------------------------------------


def order(scene: Scene, command: str, agent: str) -> None:
    scene[agent].drop()
    owner = scene.relay.connect("Watcher", mode="observer")
    owner.say("CONTROL", {"command": command, "agent": agent})
    scene.relay.advance(1_200)
    assert owner.take("ERROR") == []


def test_whoever_is_removed_without_a_vote_is_not_waited_for(scene: Scene) -> None:
    id_ = scene.propose(consensusType="unanimous")["proposalId"]
    scene.vote("Bob", id_, "approve")
    scene.vote("Cyd", id_, "approve")
    order(scene, "remove", "Dan")
    found = scene.find(id_)
    assert (found["outcome"], found["departed"]) == ("approved", ["Dan"])


def test_a_vote_of_somebody_who_was_removed_since_stands(scene: Scene) -> None:
    id_ = scene.propose()["proposalId"]
    scene.vote("Bob", id_, "approve")
    order(scene, "remove", "Bob")
    assert scene.find(id_)["outcome"] is None
    assert scene.vote("Cyd", id_, "approve")["outcome"] == "approved"


def test_when_all_have_departed_it_is_rejected(scene: Scene) -> None:
    id_ = scene.propose(participants=["Bob", "Cyd"])["proposalId"]
    order(scene, "remove", "Bob")
    order(scene, "remove", "Cyd")
    assert scene.find(id_)["outcome"] == "rejected"


def test_nothing_is_left_of_an_agent_that_is_forgotten(scene: Scene) -> None:
    own = scene.propose("Dan", ["Bob"])["proposalId"]
    id_ = scene.propose(consensusType="weighted", weights={"Dan": 5, "Bob": 2})["proposalId"]
    scene.vote("Dan", id_, "abstain", reason="secret")
    order(scene, "forget", "Dan")
    found = scene.find(id_)
    assert "Dan" not in str(found)
    assert found["participants"] == ["Bob", "Cyd"]
    assert scene["Bob"].payload("CONSENSUS")["proposalId"] == own
    scene.restart(0, "Ann", "Bob", "Cyd")
    assert [name for name in scene.relay.store.open().documents if own in name] == []
    assert not any(b"Dan" in content for content in scene.relay.store.open().documents.values())


# --- who may what -----------------------------------------------------------------------------------------------------------


def test_only_its_proposer_withdraws_it(scene: Scene) -> None:
    id_ = scene.propose()["proposalId"]
    refusal = scene.refused("Bob", "CONTROL", {"command": "withdraw_proposal", "id": id_})
    assert (refusal["code"], refusal["details"]["reason"]) == ("PERMISSION_DENIED", "not_the_proposer")
    done = scene.withdraw("Ann", id_, text="no longer needed")
    assert (done["outcome"], done["resolution"]) == ("withdrawn", "Ann withdrew it: no longer needed")
    assert scene.withdraw("Ann", id_)["outcome"] == "withdrawn"  # said again
    assert scene.refused("Bob", "VOTE", {"proposalId": id_, "vote": "approve"})["details"]["outcome"] == "withdrawn"
    assert scene.events("consensus.resolved")[0]["outcome"] == "withdrawn"


def test_the_owner_withdraws_any_but_not_from_an_agents_terminal() -> None:
    scene = Scene(owner="Anna")
    id_ = scene.propose()["proposalId"]
    person = scene.relay.connect("Watcher", mode="observer")
    person.connection.process = Caller("Bob")
    person.say("CONTROL", {"command": "withdraw_proposal", "id": id_})
    assert person.payload("NACK")["details"]["reason"] == "inside_agent"
    person.connection.process = Caller()
    person.say("CONTROL", {"command": "withdraw_proposal", "id": id_})
    assert person.payload("ACK")["proposal"]["resolution"] == "Anna withdrew it."


def test_a_person_votes_under_any_of_their_names() -> None:
    scene = Scene("Ann", "Bob", "Anna", "Anna-2", owner="Anna")
    id_ = scene.propose(participants=["Anna", "Bob"])["proposalId"]
    assert list(scene.vote("Anna-2", id_, "approve")["votes"]) == ["Anna"]


def test_observers_and_other_users_have_no_vote() -> None:
    scene = Scene(allowed_uids=frozenset({2_000}))
    guest = scene.relay.connect("Guest", uid=2_000)
    assert scene.refused("Ann", "PROPOSE", {"title": "x", "participants": ["Guest"]})["code"] == "INVALID_TARGET"
    guest.say("PROPOSE", {"title": "x", "participants": ["Bob"]})
    assert guest.payload("ERROR")["code"] == "PERMISSION_DENIED"
    observer = scene.relay.connect("looker", mode="observer")
    observer.say("VOTE", {"proposalId": "prop_x", "vote": "approve"})
    assert observer.payload("NACK")["code"] == "PERMISSION_DENIED"


def test_a_daemon_that_stops_takes_no_more(scene: Scene) -> None:
    id_ = scene.propose()["proposalId"]
    scene.relay.turn(scene.relay.relay.begin_shutdown)
    assert scene.refused("Bob", "VOTE", {"proposalId": id_, "vote": "approve"})["code"] == "SERVICE_UNAVAILABLE"


# --- limits -----------------------------------------------------------------------------------------------------------------


def test_there_is_an_end_to_open_proposals_and_to_what_is_kept(scene: Scene) -> None:
    ids = [scene.propose(participants=["Bob"])["proposalId"] for _ in range(MOST_OPEN_OF_ONE)]
    scene.messages("Bob", "proposal")
    refusal = scene.refused("Ann", "PROPOSE", {"title": "x", "participants": ["Bob"]})
    assert (refusal["code"], refusal["details"]["reason"]) == ("AGENT_BUSY", "too_many_proposals")
    for id_ in ids:
        scene.vote("Bob", id_, "approve")
    for _ in range(MOST_RESOLVED):
        scene.vote("Bob", scene.propose(participants=["Bob"])["proposalId"], "reject")
        for name in ("Ann", "Bob"):
            for frame in scene[name].take("DELIVER"):
                scene[name].ack(frame)
    kept = [name for name in scene.relay.store.open().documents if name.startswith(DOCUMENTS)]
    assert MOST_RESOLVED <= len(kept) <= MOST_RESOLVED + 1
    assert not any(id_ in name for id_ in ids[:-1] for name in kept)


def test_a_full_queue_refuses_a_proposal_and_nothing_is_kept() -> None:
    scene = Scene(queue_capacity=2)
    scene["Bob"].drop()
    for _ in range(2):
        scene["Ann"].send("Bob")
    scene["Ann"].take()
    assert scene.refused("Ann", "PROPOSE", {"title": "x", "participants": ["Bob"]})["code"] == "QUEUE_FULL"
    assert list(scene.relay.store.open().documents) == []


def test_the_rate_of_a_connection_holds_for_votes_too() -> None:
    scene = Scene(rate_limit=1)
    id_ = scene.propose()["proposalId"]
    scene.vote("Bob", id_, "approve")
    assert scene.refused("Bob", "VOTE", {"proposalId": id_, "vote": "reject"})["code"] == "RATE_LIMITED"


def test_lists_come_in_pages_the_newest_first(scene: Scene) -> None:
    ids = [scene.propose()["proposalId"] for _ in range(3)]
    scene.withdraw("Ann", ids[1])
    observer = scene.relay.connect("looker", mode="observer")

    def look(**asked: Any) -> dict[str, Any]:
        observer.say("HISTORY", {"view": "proposals", **asked})
        return observer.payload("HISTORY_RESULT")

    assert [found["proposalId"] for found in look(pending=True)["proposals"]] == [ids[2], ids[0]]
    page = look(limit=2)
    assert [found["proposalId"] for found in page["proposals"]] == [ids[2], ids[1]]
    rest = look(limit=2, cursor=page["next_cursor"])
    assert ([found["proposalId"] for found in rest["proposals"]], rest["next_cursor"]) == ([ids[0]], None)
    observer.say("HISTORY", {"view": "proposals", "id": "deadbeef"})
    assert observer.payload("ERROR")["code"] == "ROUTE_NOT_FOUND"
