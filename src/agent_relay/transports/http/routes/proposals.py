"""Proposals: asking agents to vote, and voting, in the owner's name."""

from __future__ import annotations

from agent_relay.protocol.payloads import ProposePayload
from agent_relay.protocol.proposals import Proposal
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import Decision, NewProposal, ProposalsQuery, VoteBody
from agent_relay.transports.http.route import Call, Route
from agent_relay.transports.http.views import ProposalList, ProposalView, VoteView, build


async def list_proposals(api: Api, call: Call) -> ProposalList:
    return ProposalList([_show(each) for each in api.service.proposals(is_open=call.query.state == "open")])


async def get_proposal(api: Api, call: Call) -> ProposalView:
    return _show(api.service.proposal(call.names["id"]))


async def propose(api: Api, call: Call) -> ProposalView:
    body: NewProposal = call.body
    asked = ProposePayload(
        title=body.title, participants=body.participants, description=body.body or None, consensusType=body.rule,
        timeoutMs=body.timeout_ms, quorum=body.quorum, weights=body.weights,
    )  # fmt: skip
    return _show(await api.service.propose(asked, call.caller))


async def vote(api: Api, call: Call) -> ProposalView:
    return _show(await api.service.vote(call.names["id"], call.body.vote, call.body.reason, call.caller))


async def withdraw(api: Api, call: Call) -> ProposalView:
    reason = call.body.reason if call.body is not None else None
    return _show(await api.service.withdraw(call.names["id"], reason, call.caller))


def _show(found: Proposal) -> ProposalView:
    votes = {name: build(VoteView, cast) for name, cast in found.votes.items()}
    return build(ProposalView, found, votes=votes)


_TAG = "proposals"
_ALL = "/api/v1/proposals"
_ONE = _ALL + "/{id}"
_FAILS = (404, 409, 429, 503)
_YOURS = "You vote under your login name, and only if you are a participant."
ROUTES = (
    Route("GET", _ALL, list_proposals, "Open proposals, newest first.", _TAG, ProposalList, query=ProposalsQuery, errors=(503,)),
    Route("POST", _ALL, propose, "Ask agents to vote.", _TAG, ProposalView, 201, NewProposal, errors=_FAILS, right="names",
          takes_key=True),
    Route("GET", _ONE, get_proposal, "One proposal with its votes.", _TAG, ProposalView, errors=(404, 503)),
    Route("POST", _ONE + "/vote", vote, "Vote, or change your vote.", _TAG, ProposalView, body=VoteBody, errors=_FAILS,
          right="names", takes_key=True, description=_YOURS),
    Route("DELETE", _ONE, withdraw, "Withdraw a proposal.", _TAG, ProposalView, body=Decision, needs_body=False, errors=_FAILS,
          right="control"),
)  # fmt: skip
