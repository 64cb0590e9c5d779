"""`explain`: one message's whole life, as a timeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent_relay.cli.options import Json, MessageId, Socket, StateDir, find_place
from agent_relay.cli.output.formats import count, format_span, format_time, now_ms
from agent_relay.cli.output.message_view import show_heading, show_text, target_of
from agent_relay.cli.output.reasons import show_better_ways, show_waiting, waiting_lines
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.person import show_name
from agent_relay.protocol.message_states import MessageState

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place
    from agent_relay.sdk.views import AgentInfo, MessageView

_STYLES = {
    "stored": "green", "acknowledged": "green", "injected": "green", "read": "green", "sent": "cyan", "received": "cyan",
    "handed": "cyan", "waits": "yellow",
    "resent": "yellow", "busy": "yellow", "unanswered": "yellow",
    "rejected": "red", "expired": "red",
}  # fmt: skip
_HEARD = ", read off the screen, where tool output may look like the agent's own words"


def explain(message_id: MessageId, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Show what happened to a message: when it was stored, each delivery attempt, who acknowledged it, and what it waits for."""
    from agent_relay.cli.project.link import run

    view, agents = run(_ask(find_place(socket, state_dir), message_id))
    waiting = waiting_lines(view.message, agents)
    held = [agent for agent in agents if agent.name in {name for name, _ in waiting}]
    screen = Screen()
    if as_json:
        stored = {"at": view.message.get("ts"), "event": "stored", "to": view.message.get("to"), "detail": ""}
        waits = [{"name": name, "line": line} for name, line in waiting]
        ways = {agent.name: {"door": agent.door, "unused_doors": list(agent.unused_doors)} for agent in held}
        screen.json({"message": view.message, "trail": [stored, *view.trail], "waits": waits, "ways_in": ways})
    else:
        show_life(screen, view, {agent.name: agent.host for agent in agents})
        show_waiting(screen, waiting)
        show_better_ways(screen, held)
    return 0


async def _ask(place: Place, message_id: str) -> tuple[MessageView, list[AgentInfo]]:
    from agent_relay.cli.project.link import observe

    async with observe(place) as relay:
        return await relay.message(message_id), (await relay.agents()).agents


def show_life(screen: Screen, view: MessageView, hosts: Mapping[str, str] | None = None) -> None:
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
        screen.line(*_fate(one, message, view.trail, (hosts or {}).get(str(one.get("name")), "")))
    skipped = message.get("skipped") or []
    if skipped:
        screen.line(clean_line(f"Skipped, because their queues were full: {', '.join(skipped)}."))


def timeline(message: dict[str, Any], trail: Iterable[dict[str, Any]]) -> list[tuple[int, str, str]]:
    """(when, what, the rest of the sentence), from the moment it was stored."""
    recipients = message.get("recipients") or []
    heard = _HEARD if (message.get("payload_meta") or {}).get("heard") == "screen" else ""
    sender = clean_line(show_name(str(message.get("from"))))
    addressed = [one for one in recipients if not one.get("copy")]
    copies = f", {count(len(recipients) - len(addressed), 'copy', 'copies')}" if len(addressed) < len(recipients) else ""
    stored = f" from {sender} to {target_of(message)}, {count(len(addressed), 'recipient')}{copies}{heard}"
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
        case "busy" | "expired" | "unanswered":
            return f": {name}{more}"
        case "waits":
            return f" for {name}{more}"
        case "acknowledged" | "rejected" | "received" | "read":
            return f" by {name}{more}"
        case "injected":
            return f" into {name}{more}"
        case _:
            return f" {name}{more}"


def _fate(
    one: dict[str, Any], message: dict[str, Any], trail: Iterable[dict[str, Any]], host: str
) -> list[str | tuple[str, str]]:  # fmt: skip
    name = str(one.get("name"))
    last = [step for step in trail if step.get("to") == name]
    word = str(one.get("status"))
    if word == MessageState.DELIVERED and any(step.get("event") == MessageState.READ for step in last):
        word = MessageState.READ.value
    took = f", {format_span(max(0, int(last[-1]['at']) - int(message['ts'])))} after it was stored" if last else ""
    where = f" on {clean_line(host)}" if host else ""
    copy = "  copy for a shadow, " if one.get("copy") else "  "
    return [(clean_line(name), "bold"), f"{where}{copy}{clean_line(word)}{took}"]
