"""Permissions and questions that wait for a person: finding the one that is meant, showing them, answering them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_relay.cli.failures import Failure
from agent_relay.cli.output.formats import count, format_span, now_ms
from agent_relay.cli.output.safe_text import clean_line, reveal_block, reveal_line
from agent_relay.cli.output.screen import Part, Screen
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.requests import PERMISSION, OpenRequest, PermissionRequest, QuestionRequest, decode_open, encode_open
from agent_relay.protocol.short_ids import AMBIGUOUS

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.events import EventFeed
    from agent_relay.sdk.locate import Place

_RISKS = {"low": "green", "medium": "yellow", "high": "red", "critical": "bold white on red"}
_CHANGES = ("permission.*", "question.*", "agent.*")  # an agent that goes takes what it asked with it
_SETTLE_S = 0.5  # a wrapper that comes back says what is open a moment later, and that is no event
_GATHER_S = 0.05  # events that come together are looked at once
_LEAST_ID = 8  # characters; enough to look at, and more where they do not tell two requests apart


async def fetch(relay: RelayClient, kind: str, agent: str | None) -> list[OpenRequest]:
    """The oldest first."""
    said = [entry for known in (await relay.agents()).agents for entry in known.requests if entry.get("kind") == kind]
    mine = [each for each in map(decode_open, said) if agent is None or fold_name(each.agent) == fold_name(agent)]
    return sorted(mine, key=lambda each: each.asked_at)


def ask_for_all(place: Place, kind: str, agent: str | None) -> list[OpenRequest]:
    from agent_relay.cli.project.link import observe, run

    async def ask() -> list[OpenRequest]:
        async with observe(place) as relay:
            return await fetch(relay, kind, agent)

    return run(ask())


def list_all(place: Place, kind: str, agent: str | None, if_none: str, *, as_json: bool) -> int:
    found = ask_for_all(place, kind, agent)
    screen = Screen()
    if as_json:
        screen.json({f"{kind}s": [encode_open(each) for each in found], "next_cursor": None})
        return 0
    show(screen, found)
    if not found:
        screen.line((if_none, "dim"))
    return 0


def follow(place: Place, kind: str, agent: str | None, *, as_json: bool) -> int:
    """Shows each as it comes and goes, until the daemon goes or somebody interrupts it."""
    from agent_relay.cli.project.link import run

    run(_follow(Screen(), place, kind, agent, as_json=as_json))
    return 0


async def _follow(screen: Screen, place: Place, kind: str, agent: str | None, *, as_json: bool) -> None:
    from agent_relay.cli.project.link import observe

    seen: dict[tuple[str, str], OpenRequest] = {}
    async with observe(place) as relay, relay.events(_CHANGES) as feed:
        is_fresh = True
        while True:
            found = {(each.agent, each.request.id): each for each in await fetch(relay, kind, agent)}
            new = [each for key, each in found.items() if key not in seen]
            over = [each for key, each in seen.items() if key not in found]
            _show_changes(screen, kind, new, over, list(found.values()), as_json=as_json)
            seen = found
            is_fresh = await _happens(feed, _SETTLE_S if is_fresh else None)


async def _happens(feed: EventFeed, seconds: float | None) -> bool:
    """Whether there was an event; False after that time without one. Of several that come together it waits for the others."""
    import asyncio

    happened = False
    patience = asyncio.timeout(seconds)
    try:
        async with patience:
            async for _ in feed:
                if not happened:
                    patience.reschedule(asyncio.get_running_loop().time() + _GATHER_S)
                happened = True
    except TimeoutError:
        if not patience.expired():
            raise
    return happened


def _show_changes(
    screen: Screen, kind: str, new: list[OpenRequest], over: list[OpenRequest], current: list[OpenRequest], *, as_json: bool
) -> None:  # fmt: skip
    if as_json:
        for change, requests in (("requested", new), ("over", over)):
            for each in requests:
                screen.json_line({"change": change, kind: encode_open(each)})
    else:
        show(screen, new, current)
        for each in over:
            word = "is decided" if kind == PERMISSION else "is answered"
            screen.line((clean_line(f"{each.agent}: {each.request.id[:_LEAST_ID]} {word}"), "dim"))
    screen.flush()


def pick(requests: Sequence[OpenRequest], wanted: str, kind: str) -> OpenRequest:
    """The one with this id, or the only one whose id begins so. Raises Failure where there is none, or more than one."""
    same = [each for each in requests if each.request.id == wanted]
    found = same or [each for each in requests if wanted and each.request.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Failure(clean_line(f"There is no open {kind} {wanted}; `agent-relay {kind}s` lists them."))
    names = sorted({each.agent for each in found})
    if len(names) > 1:
        raise Failure(clean_line(f"{', '.join(names)} each have a {kind} {wanted}; choose one with --agent."))
    ids = ", ".join(each.request.id for each in found)
    raise Failure(clean_line(f"{AMBIGUOUS} {names[0]} has {count(len(found), kind)}: {ids}."))


def answer(place: Place, kind: str, wanted: str, agent: str | None, command: str, text: str | None) -> OpenRequest:
    """Returns the request, once its agent has the answer."""
    from agent_relay.cli.project.link import observe, run

    async def do() -> OpenRequest:
        async with observe(place) as relay:
            found = pick(await fetch(relay, kind, agent), wanted, kind)
            await relay.control(found.agent, command, text, request_id=found.request.id)
            return found

    return run(do())


# --- showing ------------------------------------------------------------------------------------------------------------


def show(screen: Screen, requests: Sequence[OpenRequest], others: Sequence[OpenRequest] = ()) -> None:
    """`others`: further ones that their ids should be told from."""
    now = now_ms()
    for found in requests:
        request = found.request
        head: list[Part] = [(_short_id(found, [*requests, *others]), "bold cyan"), "  ", (clean_line(found.agent), "bold")]
        if isinstance(request, PermissionRequest) and request.tool:
            head += ["  ", reveal_line(request.tool)]
        if found.risk:
            risk = clean_line(found.risk)
            head += ["  ", (f"{risk} risk", _RISKS.get(risk, ""))]
        head += ["  ", (f"{format_span(max(0, now - (found.asked_at or now)))} ago", "dim")]
        if not request.can_allow:
            is_question = isinstance(request, QuestionRequest)
            head += ["  ", ("can only be answered at its terminal" if is_question else "can only be denied here", "yellow")]
        screen.line(*head)
        _show_texts(screen, found)
        commands = _how_to_answer(found, _short_id(found, [*requests, *others]))
        if commands:
            screen.block(commands, style="dim")


def _how_to_answer(found: OpenRequest, id_: str) -> str:
    """The commands that answer it, to be copied into a shell; none where only its terminal can."""
    request, id_ = found.request, shlex.quote(id_)
    if isinstance(request, QuestionRequest):
        return f"answer: agent-relay questions answer {id_} TEXT" if request.can_allow else ""
    deny = f"deny: agent-relay permissions deny {id_}"
    return f"approve: agent-relay permissions approve {id_}   {deny}" if request.can_allow else deny


def summarize(found: OpenRequest) -> str:
    """The asker and the request, in short."""
    request = found.request
    if isinstance(request, QuestionRequest):
        return f"{found.agent}: {request.question}"
    return f"{found.agent}: {request.command or request.file_path or request.description}"


def _show_texts(screen: Screen, found: OpenRequest) -> None:
    request = found.request
    if isinstance(request, QuestionRequest):
        texts = [(request.question, "")]
    else:
        texts = [(request.command or "", "bold"), (request.file_path or "", "bold"), (request.description, "")]
    for text, style in texts:
        if text:
            screen.block(reveal_block(text).rstrip(), style=style)
    if request.options:
        screen.block("options: " + " | ".join(map(reveal_line, request.options)), style="dim")
    if found.is_shortened:
        screen.block("(shortened; its terminal shows the rest)", style="yellow")


def _short_id(found: OpenRequest, requests: Sequence[OpenRequest]) -> str:
    """As much of the id as tells it from the others."""
    id_ = found.request.id
    others = [each.request.id for each in requests if each.request.id != id_]
    length = _LEAST_ID
    while length < len(id_) and any(other.startswith(id_[:length]) for other in others):
        length += 1
    return clean_line(id_[:length])
