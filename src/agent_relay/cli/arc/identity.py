"""The relay that an `arc` command talks to, and as whom.

A token comes from AGENT_RELAY_ARC_TOKEN, from a file that is named, from standard input, or from the file where `arc register`
keeps them. It is never an argument: those stand in the list of processes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import typer

from agent_relay.arc.errors import ArcError
from agent_relay.arc.token_file import TokenFile
from agent_relay.cli.failures import USAGE, Failure, not_running
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.sdk.locate import Place
from agent_relay.sdk.owner import read_api_token

T = TypeVar("T")

ENV_ARC_TOKEN = "AGENT_RELAY_ARC_TOKEN"  # noqa: S105 - the name of a variable

Url = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="The relay, such as wss://relay.example.com/arc; by default the project's own daemon."
    ),
]
As = Annotated[str | None, typer.Option("--as", metavar="ID", help="The agent to act as, if several are registered.")]
TokenSource = Annotated[
    str | None, typer.Option("--token-file", metavar="PATH", help="Read the token from this file; - is standard input.")
]


Invite = Annotated[
    str | None, typer.Option("--invite", metavar="CODE", help="An invitation to the relay; - reads it from standard input.")
]


@dataclass(frozen=True, slots=True)
class Identity:
    url: str
    agent_id: str | None
    token: str = field(repr=False)


def run_arc(work: Coroutine[Any, Any, T]) -> T:
    """Runs it; what the relay refuses is a sentence."""
    from agent_relay.cli.project.link import run

    try:
        return run(work)
    except ArcError as error:
        raise explain_arc(error) from None


def explain_arc(error: ArcError) -> Failure:
    return Failure(clean_line(error.message))


def find_url(place: Place, given: str | None) -> str:
    """The relay's address; without one the project's own daemon."""
    if given is not None:
        return given
    from agent_relay.cli.project.http_server import read_http_place

    found = read_http_place(place.state_dir)
    if found is None:
        raise not_running(place.socket)
    if found.url is None:
        raise Failure(clean_line(f"ARC needs HTTP, and the daemon runs without it: {found.reason}"))
    return found.url


def find_admission(place: Place, url: str | None, invite: str | None) -> tuple[str | None, str | None]:
    """The right to register: an invitation, or at the project's own daemon the token of its API."""
    if invite is not None:
        code = sys.stdin.readline().strip() if invite == "-" else invite
        if not code:
            raise Failure("Standard input contains no invitation.", USAGE)
        return code, None
    return None, own_api_token(place) if url is None else None


def own_api_token(place: Place) -> str | None:
    """Of the project's own daemon, as whoever runs it."""
    return read_api_token(place.state_dir)


def find_identity(place: Place, url: str | None, agent_id: str | None, token_source: str | None) -> Identity:
    address = find_url(place, url)
    if token_source is not None:
        return Identity(address, agent_id, _read_token(token_source))
    if token := os.environ.get(ENV_ARC_TOKEN):
        return Identity(address, agent_id, token)
    try:
        kept = TokenFile(place.state_dir).find(address, agent_id, own=url is None)
    except ArcError as error:
        raise explain_arc(error) from None
    if len(kept) == 1:
        return Identity(address, kept[0].agent_id, kept[0].token)
    if kept:
        names = ", ".join(sorted(one.agent_id for one in kept))
        raise Failure(clean_line(f"Several agents are registered at {address}; choose one with --as ({names})."), USAGE)
    whom = agent_id or ""
    where = f" --url {url}" if url is not None else ""
    missing = f"No saved token{' of ' + whom if whom else ''} for {address}."
    raise Failure(clean_line(f"{missing} Register with: agent-relay arc register {whom}".rstrip() + where))


def _read_token(source: str) -> str:
    if source == "-":
        token = sys.stdin.readline().strip()
    else:
        with open(source, encoding="utf-8") as file:
            token = file.readline().strip()
    if not token:
        raise Failure("The file given with --token-file contains no token.", USAGE)
    return token
