"""`history` and `read`: what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.options import Json, MessageId, Socket, StateDir, agent_option, find_place, read_moment_ms
from agent_relay.cli.output.formats import format_time, now_ms
from agent_relay.cli.output.message_view import show_heading, show_text, status_part, target_of, text_of
from agent_relay.cli.output.safe_text import clean_block, clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.locate import Place
    from agent_relay.sdk.views import HistoryPage

_PAGE = 500


def history(
    with_agent: Annotated[str | None, agent_option("--with", "From or to this agent.")] = None,
    sender: Annotated[str | None, agent_option("--from", "From this agent.")] = None,
    to: Annotated[str | None, agent_option("--to", "To this agent, #channel or '*'.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Under this topic.")] = None,
    thread: Annotated[str | None, typer.Option("--thread", metavar="NAME", help="In this thread.")] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="Of this kind: message, action, state, thinking.")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="WHEN", help="Start: 1h, 7d, or 2025-01-31 14:00.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="WHEN", help="End, in the same format.")] = None,
    search: Annotated[str | None, typer.Option("--search", metavar="WORDS", help="Containing all of these words.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show at most this many, the newest.")] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", metavar="C", help="Continue where an earlier call ended.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep showing new messages until Ctrl-C.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Show messages, newest last.

    With --json: {"messages": [newest first], "next_cursor": where to continue, or null}; with --follow, one object per line.
    """
    from agent_relay.cli.project.link import observe, run

    place = find_place(socket, state_dir)
    asked: dict[str, Any] = {
        "with_": with_agent, "from_": sender, "to": to, "topic": topic, "thread": thread, "kind": kind, "search": search,
        "since": read_moment_ms(since, "--since"), "until": read_moment_ms(until, "--until"),
    }  # fmt: skip

    if follow:
        return run(_follow(place, Screen(), asked, limit, cursor, as_json=as_json))

    async def ask() -> HistoryPage:
        async with observe(place) as relay:
            return await _collect(relay, asked, limit, cursor)

    page = run(ask())
    screen = Screen()
    if as_json:
        screen.json({"messages": page.messages, "next_cursor": page.next_cursor})
    else:
        _show_page(screen, page)
    return 0


async def _collect(relay: RelayClient, asked: dict[str, Any], limit: int, cursor: str | None) -> HistoryPage:
    """As many as asked for, in pages of a size that keeps each answer small."""
    from agent_relay.sdk.views import HistoryPage

    messages: list[dict[str, Any]] = []
    while True:
        page = await relay.history(**asked, limit=min(_PAGE, limit - len(messages)), cursor=cursor)
        messages += page.messages
        cursor = page.next_cursor
        if cursor is None or len(messages) >= limit:
            return HistoryPage(messages, cursor)


async def _follow(
    place: Place, screen: Screen, asked: dict[str, Any], limit: int, cursor: str | None, *, as_json: bool
) -> int:  # fmt: skip
    """Shows what there is, and then what comes: every event of a message is a reason to look past the last one shown."""
    from agent_relay.protocol.retry import RECONNECT_ATTEMPTS
    from agent_relay.sdk.client import RelayClient

    async with (
        RelayClient(socket=place.socket, observer=True, reconnect_attempts=RECONNECT_ATTEMPTS) as relay,
        relay.events(["message.exchanged"]) as feed,
    ):
        newest = (await relay.history(limit=1)).messages  # of all there are: filters may let none of them through
        page = await _collect(relay, asked, limit, cursor)
        for message in reversed(page.messages):
            _show_one(screen, message, as_json=as_json)
        screen.flush()
        last = str((page.messages or newest or [{}])[0].get("message_id") or "")
        async for _ in feed:
            last = await _show_after(relay, screen, asked, last, as_json=as_json)
    return 0


async def _show_after(relay: RelayClient, screen: Screen, asked: dict[str, Any], last: str, *, as_json: bool) -> str:
    """The last one shown, by which the next look begins."""
    while True:
        page = await relay.history(**asked, limit=_PAGE, cursor=last or None, oldest_first=True)
        for message in page.messages:
            _show_one(screen, message, as_json=as_json)
        screen.flush()
        if page.messages:
            last = str(page.messages[-1]["message_id"])
        if page.next_cursor is None or not page.messages:
            return last


def _show_one(screen: Screen, message: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        screen.json_line(message)
        return
    show_heading(screen, message, *status_part(message))
    show_text(screen, message, whole=False)


def _show_page(screen: Screen, page: HistoryPage) -> None:
    if page.next_cursor is not None:
        screen.line((f"… older messages: --cursor {clean_line(page.next_cursor)}", "dim"))
    for message in reversed(page.messages):
        _show_one(screen, message, as_json=False)
    if not page.messages:
        screen.line(("No messages.", "dim"))


def read(message_id: MessageId, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Show one message in full. This does not acknowledge it."""
    from agent_relay.cli.project.link import observe, run

    place = find_place(socket, state_dir)

    async def ask() -> dict[str, Any]:
        async with observe(place) as relay:
            return (await relay.message(message_id)).message

    message = run(ask())
    screen = Screen()
    if as_json:
        screen.json(message)
    else:
        _show_whole(screen, message)
    return 0


def _show_whole(screen: Screen, message: dict[str, Any]) -> None:
    fields = {
        "id": message.get("message_id"),
        "from": message.get("from"),
        "to": target_of(message),
        "time": format_time(int(message.get("ts") or 0), now_ms(), exact=True),
        "kind": None if message.get("kind") == "message" else message.get("kind"),
        "topic": message.get("topic") if message.get("to") else None,
        "thread": message.get("thread"),
        "answers": (message.get("payload_meta") or {}).get("reply_to"),
    }
    for label, value in fields.items():
        if value:
            screen.line((f"{label:<8}", "dim"), "  ", clean_line(str(value)))
    for one in message.get("recipients") or ():
        screen.line((f"{'status':<8}", "dim"), "  ", clean_line(f"{one.get('name')}: {one.get('status')}"))
    screen.line()
    screen.block(clean_block(text_of(message)).rstrip("\n"), indent=0)
