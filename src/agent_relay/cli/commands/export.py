"""`export`: everything that is kept of one agent, as lines of JSON."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from typing import IO, TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import AgentName, Json, Socket, StateDir, find_place
from agent_relay.cli.output.formats import count
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.sdk.locate import Place

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient

_PAGE = 500


def export(
    name: AgentName,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file; NAME.jsonl by default, - is standard output."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Write everything the relay keeps about an agent to a file: messages, events, its inbox, outbox and screens.

    Only you can read the file (0600). It has one JSON object per line: {"kind": "agent"}, {"kind": "message", "message"},
    {"kind": "event", "event"}, {"kind": "file", "path", "text"}, and finally {"kind": "end", "messages", "events",
    "files"}; if the last line is missing, the export is incomplete. Messages come newest first. --json prints a summary:
    {"name", "path", "messages", "events", "files"}.
    """
    from agent_relay.cli.project.link import run
    from agent_relay.protocol.names import check_agent_name

    check_agent_name(name)
    place = find_place(socket, state_dir)
    path = output or f"{name}.jsonl"
    with _open(path, force=force) as file:
        counts = run(_write(place, name, file))
    screen = Screen()
    if path == "-":
        return 0
    if as_json:
        screen.json({"name": name, "path": os.path.abspath(path)} | counts)
    else:
        said = f"{count(counts['messages'], 'message')}, {count(counts['events'], 'event')} and {count(counts['files'], 'file')}"
        screen.line(f"Exported {said} of {clean_line(name)} to ", (clean_line(path), "bold"), ".")
    return 0


@contextlib.contextmanager
def _open(path: str, *, force: bool) -> Iterator[IO[bytes]]:
    if path == "-":
        yield sys.stdout.buffer
        return
    how = os.O_TRUNC if force else os.O_EXCL
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | how, 0o600)
    except FileExistsError:
        raise Failure(
            f"{clean_line(path)} already exists. Choose another file with --output, or overwrite it with --force."
        ) from None
    except OSError as error:
        raise Failure(f"{clean_line(path)} cannot be written: {error.strerror}.") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


async def _write(place: Place, name: str, file: IO[bytes]) -> dict[str, int]:
    from agent_relay.cli.project.link import observe

    counts = {"messages": 0, "events": 0, "files": 0}
    async with observe(place) as relay:
        async for line in _lines(relay, place, name):
            field = f"{line['kind']}s"
            if field in counts:
                counts[field] += 1
            file.write(msgspec.json.encode(line) + b"\n")
    file.write(msgspec.json.encode({"kind": "end"} | counts) + b"\n")
    file.flush()
    return counts


async def _lines(relay: RelayClient, place: Place, name: str) -> AsyncIterator[dict[str, Any]]:
    from agent_relay.daemon.leavings import read_agent_files
    from agent_relay.events.codec import encode_event

    for agent in (await relay.agents()).agents:
        if agent.name.lower() == name.lower():
            yield {"kind": "agent"} | agent.raw
    cursor: str | None = None
    while True:
        page = await relay.history(with_=name, limit=_PAGE, cursor=cursor)
        for message in page.messages:
            yield {"kind": "message", "message": message}
        cursor = page.next_cursor
        if cursor is None:
            break
    while True:
        found = await relay.past_events(agent=name, limit=_PAGE, cursor=cursor)
        for event in found.events:
            yield {"kind": "event", "event": msgspec.Raw(encode_event(event))}
        cursor = found.next_cursor
        if cursor is None:
            break
    for path, text in read_agent_files(place.state_dir, name):
        yield {"kind": "file", "path": path, "text": text}
