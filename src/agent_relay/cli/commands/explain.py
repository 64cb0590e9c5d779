"""`explain`: one message's whole life, as a timeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agent_relay.cli.find_message import MessageId, ask_for_message
from agent_relay.cli.formats import count, format_span, format_time
from agent_relay.cli.message_view import now_ms, show_heading, show_text, status_word, target_of
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.safe_text import clean_line
from agent_relay.cli.screen import Screen
from agent_relay.cli.ways_in import show_better_ways

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place
    from agent_relay.sdk.views import AgentInfo, MessageView

_STYLES = {
    "stored": "green", "acknowledged": "green", "injected": "green", "read": "green", "sent": "cyan", "received": "cyan",
    "handed": "cyan", "waits": "yellow",
    "resent": "yellow", "busy": "yellow", "unanswered": "yellow", "slowed": "yellow", "held": "yellow",
    "rejected": "red", "expired": "red",
}  # fmt: skip
_HEARD = ", heard from the screen, where what a tool prints may look like the agent's words"


def explain(message_id: MessageId, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Show what became of a message: when it was stored, every attempt to deliver it, and who acknowledged it."""
    place = find_place(socket, state_dir)
    view = ask_for_message(place, message_id)
    waiting = _waiting_agents(place, view.message)
    screen = Screen()
    if as_json:
        stored = {"at": view.message.get("ts"), "event": "stored", "to": view.message.get("to"), "detail": ""}
        ways = {agent.name: {"door": agent.door, "unused_doors": list(agent.unused_doors)} for agent in waiting}
        screen.json({"message": view.message, "trail": [stored, *view.trail], "ways_in": ways})
    else:
        show_life(screen, view)
        show_better_ways(screen, waiting)
    return 0


def _waiting_agents(place: Place, message: dict[str, Any]) -> list[AgentInfo]:
    """Those that it has not reached so far."""
    names = {str(one.get("name")) for one in message.get("recipients") or () if one.get("status") in {"queued", "sent"}}
    if not names:
        return []
    from agent_relay.cli.link import observe, run

    async def ask() -> list[AgentInfo]:
        async with observe(place) as relay:
            return [agent for agent in (await relay.agents()).agents if agent.name in names]

    return run(ask())


def show_life(screen: Screen, view: MessageView) -> None:
    message = view.message
    show_heading(screen, message)
    show_text(screen, message, whole=False)
    screen.line()
    before: int | None = None
    now = now_ms()
    for at, event, rest in timeline(message, view.trail):
        gap = "" if before is None else f"+{format_span(max(0, at - before))}"
        screen.line(
            (format_time(at, now, exact=True), "dim"), "  ", (f"{gap:>12}", "dim"), "  ", (event, _STYLES.get(event, "")), rest
        )  # fmt: skip
        before = at
    screen.line()
    for one in message.get("recipients") or ():
        screen.line(*_fate(one, message, view.trail))
    skipped = message.get("skipped") or []
    if skipped:
        screen.line(clean_line(f"Skipped, because their queues were full: {', '.join(skipped)}."))


def timeline(message: dict[str, Any], trail: Iterable[dict[str, Any]]) -> list[tuple[int, str, str]]:
    """(when, what, the rest of the sentence), from the moment it was stored."""
    recipients = message.get("recipients") or []
    heard = _HEARD if (message.get("payload_meta") or {}).get("heard") == "screen" else ""
    stored = f" from {clean_line(str(message.get('from')))} to {target_of(message)}, {count(len(recipients), 'recipient')}{heard}"
    steps = [(int(message.get("ts") or 0), "stored", stored)]
    sequence = {str(one.get("name")): one.get("seq") for one in recipients}
    for step in trail:
        event, name = clean_line(str(step.get("event"))), str(step.get("to"))
        detail = clean_line(str(step.get("detail") or ""))
        steps.append((int(step.get("at") or 0), event, _sentence(event, clean_line(name), sequence.get(name), detail)))
    return steps


def _sentence(event: str, name: str, seq: object, detail: str) -> str:
    more = f", {detail}" if detail else ""
    match event:
        case "sent":
            return f" to {name}, number {seq} in its stream{more}"
        case "resent" | "handed":
            return f" to {name}{more}"
        case "busy" | "expired" | "unanswered" | "slowed" | "held":
            return f": {name}{more}"
        case "waits":
            return f" for {name}'s terminal{more}"
        case "acknowledged" | "rejected" | "received" | "read":
            return f" by {name}{more}"
        case "injected":
            return f" into {name}{more}"
        case _:
            return f" {name}{more}"


def _fate(one: dict[str, Any], message: dict[str, Any], trail: Iterable[dict[str, Any]]) -> list[str | tuple[str, str]]:
    name = str(one.get("name"))
    last = [step for step in trail if step.get("to") == name]
    word = str(last[-1]["event"]) if last and one.get("status") == "done" else status_word(str(one.get("status")))
    took = f", {format_span(max(0, int(last[-1]['at']) - int(message['ts'])))} after it was stored" if last else ""
    return [(clean_line(name), "bold"), f"  {clean_line(word)}{took}"]
