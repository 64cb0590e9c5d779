"""`propose`, `vote`, `withdraw` and `proposals`: deciding together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.options import Json, Socket, StateDir, agent_option, complete_names, find_place, read_duration_ms
from agent_relay.cli.output.proposals import show_list, show_proposal
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.wrapper.outbox_commands import ask_through, own_outbox
from agent_relay.protocol.consensus import Choice, Outcome, Rule
from agent_relay.protocol.payloads import ProposePayload
from agent_relay.protocol.proposals import Proposal as ProposalInfo

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.locate import Place
    from agent_relay.sdk.proposals import Proposal

_CLOSE_S = 2.0
_DEFAULT_DEADLINE = "5m"
_RULES = "|".join(rule.value for rule in Rule)
_CHOICES = tuple(choice.value for choice in Choice)

ProposalId = Annotated[str, typer.Argument(metavar="ID", help="The proposal's id, or the eight digits that are shown of it.")]
Speaker = Annotated[str | None, agent_option("--from", "The agent; by default the one you run this in, else you.", "--as")]


def complete_choices(incomplete: str) -> list[str]:
    return [choice for choice in _CHOICES if choice.startswith(incomplete.lower())]


def propose(
    title: Annotated[str, typer.Argument(metavar="TITLE", help="What is proposed, in one line.", show_default=False)],
    to: Annotated[
        str,
        typer.Option("--to", metavar="WHO", help="Who votes: names, or #channel, by commas.", autocompletion=complete_names),
    ],
    rule: Annotated[
        str | None, typer.Option("--rule", metavar=_RULES, help="The rule; by default majority, or what the options imply.")
    ] = None,
    quorum: Annotated[
        str | None, typer.Option("--quorum", metavar="N|N%", help="How many must approve: a number, or a share such as 60%.")
    ] = None,
    weight: Annotated[
        list[str] | None, typer.Option("--weight", metavar="NAME=N", help="What a participant counts; may be repeated.")
    ] = None,
    deadline: Annotated[
        str, typer.Option("--deadline", metavar="TIME", help="How long they have, e.g. 10m.")
    ] = _DEFAULT_DEADLINE,
    body: Annotated[str | None, typer.Option("--body", metavar="TEXT", help="More about it; - reads standard input.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the outcome; the exit status is 0 if it is approved.")] = False,
    sender: Speaker = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:  # fmt: skip
    """Ask agents to vote on something.

    Each of them gets it as a message that says how to vote. It ends as soon as the outcome is certain, and at the deadline at the
    latest. The rules are in docs/consensus.md.
    """
    from agent_relay.cli.commands.send import read_body

    place = find_place(socket, state_dir)
    weights = _read_weights(weight or [])
    names = [name.strip() for name in to.split(",") if name.strip()]
    chosen = rule or _implied_rule(quorum, weights)
    timeout_ms = read_duration_ms(deadline, "--deadline")
    text = read_body(body) if body is not None else ""

    async def ask(relay: RelayClient) -> Proposal:
        return await relay.propose(title, names, chosen, quorum, weights, timeout_ms / 1000, text)

    import msgspec

    asked = ProposePayload(
        title=title, participants=names, description=text or None, consensusType=chosen, timeoutMs=timeout_ms, quorum=quorum,
        weights=weights,
    )  # fmt: skip
    screen = Screen()
    made = _do(place, sender, ask, kind="propose", body=msgspec.json.encode(asked).decode())
    if not wait:
        show_proposal(screen, made, as_json=as_json)
        return 0
    if not as_json:
        show_proposal(screen, made, as_json=False)
    done = _wait(place, made)
    show_proposal(screen, done, as_json=as_json)
    return 0 if done.outcome is Outcome.APPROVED else 1


def vote(
    proposal: ProposalId,
    choice: Annotated[
        str, typer.Argument(metavar="|".join(_CHOICES), help="Your vote.", autocompletion=complete_choices, show_default=False)
    ],
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why.")] = None,
    sender: Speaker = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Vote on a proposal, or change your vote until it has ended.

    You can vote if you are one of its participants; `agent-relay proposals` shows who they are.
    """
    if choice.lower() not in _CHOICES:
        raise Failure(clean_line(f"{choice} is not a vote: use approve, reject or abstain."), USAGE)

    async def ask(relay: RelayClient) -> Proposal:
        return await relay.vote(proposal, choice, reason)

    place = find_place(socket, state_dir)
    found = _do(place, sender, ask, kind="vote", name=proposal, type=choice.lower(), body=reason or "")
    show_proposal(Screen(), found, as_json=as_json)
    return 0


def withdraw(
    proposal: ProposalId,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for those who were asked.")] = None,
    sender: Speaker = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Withdraw a proposal: it ends without a decision.

    Agents can withdraw their own proposals, and you can withdraw all of them.
    """

    async def ask(relay: RelayClient) -> Proposal:
        return await relay.withdraw(proposal, reason)

    found = _do(find_place(socket, state_dir), sender, ask, kind="withdraw", name=proposal, body=reason or "")
    show_proposal(Screen(), found, as_json=as_json)
    return 0


def proposals(
    proposal: Annotated[str | None, typer.Argument(metavar="[ID]", help="Show this one with all its votes.")] = None,
    is_all: Annotated[bool, typer.Option("--all", help="Also those that have ended.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """List open proposals, with who has voted and how much time is left."""
    from agent_relay.cli.project.link import observe, run

    async def look() -> list[ProposalInfo]:
        async with observe(find_place(socket, state_dir)) as relay:
            if proposal is not None:
                return [(await relay.proposal(proposal)).info]
            return [each.info for each in await relay.proposals(open_only=not is_all)]

    found = run(look())
    if proposal is not None:
        show_proposal(Screen(), found[0], as_json=as_json)
    else:
        show_list(Screen(), found, is_all=is_all, as_json=as_json)
    return 0


def _read_weights(given: list[str]) -> dict[str, int]:
    weights: dict[str, int] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        if not name or not number.isdecimal() or int(number) < 1:
            raise Failure(clean_line(f"--weight {text}: write a name and a whole number, such as Bob=3."), USAGE)
        weights[name.strip()] = int(number)
    return weights


def _implied_rule(quorum: str | None, weights: dict[str, int]) -> str:
    return (Rule.WEIGHTED if weights else Rule.QUORUM if quorum is not None else Rule.MAJORITY).value


def _do(
    place: Place, sender: str | None, ask: Callable[[RelayClient], Awaitable[Proposal]], /, **headers: Any
) -> ProposalInfo:  # fmt: skip
    """As whoever runs the command; inside a wrapped agent through its outbox, since its wrapper has the name."""
    import msgspec

    outbox = own_outbox(sender, place.socket)
    if outbox is not None:
        return msgspec.convert(ask_through(outbox, **headers).get("proposal"), ProposalInfo)
    from agent_relay.cli.project.link import NameInUse, connect_as, run

    async def work() -> ProposalInfo:
        try:
            relay = await connect_as(place, sender, max_inflight=1)
        except NameInUse as taken:
            raise Failure(f"{taken.sentence} It can vote and propose there, or use another name with --from.") from None
        try:
            return (await ask(relay)).info
        finally:
            await relay.close(_CLOSE_S)

    return run(work())


def _wait(place: Place, made: ProposalInfo) -> ProposalInfo:
    from agent_relay.cli.project.link import observe, run

    async def work() -> ProposalInfo:
        async with observe(place) as relay:
            watched = await relay.proposal(made.proposal_id)
            await watched.outcome()
            return watched.info

    return run(work())
