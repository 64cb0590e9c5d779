"""Proposals under seeded faults: crashes, restarts with time in between, a store that fails, is slow, or loses its answer, agents
that come, go and are removed.

Whatever happens: a vote that was acknowledged is in the outcome, an outcome that was told once never changes, it is the one that
the rules say of the votes, nobody gets a notice twice, and everything ends by its deadline. A failure names its seed.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from agent_relay.protocol.consensus import Choice, Rule
from agent_relay.protocol.proposals import Proposal
from tests.support.harness import HarnessClient, RelayHarness

SEEDS = range(60)
STEPS = 80
NAMES = ("Ann", "Bob", "Cyd", "Dan", "Eve")
LONGEST_MS = 60_000


class World:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.relay = RelayHarness(message_ttl_ms=86_400_000)
        self.clients: dict[str, HarnessClient] = {}
        self.gone: set[str] = set()
        self.asked: dict[str, tuple[str, dict[str, Any]]] = {}  # PROPOSEs by their id: by whom, and what
        self.proposals: dict[str, dict[str, Any]] = {}  # acknowledged, by id, as they were last told
        self.votes: dict[tuple[str, str], str] = {}  # acknowledged ones, by proposal and voter
        self.sent: dict[str, tuple[str, str, str]] = {}  # VOTEs by their frame: proposal, voter, choice
        self.outcomes: dict[str, str] = {}  # as anybody was told
        self.notices: dict[tuple[str, str, str], set[str]] = {}  # by recipient, kind and proposal: the ids of messages
        for name in NAMES:
            self.connect(name)

    def connect(self, name: str) -> None:
        """Again and again, where the store fails."""
        self.relay.store.release()
        for _ in range(20):
            client = self.relay.open()
            client.hello(name, capabilities={"consensus": True})
            self.relay.advance(200)
            if client.take("WELCOME"):
                self.clients[name] = client
                return
        raise AssertionError(f"{name} could not connect")

    # --- what happens ---------------------------------------------------------------------------------------------------

    def step(self) -> None:
        deed = self.chance.choice(
            [self.propose, self.propose, self.vote, self.vote, self.vote, self.vote, self.withdraw, self.pass_time, self.crash,
             self.trouble, self.leave, self.remove, self.read_all]
        )  # fmt: skip
        deed()
        self.hear()

    def propose(self) -> None:
        by = self.pick()
        if by is None:
            return
        rule = self.chance.choice(list(Rule))
        names = self.chance.sample([name for name in NAMES if name not in self.gone], self.chance.randint(1, 3))
        asked: dict[str, Any] = {
            "title": "x", "participants": names, "consensusType": rule.value, "timeoutMs": self.chance.randint(1, LONGEST_MS),
        }  # fmt: skip
        if rule is Rule.QUORUM:
            asked["quorum"] = self.chance.choice(["1", "50%", "100%"])
        if rule is Rule.WEIGHTED:
            asked["weights"] = {name: self.chance.randint(1, 4) for name in names}
        self.clients[by].say("PROPOSE", asked)

    def vote(self) -> None:
        open_ = [each for each in self.proposals.values() if each["proposalId"] not in self.outcomes]
        if not open_:
            return
        proposal = self.chance.choice(open_)
        voter = self.chance.choice(proposal["participants"])
        if voter not in self.clients:
            return
        choice = self.chance.choice(list(Choice)).value
        frame = self.clients[voter].frame("VOTE", {"proposalId": proposal["proposalId"], "vote": choice})
        self.sent[frame["id"]] = (proposal["proposalId"], voter, choice)
        self.clients[voter].say_frames(frame)

    def withdraw(self) -> None:
        mine = [each for each in self.proposals.values() if each["proposedBy"] in self.clients]
        if mine and self.chance.random() < 0.2:
            proposal = self.chance.choice(mine)
            self.clients[proposal["proposedBy"]].say("CONTROL", {"command": "withdraw_proposal", "id": proposal["proposalId"]})

    def pass_time(self) -> None:
        self.relay.advance(self.chance.choice([50, 1_000, 5_000, 20_000]))

    def crash(self) -> None:
        if self.chance.random() < 0.3:
            if self.chance.random() < 0.7:  # between the batch that ends a proposal and the one that tells of it
                self.relay.store.hold()
                self.chance.choice([self.vote, self.propose])()
                for _ in range(self.chance.randrange(3)):
                    self.relay.store.step_held()
                self.hear()
            self.relay.restart(wall_ms_later=self.chance.choice([0, 0, 10_000, 2 * LONGEST_MS]))
            self.clients.clear()
            for name in NAMES:
                if name not in self.gone:
                    self.connect(name)

    def trouble(self) -> None:
        match self.chance.randrange(4):
            case 0:
                self.relay.store.fail_next(self.chance.randint(1, 3))
            case 1:
                self.relay.store.hold()
            case 2:
                self.relay.store.release()
                self.relay.tick()
            case _:
                self.relay.store.step_held()

    def leave(self) -> None:
        name = self.pick()
        if name is not None and len(self.clients) > 2:
            self.clients.pop(name).drop()
            self.relay.store.release()
            self.relay.tick()
            self.connect(name)

    def remove(self) -> None:
        """Only once: most must stay."""
        name = self.pick()
        if name is None or len(self.gone) > 1 or self.chance.random() < 0.8:
            return
        self.relay.store.release()
        self.relay.tick()
        self.hear()
        self.clients.pop(name).drop()
        person = self.relay.connect("Person", mode="observer")
        person.say("CONTROL", {"command": "remove", "agent": name})
        self.relay.advance(200)
        if person.take("ACK"):
            self.gone.add(name)
        else:
            self.connect(name)

    def read_all(self) -> None:
        self.relay.store.release()
        self.relay.tick()

    def pick(self) -> str | None:
        return self.chance.choice(sorted(self.clients)) if self.clients else None

    # --- what is told ---------------------------------------------------------------------------------------------------

    def hear(self) -> None:
        for name, client in self.clients.items():
            for frame in client.take("ACK", "NACK", "ERROR", "CONSENSUS", "DELIVER"):
                payload = frame["payload"]
                if frame["type"] == "DELIVER":
                    key = (name, payload["kind"], payload["data"]["proposalId"])
                    self.notices.setdefault(key, set()).add(frame["delivery"]["message_id"])
                    if payload["kind"] == "consensus":
                        self.note_outcome(payload["data"]["proposalId"], payload["data"]["outcome"])
                    client.ack(frame)
                elif frame["type"] == "CONSENSUS":
                    self.note_outcome(payload["proposalId"], payload["outcome"])
                elif frame["type"] == "ACK" and "proposal" in payload:
                    self.note_proposal(payload["proposal"])
                    if payload["ack_id"] in self.sent:
                        proposal, voter, choice = self.sent.pop(payload["ack_id"])
                        self.votes[proposal, voter] = choice

    def note_proposal(self, proposal: dict[str, Any]) -> None:
        self.proposals[proposal["proposalId"]] = proposal
        if proposal["outcome"] is not None:
            self.note_outcome(proposal["proposalId"], proposal["outcome"])

    def note_outcome(self, id_: str, outcome: str) -> None:
        assert self.outcomes.setdefault(id_, outcome) == outcome, "an outcome that was told has changed"

    # --- and in the end ---------------------------------------------------------------------------------------------------

    def end(self) -> None:
        self.relay.store.release()
        self.relay.advance(2 * LONGEST_MS)
        self.hear()
        self.relay.restart()
        self.clients.clear()
        for name in NAMES:
            if name not in self.gone:
                self.connect(name)
        self.relay.advance(3_000)
        self.hear()

    def check(self) -> None:
        observer = self.relay.connect("Looker", mode="observer")
        observer.say("HISTORY", {"view": "proposals", "limit": 1000})
        kept = {each["proposalId"]: each for each in observer.payload("HISTORY_RESULT")["proposals"]}
        assert set(self.proposals) <= set(kept), "a proposal that was acknowledged is lost"
        for id_, found in kept.items():
            assert found["outcome"] is not None, "a proposal outlived its deadline"
            assert found["resolvedAt"] <= found["expiresAt"] + 2 * LONGEST_MS + 10_000
            if id_ in self.outcomes:
                assert found["outcome"] == self.outcomes[id_]
            if found["outcome"] in {"approved", "rejected"}:
                assert msgspec.convert(found, Proposal).decide() == found["outcome"], "the rules say otherwise"
        for (id_, voter), choice in self.votes.items():
            later = any(proposal == id_ and who == voter for proposal, who, _ in self.sent.values())  # said, and never answered
            assert voter in kept[id_]["votes"], "a vote that was acknowledged is lost"
            assert later or kept[id_]["votes"][voter]["vote"] == choice
        assert {key: ids for key, ids in self.notices.items() if len(ids) > 1} == {}, "somebody was told twice"
        for id_, found in kept.items():
            for name in found["participants"]:
                if name not in self.gone and id_ in self.proposals:
                    assert (name, "consensus", id_) in self.notices, "a participant was not told how it ended"


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_the_promise_holds(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.end()
    world.check()
    assert world.proposals, "nothing was proposed"
