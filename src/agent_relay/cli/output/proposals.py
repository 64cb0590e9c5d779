"""Proposals as commands show them: a list, and one with all its votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from agent_relay.cli.output.formats import format_span, format_time, now_ms
from agent_relay.cli.output.safe_text import clean_block, clean_line
from agent_relay.cli.output.screen import Column, Part, Screen
from agent_relay.protocol.consensus import Choice, Outcome
from agent_relay.protocol.proposals import Proposal, describe_rule, describe_tally
from agent_relay.protocol.short_ids import short_id

_COLUMNS = (
    Column("id"), Column("state"), Column("votes", right=True), Column("title"), Column("by", optional=True),
    Column("waits for", optional=True),
)  # fmt: skip
_STYLES = {Outcome.APPROVED: "green", Outcome.REJECTED: "red", Outcome.TIMEOUT: "yellow", Outcome.WITHDRAWN: "dim"}
_VOTE_STYLES = {Choice.APPROVE: "green", Choice.REJECT: "red", Choice.ABSTAIN: "dim"}
_SHOWN_TITLE = 60
_SHOWN_NAMES = 4


def show_list(screen: Screen, proposals: Sequence[Proposal], *, is_all: bool, as_json: bool) -> None:
    if as_json:
        screen.json({"proposals": [_as_json(each) for each in proposals], "next_cursor": None})
    elif proposals:
        screen.table(_COLUMNS, [_row(each) for each in proposals])
    else:
        nothing = "There are no proposals." if is_all else "No proposal is open. `agent-relay proposals --all` lists the others."
        screen.line((nothing, "dim"))


def show_proposal(screen: Screen, proposal: Proposal, *, as_json: bool) -> None:
    if as_json:
        screen.json(_as_json(proposal))
        return
    title = f"  {clean_line(proposal.title)}"
    screen.line(
        _state(proposal), "  ", short_id(proposal.proposal_id), (title, "bold"), f"  by {clean_line(proposal.proposed_by)}"
    )
    if proposal.description:
        screen.block(clean_block(proposal.description))
    told = proposal.resolution or f"{describe_tally(proposal)}; {describe_rule(proposal)}"
    screen.block(clean_line(told), style="dim")
    for name in proposal.participants:
        cast = proposal.votes.get(name)
        if cast is not None:
            why = f"  {clean_line(cast.reason)}" if cast.reason else ""
            seen = "  (read off its screen)" if cast.heard == "screen" else ""
            screen.line("    ", (f"{cast.vote.value:<7}", _VOTE_STYLES[cast.vote]), f"  {clean_line(name)}{why}", (seen, "dim"))
        else:
            screen.line("    ", (f"{'left' if name in proposal.departed else '-':<7}  {clean_line(name)}", "dim"))


def _as_json(proposal: Proposal) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(proposal)
    return found | {"shortId": short_id(proposal.proposal_id)}


def _state(proposal: Proposal) -> Part:
    if proposal.outcome is not None:
        return proposal.outcome.value, f"bold {_STYLES[proposal.outcome]}"
    return "open", "bold cyan"


def _row(proposal: Proposal) -> list[Part]:
    now = now_ms()
    missing = proposal.missing
    waits = ", ".join(map(clean_line, missing[:_SHOWN_NAMES])) + (" …" if len(missing) > _SHOWN_NAMES else "")
    if proposal.outcome is None:
        state: Part = (f"{format_span(max(0, proposal.expires_at - now))} left", "cyan")
    else:
        state = (f"{proposal.outcome.value} {format_time(proposal.resolved_at or 0, now)}", _STYLES[proposal.outcome])
        waits = ""
    title = clean_line(proposal.title)
    return [
        short_id(proposal.proposal_id), state, f"{len(proposal.votes)}/{len(proposal.participants)}",
        title if len(title) <= _SHOWN_TITLE else title[: _SHOWN_TITLE - 1] + "…", clean_line(proposal.proposed_by), waits or "-",
    ]  # fmt: skip
