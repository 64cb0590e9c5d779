"""`events`: what happens in the relay, as one stream."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from agent_relay.cli.options import Json, Socket, StateDir, agent_option, find_place, read_moment_ms
from agent_relay.cli.output.formats import format_time, now_ms
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.events.codec import encode_event
from agent_relay.events.types import Event, MessageExchanged, type_of

if TYPE_CHECKING:
    from agent_relay.events.types import Event
    from agent_relay.sdk.locate import Place


_PAGE = 500
_LAST_HOUR = "1h"
_LONGEST = 200  # characters of a text; --json has all of it
_PLAIN = {"type", "_seq", "_ts", "_sessionId", "_agentName", "sessionId", "agentName"}  # shown in front, or not worth it
_STYLES = {"permission": "yellow", "question": "yellow", "stream": "red", "loop": "red", "budget": "red", "message": "cyan"}


class SchemaName(StrEnum):
    EVENTS = "events"
    HEADER_FILE = "header-file"


def events(
    types: Annotated[
        str | None,
        typer.Option("--types", metavar="TYPES", help="Only these types, separated by commas; item.* matches all item events."),
    ] = None,
    agent: Annotated[str | None, agent_option("--agent", "Only events of this agent, and messages from or to it.")] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Only events of this session.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="N|WHEN", help="After event number N (0: all), or since a time: 1h, 7d, a date."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep showing new events until Ctrl-C.")] = False,
    schema: Annotated[
        SchemaName | None,
        typer.Option("--schema", help="Print the JSON Schema of events, or of header files (outbox), and exit."),
    ] = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Show events: messages, what agents do and ask, sessions, token usage.

    Without --since: the last hour, or with --follow only new events. With --json: one object per line, with the event's
    number in _seq.
    """
    if schema is not None:
        return _print_schema(schema)
    from agent_relay.cli.project.link import run

    wanted = [name.strip() for name in (types or "").split(",") if name.strip()]
    after_seq = int(since) if since is not None and since.isdecimal() else None
    if since is None and not follow:
        since = _LAST_HOUR
    since_ms = None if after_seq is not None else read_moment_ms(since, "--since")
    place = find_place(socket, state_dir)
    screen = Screen()
    if follow:
        return run(_follow(place, screen, wanted, agent, session, after_seq, since_ms, as_json=as_json))
    return run(_show_past(place, screen, wanted, agent, session, after_seq, since_ms, as_json=as_json))


def _print_schema(name: SchemaName) -> int:
    """As docs/api has it."""
    from agent_relay.events.schema import make_event_schema
    from agent_relay.protocol.header_schema import make_header_schema

    schema = make_event_schema() if name is SchemaName.EVENTS else make_header_schema()
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n")
    return 0


async def _show_past(
    place: Place, screen: Screen, types: list[str], agent: str | None, session: str | None, after_seq: int | None,
    since_ms: int | None, *, as_json: bool,
) -> int:  # fmt: skip
    from agent_relay.cli.project.link import observe

    cursor = None if after_seq is None else str(after_seq)
    shown = 0
    async with observe(place) as relay:
        while True:
            page = await relay.past_events(
                types, agent=agent, session_id=session, since=since_ms, limit=_PAGE, cursor=cursor
            )  # fmt: skip
            for event in page.events:
                _show(screen, event, as_json=as_json)
            shown += len(page.events)
            cursor = page.next_cursor
            if cursor is None:
                break
    if not shown and not as_json:
        screen.line(("No events.", "dim"))
    return 0


async def _follow(
    place: Place, screen: Screen, types: list[str], agent: str | None, session: str | None, after_seq: int | None,
    since_ms: int | None, *, as_json: bool,
) -> int:  # fmt: skip
    from agent_relay.protocol.retry import RECONNECT_ATTEMPTS
    from agent_relay.sdk.client import RelayClient

    async with RelayClient(socket=place.socket, observer=True, reconnect_attempts=RECONNECT_ATTEMPTS) as relay:
        async for event in relay.events(types, agent=agent, session_id=session, after_seq=after_seq, since=since_ms):
            _show(screen, event, as_json=as_json)
            screen.flush()
    return 0


def _show(screen: Screen, event: Event, *, as_json: bool) -> None:
    if as_json:
        screen.json_line(msgspec.json.decode(encode_event(event)))
    else:
        _show_line(screen, event, now_ms())


def _show_line(screen: Screen, event: Event, now_ms: int) -> None:
    kind = type_of(event)
    style = _STYLES.get(kind.partition(".")[0], "")
    screen.line(
        (format_time(event.ts, now_ms), "dim"), "  ", (f"{event.seq:>6}", "dim"), "  ",
        (f"{clean_line(event.by_agent or '-'):<12}", "bold"), "  ", (f"{kind:<20}", style), "  ",
        _describe(event),
    )  # fmt: skip


def _describe(event: Event) -> str:
    if isinstance(event, MessageExchanged):
        return f"{clean_line(event.from_)} → {clean_line(event.to or event.channel or '-')}: {_shorten(event.body)}"
    fields: dict[str, Any] = msgspec.to_builtins(event)
    return "  ".join(f"{name}={_show_value(value)}" for name, value in fields.items() if name not in _PLAIN)


def _show_value(value: Any) -> str:
    return _shorten(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def _shorten(text: str) -> str:
    line = clean_line(text)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
