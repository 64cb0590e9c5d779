"""Proposals over HTTP: in the owner's name, with the same rules and errors as everywhere."""

from __future__ import annotations

import httpx

from .server import DEADLINE_S, Server, problem, until

ALL = "/api/v1/proposals"


def test_agents_vote_on_what_the_owner_proposes(server: Server, http: httpx.Client) -> None:
    bob, carol = server.join(), server.join()
    asked = {"title": "Use SQLite", "participants": [bob.name, carol.name], "rule": "quorum", "quorum": "60%", "body": "Why not?"}
    made = http.post(ALL, json=asked)
    assert made.status_code == 201, made.text
    proposal = made.json()
    assert (proposal["quorum"], proposal["outcome"], proposal["description"]) == ("60%", None, "Why not?")
    assert bob.receive(DEADLINE_S).data == {
        "proposalId": proposal["proposalId"], "title": "Use SQLite", "expiresAt": proposal["expiresAt"],
    }  # fmt: skip
    assert proposal["proposalId"] in [each["proposalId"] for each in http.get(ALL).json()["proposals"]]
    bob.vote(proposal["proposalId"], "approve", "Fine.")
    carol.vote(proposal["proposalId"], "approve")
    one = f"{ALL}/{proposal['proposalId']}"
    found = http.get(one).json()
    assert (found["outcome"], found["votes"][bob.name]["reason"]) == ("approved", "Fine.")
    assert proposal["proposalId"] not in [each["proposalId"] for each in http.get(ALL).json()["proposals"]]
    assert proposal["proposalId"] in [each["proposalId"] for each in http.get(ALL, params={"state": "all"}).json()["proposals"]]
    assert problem(http.post(f"{one}/vote", json={"vote": "approve"})) == (409, "PERMISSION_DENIED")
    assert problem(http.delete(one)) == (409, "REJECTED")

    def outcomes() -> list[str]:
        events = http.get("/api/v1/events", params={"types": "consensus.resolved", "limit": 1000}).json()["events"]
        return [event["outcome"] for event in events if event["proposalId"] == proposal["proposalId"]]

    until(lambda: outcomes() == ["approved"], "the event")


def test_the_owner_votes_where_an_agent_asks_for_it_and_withdraws_anything(server: Server, http: httpx.Client) -> None:
    bob = server.join()
    me = http.post("/api/v1/channels/votes/join").json()["agent"]
    proposal = bob.propose("Merge it", [me, bob.name], rule="unanimous")
    one = f"{ALL}/{proposal.id}"
    voted = http.post(f"{one}/vote", json={"vote": "abstain", "reason": "Your call."})
    assert (voted.status_code, voted.json()["votes"][me]["vote"]) == (200, "abstain")
    assert http.post(f"{one}/vote", json={"vote": "approve"}).json()["votes"][me]["vote"] == "approve"
    withdrawn = http.request("DELETE", one, json={"reason": "Not now."})
    assert (withdrawn.status_code, withdrawn.json()["resolution"]) == (200, f"{me} withdrew it: Not now.")
    assert http.delete(one).json()["outcome"] == "withdrawn"  # said again


def test_what_is_wrong_is_named(server: Server, http: httpx.Client) -> None:
    bob = server.join()
    asked = {"title": "T", "participants": [bob.name]}
    assert problem(http.post(ALL, json=asked | {"rule": "plurality"})) == (422, "INVALID_FORMAT")
    assert problem(http.post(ALL, json=asked | {"quorum": "2"})) == (422, "INVALID_FORMAT")
    assert problem(http.post(ALL, json=asked | {"weights": {bob.name: 0}})) == (422, "INVALID_FORMAT")
    assert problem(http.post(ALL, json={"title": "T", "participants": ["Nobody-at-all"]})) == (404, "AGENT_NOT_FOUND")
    assert problem(http.get(f"{ALL}/prop_none")) == (404, "ROUTE_NOT_FOUND")
    assert problem(http.post(f"{ALL}/prop_none/vote", json={"vote": "approve"})) == (404, "ROUTE_NOT_FOUND")
    assert problem(http.post(f"{ALL}/prop_none/vote", json={"vote": "yes"})) == (422, "INVALID_FORMAT")
