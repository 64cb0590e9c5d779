"""`inbox`: receives an agent's messages, printing and then acknowledging each; with `--peek` it only looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import Json, Socket, StateDir, agent_option, find_place
from agent_relay.cli.output.message_view import MESSAGE_TO_PROGRAMS, show_heading, show_text
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.person import is_you
from agent_relay.cli.project.waiting_messages import find_pending, find_unseen, note_seen
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import did_you_mean
from agent_relay.sdk.locate import Place

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.messages import Message
    from agent_relay.sdk.views import AgentInfo

_QUIET_S = 0.2  # how long nothing comes before the daemon is asked whether anything is still waiting
_CLOSE_S = 2.0
_WINDOW = 32


def inbox(
    name: Annotated[str | None, agent_option("--as", "Whose inbox; by default AGENT_RELAY_NAME's, else your own.")] = None,
    peek: Annotated[bool, typer.Option("--peek", help="Only look; acknowledge nothing.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new messages until Ctrl-C.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Stop after this many messages.")] = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Receive an agent's waiting messages: each is printed, then acknowledged.

    Ends when nothing is left, unless --follow is given. Your own inbox includes what the page received for you since you last
    looked. With --json: one object per line.
    """
    from agent_relay.cli.project.link import own_name, run

    if peek and follow:
        raise typer.BadParameter("--peek and --follow cannot be combined.", param_hint="--follow")
    place = find_place(socket, state_dir)
    screen = Screen()
    if peek:
        return run(_peek(place, screen, own_name(name)[0], limit, as_json=as_json))
    return run(_receive(place, screen, name, follow=follow, limit=limit, as_json=as_json))


# --- receiving ----------------------------------------------------------------------------------------------------------


async def _receive(place: Place, screen: Screen, name: str | None, *, follow: bool, limit: int | None, as_json: bool) -> int:
    from agent_relay.cli.project.link import NameInUse, connect_as
    from agent_relay.protocol.retry import RECONNECT_ATTEMPTS

    try:
        relay = await connect_as(
            place, name, max_inflight=_WINDOW, reconnect_attempts=RECONNECT_ATTEMPTS if follow else 0, transient=not follow
        )
    except NameInUse as taken:
        raise Failure(
            f"{taken.sentence} Its messages go there; to see what is waiting: agent-relay inbox --as {taken.name} --peek"
        ) from None
    is_person = is_you(relay.name)
    shown = 0
    seen: set[str] = set()
    try:
        if is_person:
            for each in (await find_unseen(relay, place, relay.name))[:limit]:
                _show_stored(screen, each, as_json=as_json)
                seen.add(str(each["message_id"]))
                note_seen(place, str(each["message_id"]))
                shown += 1
        while limit is None or shown < limit or seen:
            message = await _next(relay, follow=follow)
            if message is None:
                break
            if message.id not in seen:
                if limit is not None and shown >= limit:
                    break
                _show(screen, message, as_json=as_json)
                shown += 1
            screen.flush()
            await message.ack()  # only now: what could not be printed was not received
            seen.discard(message.id)
            if is_person:
                note_seen(place, message.id)
    finally:
        await relay.close(_CLOSE_S)
    if not shown and not as_json:
        screen.line((f"Nothing is waiting for {relay.name}.", "dim"))
    return 0


async def _next(relay: RelayClient, *, follow: bool) -> Message | None:
    """The next message; None when there is none and nothing is waiting at the daemon either."""
    from agent_relay.sdk.errors import TimedOut

    if follow:
        return await relay.receive()
    while True:
        try:
            return await relay.receive(_QUIET_S)
        except TimedOut:
            mine = (await relay.agents()).find(relay.name)
            if mine is None or not mine.queue_depth + mine.inflight:
                return None


def _show(screen: Screen, message: Message, *, as_json: bool) -> None:
    shown = {
        "message_id": message.id, "from": message.from_, "to": message.to, "topic": message.topic,
        "ts": message.ts - message.queued_ms,  # when it was sent, not when it came
        "kind": message.kind, "thread": message.thread, "payload": message.payload, "copy": message.is_copy,
    }  # fmt: skip
    if as_json:
        extra = {
            "reply_to": message.reply_to,
            "correlationId": message.correlation_id,
            "seq": message.seq,
            "attempt": message.attempt,
        }
        screen.json_line(shown | extra)
        return
    show_heading(screen, shown)
    show_text(screen, shown, whole=True)


# --- looking ------------------------------------------------------------------------------------------------------------


async def _peek(place: Place, screen: Screen, name: str, limit: int | None, *, as_json: bool) -> int:
    from agent_relay.cli.project.link import observe

    async with observe(place) as relay:
        agent = await _find_agent(relay, name)
        messages = await (find_unseen(relay, place, agent.name) if is_you(agent.name) else find_pending(relay, agent))
    for message in messages[:limit]:
        _show_stored(screen, message, as_json=as_json)
    if not messages and not as_json:
        screen.line((f"Nothing is waiting for {agent.name}.", "dim"))
    return 0


def _show_stored(screen: Screen, message: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        meta = message.get("payload_meta") or {}
        extra = {"reply_to": meta.get("reply_to"), "correlationId": (meta.get("sync") or {}).get("correlationId")}
        screen.json_line({field: message.get(field) for field in MESSAGE_TO_PROGRAMS} | extra)
    else:
        show_heading(screen, message)
        show_text(screen, message, whole=True)


async def _find_agent(relay: RelayClient, name: str) -> AgentInfo:
    view = await relay.agents()
    agent = view.find(name)
    if agent is None:
        near = did_you_mean(name, [known.name for known in view.agents])
        raise RelayError(ErrorCode.AGENT_NOT_FOUND, f"No agent {name} has ever connected.", did_you_mean=near)
    return agent
