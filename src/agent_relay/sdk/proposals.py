"""Proposals as a client sees them: proposing, voting, withdrawing, and waiting for the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from agent_relay.protocol import payloads
from agent_relay.protocol.consensus import Outcome
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.proposals import Proposal as ProposalInfo
from agent_relay.sdk.decisions import Decisions
from agent_relay.sdk.errors import TimedOut
from agent_relay.sdk.lookups import Lookups
from agent_relay.sdk.queries import Answer, expect

_LOOK_S = 2.0  # CONSENSUS goes to the proposer and the participants; everybody else has to look
_PAGE = 100
_LONGEST_ID = 128  # of a frame; a longer one could not even be answered


class Proposal:
    """A proposal that this client knows. `info` is how it stood when it was last heard of."""

    def __init__(self, client: Proposals, decisions: Decisions, info: ProposalInfo) -> None:
        self._client = client
        self._decisions = decisions
        self.info = info

    def __repr__(self) -> str:
        return f"Proposal({self.id}, {self.info.outcome.value if self.info.outcome is not None else 'open'})"

    @property
    def id(self) -> str:
        return self.info.proposal_id

    async def outcome(self, timeout: float | None = None) -> Outcome:  # noqa: ASYNC109
        """Waits until it has ended: `approved`, `rejected`, `timeout` or `withdrawn`. `info` has the votes then.

        Raises TimedOut after `timeout` seconds; without it, it waits until the proposal's own deadline at most.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._wait()
        except TimeoutError:
            raise TimedOut(f"Proposal {self.id} was not decided within {timeout:g} seconds.") from None

    async def _wait(self) -> Outcome:
        with self._decisions.watch(self.id) as ended:
            while self.info.outcome is None:
                self.info = (await self._client.proposal(self.id)).info
                if self.info.outcome is None:
                    await ended.wait(_LOOK_S)
            return self.info.outcome


class Proposals(Lookups):
    """The part of a client that proposes, votes and withdraws, and looks at proposals."""

    async def propose(
        self,
        title: str,
        participants: str | Iterable[str],
        rule: str = "majority",
        quorum: int | float | str | None = None,
        weights: Mapping[str, int] | None = None,
        timeout: float = 300.0,  # noqa: ASYNC109 - the proposal's
        body: str = "",
        *,
        id: str | None = None,  # noqa: A002 - as `send` calls it
    ) -> Proposal:
        """Asks agents to vote. Returns when the proposal is durable and on its way to them; `outcome` of what is returned waits
        for the decision.

        `participants` are names, or `#channel` for its other members. `rule` is `majority`, `unanimous`, `quorum` or
        `weighted`. `quorum` is how many must approve: a number, or a share (`"60%"` or `0.6`). `weights` are for the rule
        `weighted`; whoever is not in it counts once. After `timeout` seconds it ends undecided. Proposed again with the same
        `id`, which is yours to choose, it is the same proposal.
        """
        if id is not None and not 1 <= len(id) <= _LONGEST_ID:
            raise RelayError(ErrorCode.INVALID_FORMAT, f"id must have 1 to {_LONGEST_ID} characters.", field="id")
        names = [participants] if isinstance(participants, str) else list(participants)
        asked = payloads.ProposePayload(
            title=title, participants=names, description=body or None, consensusType=rule,
            timeoutMs=max(1, round(timeout * 1000)), quorum=_spell_quorum(quorum), weights=dict(weights or {}),
        )  # fmt: skip
        return self._read(await self._queries.ask("PROPOSE", asked, id))

    async def vote(
        self, proposal_id: str, vote: str, reason: str | None = None, *, heard: Literal["screen"] | None = None
    ) -> Proposal:  # fmt: skip
        """Votes `approve`, `reject` or `abstain`; a later vote replaces this one until the proposal has ended."""
        return self._read(await self._queries.ask("VOTE", payloads.VotePayload(proposal_id, vote, reason, heard)))

    async def withdraw(self, proposal_id: str, reason: str | None = None) -> Proposal:
        """Ends a proposal of this agent without a decision."""
        asked = payloads.ControlPayload("withdraw_proposal", id=proposal_id, text=reason)
        return self._read(await self._queries.ask("CONTROL", asked))

    async def proposals(self, open_only: bool = True) -> list[Proposal]:
        """The newest first: the open ones, or all that are kept."""
        found: list[Proposal] = []
        cursor: str | None = None
        while True:
            asked = payloads.HistoryPayload(view="proposals", pending=open_only, limit=_PAGE, cursor=cursor)
            page = await self._ask_history(asked)
            found += map(self._show, page.proposals)
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def proposal(self, proposal_id: str) -> Proposal:
        """One of them, by its id or its short id."""
        asked = payloads.HistoryPayload(view="proposals", id=proposal_id)
        found = (await self._ask_history(asked)).proposals
        if not found:
            raise RelayError(ErrorCode.ROUTE_NOT_FOUND, f"There is no proposal {proposal_id}.")
        return self._show(found[0])

    def _read(self, answer: Answer) -> Proposal:
        raw = expect(payloads.ReceiptPayload, answer).proposal
        if raw is None:
            raise RelayError(ErrorCode.INTERNAL_ERROR, "The daemon's answer does not say which proposal it is about.")
        return self._show(raw)

    def _show(self, raw: dict[str, Any]) -> Proposal:
        return Proposal(self, self._engine.decisions, msgspec.convert(raw, ProposalInfo))


def _spell_quorum(quorum: int | float | str | None) -> int | str | None:
    """A share is written in percent."""
    if not isinstance(quorum, float):
        return quorum
    percent = round(quorum * 100)
    if not 0 < quorum <= 1 or abs(percent - quorum * 100) > 1e-6:
        raise RelayError(
            ErrorCode.INVALID_FORMAT, f"quorum cannot be {quorum}: a share is between 0 and 1, in whole percent.", field="quorum"
        )
    return f"{percent}%"
