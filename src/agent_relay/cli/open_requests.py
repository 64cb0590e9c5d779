"""Permissions and questions that wait for a person: finding the one that is meant, showing them, answering them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent_relay.cli.failures import Failure
from agent_relay.cli.formats import count, format_span
from agent_relay.cli.message_view import now_ms
from agent_relay.cli.safe_text import clean_line, reveal_block, reveal_line
from agent_relay.cli.screen import Part, Screen
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.short_ids import AMBIGUOUS

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.events import EventFeed
    from agent_relay.sdk.locate import Place

Open = dict[str, Any]
_RISKS = {"low": "green", "medium": "yellow", "high": "red", "critical": "bold white on red"}
_CHANGES = ("permission.*", "question.*", "agent.*")  # an agent that goes takes what it asked with it
_SETTLE_S = 0.5  # a wrapper that comes back says what is open a moment later, and that is no event
_GATHER_S = 0.05  # events that come together are looked at once
_LEAST_ID = 8  # characters; enough to look at, and more where they do not tell two requests apart


async def fetch(relay: RelayClient, kind: str, agent: str | None) -> list[Open]:
    """The oldest first."""
    found = [request for known in (await relay.agents()).agents for request in known.requests if request.get("kind") == kind]
    mine = [request for request in found if agent is None or fold_name(str(request.get("agent"))) == fold_name(agent)]
    return sorted(mine, key=lambda request: int(request.get("at") or 0))


def ask_for_all(place: Place, kind: str, agent: str | None) -> list[Open]:
    from agent_relay.cli.link import observe, run

    async def ask() -> list[Open]:
        async with observe(place) as relay:
            return await fetch(relay, kind, agent)

    return run(ask())


def list_all(place: Place, kind: str, agent: str | None, if_none: str, *, as_json: bool) -> int:
    found = ask_for_all(place, kind, agent)
    screen = Screen()
    if as_json:
        screen.json({f"{kind}s": found, "next_cursor": None})
        return 0
    show(screen, found)
    if not found:
        screen.line((if_none, "dim"))
    return 0


def follow(place: Place, kind: str, agent: str | None, *, as_json: bool) -> int:
    """Shows each as it comes and goes, until the daemon goes or somebody interrupts it."""
    from agent_relay.cli.link import run

    run(_follow(Screen(), place, kind, agent, as_json=as_json))
    return 0


async def _follow(screen: Screen, place: Place, kind: str, agent: str | None, *, as_json: bool) -> None:
    from agent_relay.cli.link import observe

    seen: dict[tuple[str, str], Open] = {}
    async with observe(place) as relay, relay.events(_CHANGES) as feed:
        is_fresh = True
        while True:
            found = {(str(each["agent"]), str(each["id"])): each for each in await fetch(relay, kind, agent)}
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
    screen: Screen, kind: str, new: list[Open], over: list[Open], current: list[Open], *, as_json: bool
) -> None:  # fmt: skip
    if as_json:
        for change, requests in (("requested", new), ("over", over)):
            for each in requests:
                screen.json_line({"change": change, kind: each})
    else:
        show(screen, new, current)
        for each in over:
            word = "is decided" if kind == "permission" else "is answered"
            screen.line((clean_line(f"{each['agent']}: {str(each['id'])[:_LEAST_ID]} {word}"), "dim"))
    screen.flush()


def pick(requests: Sequence[Open], wanted: str, kind: str) -> Open:
    """The one with this id, or the only one whose id begins so. Raises Failure where there is none, or more than one."""
    same = [request for request in requests if request.get("id") == wanted]
    found = same or [request for request in requests if wanted and str(request.get("id")).startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Failure(clean_line(f"There is no open {kind} {wanted}; `agent-relay {kind}s` lists them."))
    names = sorted({str(request.get("agent")) for request in found})
    if len(names) > 1:
        raise Failure(clean_line(f"{', '.join(names)} each have a {kind} {wanted}; choose one with --agent."))
    ids = ", ".join(str(request.get("id")) for request in found)
    raise Failure(clean_line(f"{AMBIGUOUS} {names[0]} has {count(len(found), kind)}: {ids}."))


def answer(place: Place, kind: str, wanted: str, agent: str | None, command: str, text: str | None) -> Open:
    """Returns the request, once its agent has the answer."""
    from agent_relay.cli.link import observe, run

    async def do() -> Open:
        async with observe(place) as relay:
            request = pick(await fetch(relay, kind, agent), wanted, kind)
            asker = str(request.get("agent"))
            await relay.control(asker, command, text, request_id=str(request.get("id")))
            return request

    return run(do())


# --- showing ------------------------------------------------------------------------------------------------------------


def show(screen: Screen, requests: Sequence[Open], others: Sequence[Open] = ()) -> None:
    """`others`: further ones that their ids should be told from."""
    now = now_ms()
    for request in requests:
        head: list[Part] = [
            (_short_id(request, [*requests, *others]), "bold cyan"), "  ", (clean_line(str(request.get("agent"))), "bold"),
        ]  # fmt: skip
        if request.get("tool"):
            head += ["  ", reveal_line(str(request["tool"]))]
        if request.get("risk"):
            risk = clean_line(str(request["risk"]))
            head += ["  ", (f"{risk} risk", _RISKS.get(risk, ""))]
        head += ["  ", (f"{format_span(max(0, now - int(request.get('at') or now)))} ago", "dim")]
        if request.get("can_allow") is False:
            where = "can only be denied here" if request.get("kind") != "question" else "can only be answered at its terminal"
            head += ["  ", (where, "yellow")]
        screen.line(*head)
        _show_texts(screen, request)


def _show_texts(screen: Screen, request: Open) -> None:
    for name, style in (("command", "bold"), ("file", "bold"), ("description", ""), ("question", "")):
        if request.get(name):
            screen.block(reveal_block(str(request[name])).rstrip(), style=style)
    options = [reveal_line(str(option)) for option in request.get("options") or ()]
    if options:
        screen.block("options: " + " | ".join(options), style="dim")
    if request.get("shortened"):
        screen.block("(shortened; its terminal shows the rest)", style="yellow")


def _short_id(request: Open, requests: Sequence[Open]) -> str:
    """As much of the id as tells it from the others."""
    id_ = str(request.get("id"))
    others = [str(other.get("id")) for other in requests if other.get("id") != id_]
    length = _LEAST_ID
    while length < len(id_) and any(other.startswith(id_[:length]) for other in others):
        length += 1
    return clean_line(id_[:length])
