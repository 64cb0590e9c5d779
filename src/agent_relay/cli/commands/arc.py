"""`arc`: identities at ARC relays, talking as them, and checking a relay."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from agent_relay.cli.arc.identity import As, Invite, TokenSource, Url
from agent_relay.cli.failures import Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place, inherit, read_duration_ms
from agent_relay.cli.output.formats import count, format_time
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Column, Screen

if TYPE_CHECKING:
    from agent_relay.arc.http_calls import Answer
    from agent_relay.sdk.locate import Place

_AGENTS = "/api/v1/arc/agents"
_INVITATIONS = "/api/v1/arc/invitations"

arc = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    subcommand_metavar="[register|listen|send|tokens|revoke|free|invite|invitations|conformance]",
)


@arc.callback(invoke_without_command=True)
def root(context: typer.Context, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Agents over WebSockets: register them, talk as them, and check a relay.

    Without a subcommand, lists them like `arc tokens`.
    """
    if context.invoked_subcommand is not None:
        context.obj = (socket, state_dir, as_json)
        return 0
    return _list(find_place(socket, state_dir), None, as_json=as_json)


# --- identities ---------------------------------------------------------------------------------------------------------


@arc.command(
    "register",
    epilog="\b\nExamples:\n  agent-relay arc register rawk-042\n  agent-relay arc register --url wss://relay.example.com/arc",
)
def register(
    context: typer.Context,
    agent_id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="3 to 64 of a-z, 0-9 and hyphens; by default the relay picks one.", show_default=False),
    ] = None,
    invite: Invite = None,
    url: Url = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Register an agent at a relay and save its token.

    Your own daemon needs no invitation; other relays usually do. The token is shown only once. It is saved in
    arc-tokens.json in the daemon's directory, which only you can read; `arc listen`, `arc send` and `bridge` find it
    there.
    """
    from agent_relay.arc import registration
    from agent_relay.arc.token_file import TokenFile
    from agent_relay.cli.arc.identity import find_admission, find_url, run_arc

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    address = find_url(place, url)
    code, api_token = find_admission(place, url, invite)
    kept = TokenFile(place.state_dir)

    async def work() -> Any:
        kept.all()  # a file that cannot be used is said before the id is taken
        given = await registration.register(address, agent_id, invite=code, api_token=api_token)
        kept.keep(address, given.agent_id, given.token, own=url is None)
        return given

    given = run_arc(work())
    screen = Screen()
    if as_json:
        screen.json({"agent_id": given.agent_id, "token": given.token, "url": address, "kept_in": kept.path})
        return 0
    screen.line(("registered", "bold green"), "  ", (clean_line(given.agent_id), "bold"), f" at {clean_line(address)}")
    screen.line("token       ", clean_line(given.token), ("  shown only once", "dim"))
    screen.line("saved in    ", clean_line(kept.path))
    return 0


@arc.command("tokens", epilog="\b\nExamples:\n  agent-relay arc tokens\n  agent-relay arc tokens --json")
def tokens(
    context: typer.Context, url: Url = None, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None
) -> int:
    """List the agents registered at the project's daemon, and whose tokens are saved here. Shows no tokens."""
    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    return _list(find_place(socket, state_dir), url, as_json=as_json)


@arc.command("revoke", epilog="\b\nExample:\n  agent-relay arc revoke rawk-042")
def revoke(
    context: typer.Context,
    agent_id: Annotated[str, typer.Argument(metavar="ID", help="The agent.", show_default=False)],
    url: Url = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Revoke an agent's token and close its connection. Its id stays taken; `arc free` frees it.

    Works at any relay if the agent's token is saved here, otherwise only at the project's own daemon.
    """
    from agent_relay.arc.token_file import TokenFile
    from agent_relay.cli.arc.identity import find_url, run_arc

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    address = find_url(place, url)

    async def work() -> None:
        await _revoke(place, address, agent_id, TokenFile(place.state_dir), own_daemon=url is None)

    run_arc(work())
    screen = Screen()
    if as_json:
        screen.json({"agent_id": agent_id, "revoked": True})
    else:
        screen.line(("revoked", "bold green"), "  ", clean_line(agent_id))
    return 0


async def _revoke(place: Place, address: str, agent_id: str, file: Any, *, own_daemon: bool) -> None:
    from agent_relay.arc import registration
    from agent_relay.arc.errors import ArcRefused

    kept = file.find(address, agent_id, own=own_daemon)
    if not kept and not own_daemon:
        raise Failure(clean_line(f"No saved token of {agent_id} for {address}; only its holder can revoke it there."))
    if kept:
        try:
            await registration.unregister(address, kept[0].token)
        except ArcRefused as refused:
            if refused.status != 401:
                raise
            kept = []  # it was not valid any more, which says nothing about another token of the same agent
        file.forget(address, agent_id, own=own_daemon)
    if not kept and own_daemon:
        _expect(await _administer(place, address, "DELETE", f"{_AGENTS}/{quote(agent_id, safe='')}"))


async def _administer(place: Place, address: str, method: str, path: str, body: Any = None) -> Answer:
    """As whoever runs the daemon."""
    from agent_relay.arc.http_calls import call
    from agent_relay.cli.arc.identity import own_api_token

    return await call(address, method, path, body=body, token=own_api_token(place))


def _expect(answer: Answer) -> dict[str, Any]:
    from agent_relay.arc.http_calls import read_refusal

    if answer.status not in {200, 201}:
        raise read_refusal(answer)
    return answer.body if isinstance(answer.body, dict) else {}


def _list(place: Place, url: str | None, *, as_json: bool) -> int:
    from agent_relay.arc.addresses import parse_address
    from agent_relay.arc.token_file import TokenFile
    from agent_relay.cli.arc.identity import find_url, run_arc

    async def work() -> tuple[list[dict[str, Any]], str]:
        address = parse_address(find_url(place, url)).http_url
        kept = {one.agent_id for one in TokenFile(place.state_dir).find(address, own=url is None)}
        found = [] if url is not None else _expect(await _administer(place, address, "GET", _AGENTS)).get("agents", [])
        known = {str(agent.get("agent_id")): agent for agent in found}
        return [
            {**known.get(name, {"agent_id": name}), "kept_here": name in kept} for name in sorted(known.keys() | kept)
        ], address

    agents, address = run_arc(work())
    screen = Screen()
    if as_json:
        screen.json({"agents": agents, "next_cursor": None})
        return 0
    if not agents:
        screen.line((f"No agents are registered at {clean_line(address)}. Register one with: agent-relay arc register", "dim"))
        return 0
    columns = (Column("agent"), Column("state"), Column("token here"), Column("subscriptions", optional=True))
    rows = [
        [clean_line(str(agent["agent_id"])), _state(agent), "yes" if agent["kept_here"] else "",
         clean_line(", ".join(map(str, agent.get("subscriptions") or ())))]
        for agent in agents
    ]  # fmt: skip
    screen.table(columns, rows)
    return 0


def _state(agent: dict[str, Any]) -> tuple[str, str]:
    if "connected" not in agent:
        return ("", "")
    if agent.get("revoked_at") is not None:
        return ("revoked", "red")
    return ("connected", "green") if agent["connected"] else ("offline", "dim")


@arc.command("free", epilog="\b\nExample:\n  agent-relay arc free rawk-042")
def free(
    context: typer.Context,
    agent_id: Annotated[str, typer.Argument(metavar="ID", help="The agent.", show_default=False)],
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Revoke an agent of the project's daemon and let anybody register its id again.

    Messages waiting for the agent become dead letters, so the next holder of the id does not get them.
    """
    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    _ask_daemon(place, "POST", f"{_AGENTS}/{quote(agent_id, safe='')}/free")
    screen = Screen()
    if as_json:
        screen.json({"agent_id": agent_id, "freed": True})
    else:
        screen.line(("freed", "bold green"), "  ", clean_line(agent_id))
    return 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _ask_daemon(place: Place, method: str, path: str, body: Any = None) -> dict[str, Any]:
    from agent_relay.cli.arc.identity import find_url, run_arc

    address = find_url(place, None)

    async def work() -> dict[str, Any]:
        return _expect(await _administer(place, address, method, path, body))

    return run_arc(work())


# --- invitations --------------------------------------------------------------------------------------------------------


@arc.command(
    "invite",
    epilog="\b\nExamples:\n  agent-relay arc invite rawk-042\n  agent-relay arc invite --uses 20 --expires 7d --json",
)
def invite(
    context: typer.Context,
    agent_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The only id it can register; by default any.", show_default=False)
    ] = None,
    uses: Annotated[int, typer.Option("--uses", min=1, metavar="N", help="How many agents can register with it.")] = 1,
    expires: Annotated[str, typer.Option("--expires", metavar="TIME", help="How long it is valid: 30m, 24h, 7d.")] = "24h",
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Invite somebody to register at the project's daemon without its API token. The code is shown only once."""
    from agent_relay.cli.arc.identity import find_url

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    body = {"uses": uses, "lasts_ms": read_duration_ms(expires, "--expires")} | ({"agent_id": agent_id} if agent_id else {})
    made = _ask_daemon(place, "POST", _INVITATIONS, body)
    screen = Screen()
    if as_json:
        screen.json(made)
        return 0
    screen.line(("invitation", "bold green"), "  ", clean_line(str(made["invite"])), ("  shown only once", "dim"))
    screen.line("valid for   ", f"{agent_id or count(uses, 'agent')}, until {format_time(int(made['expires_at']), _now_ms())}")
    command = " ".join(["agent-relay arc register", *([agent_id] if agent_id else []), f"--invite {made['invite']}"])
    screen.line("used with   ", clean_line(f"{command} --url {find_url(place, None)}"))
    return 0


@arc.command(
    "invitations", epilog="\b\nExamples:\n  agent-relay arc invitations\n  agent-relay arc invitations --withdraw 7k2m0q9x"
)
def invitations(
    context: typer.Context,
    withdraw: Annotated[str | None, typer.Option("--withdraw", metavar="ID", help="Withdraw this invitation.")] = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """List open invitations, or withdraw one. Shows no codes."""
    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    screen = Screen()
    if withdraw is not None:
        gone = _ask_daemon(place, "DELETE", f"{_INVITATIONS}/{quote(withdraw, safe='')}")
        if as_json:
            screen.json(gone)
        else:
            screen.line(("withdrawn", "bold green"), "  ", clean_line(withdraw))
        return 0
    found = _ask_daemon(place, "GET", _INVITATIONS)
    if as_json:
        screen.json(found)
        return 0
    rows = [
        [str(one["id"]), str(one["agent_id"] or "any"), str(one["uses_left"]), format_time(int(one["expires_at"]), _now_ms())]
        for one in found.get("invitations", [])
    ]
    if rows:
        screen.table((Column("id"), Column("for"), Column("uses left"), Column("until")), rows)
    else:
        screen.line(("There are no open invitations. Create one with: agent-relay arc invite", "dim"))
    return 0


# --- talking ------------------------------------------------------------------------------------------------------------


@arc.command(
    "listen",
    epilog="\b\nExamples:\n  agent-relay arc listen\n  agent-relay arc listen --as rawk-042 --subscribe news-bot --json",
)
def listen(
    context: typer.Context,
    agent_id: As = None,
    subscribe: Annotated[
        list[str] | None, typer.Option("--subscribe", metavar="ID", help="Subscribe to this agent's broadcasts; may be repeated.")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="MESSAGE", help="Start after this message.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Stop after this many messages.")] = None,
    url: Url = None,
    token_file: TokenSource = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Print messages to an agent at an ARC relay, until Ctrl-C. With --json: one object per line.

    Reconnects by itself and catches up on missed messages. The token comes from AGENT_RELAY_ARC_TOKEN, from --token-file,
    or from where `arc register` saved it.
    """
    from agent_relay.cli.arc.identity import find_identity, run_arc
    from agent_relay.cli.arc.talk import listen_as

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    identity = find_identity(find_place(socket, state_dir), url, agent_id, token_file)
    return run_arc(listen_as(identity, Screen(), subscribe or [], since, limit, as_json=as_json))


@arc.command(
    "send",
    epilog="\b\nExamples:\n  agent-relay arc send bob-7 'Are you there?'\n  agent-relay arc send '*' '{\"n\": 1}' --parse",
)
def send(
    context: typer.Context,
    to: Annotated[str, typer.Argument(metavar="TO", help="An agent's id, ids separated by commas, or '*'.", show_default=False)],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads standard input.", show_default=False)],
    agent_id: As = None,
    parse: Annotated[bool, typer.Option("--parse", help="Parse TEXT as JSON and send the value.")] = False,
    url: Url = None,
    token_file: TokenSource = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Send a message as an agent at an ARC relay; returns once the relay has it.

    This connects as the agent, and an agent has only one connection, so a `listen` of the same agent ends. Messages
    waiting for the agent arrive on this connection and are shown.
    """
    from agent_relay.cli.arc.identity import find_identity, run_arc
    from agent_relay.cli.arc.talk import read_payload, send_as
    from agent_relay.cli.commands.send import read_body, read_target

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    payload = read_payload(read_body(text), parse=parse)
    identity = find_identity(find_place(socket, state_dir), url, agent_id, token_file)
    return run_arc(send_as(identity, Screen(), read_target(to), payload, as_json=as_json))


# --- checking -----------------------------------------------------------------------------------------------------------


@arc.command(
    "conformance",
    epilog="\b\nExamples:\n  agent-relay arc conformance --url ws://127.0.0.1:3888/arc\n"
    "  agent-relay arc conformance --section routing --json",
)
def conformance(
    context: typer.Context,
    url: Url = None,
    section: Annotated[
        list[str] | None, typer.Option("--section", metavar="NAME", help="Check only this section; may be repeated.")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to wait for a frame.")
    ] = 5.0,
    strict: Annotated[bool, typer.Option("--strict", help="Also fail if advice is not followed.")] = False,
    invite: Invite = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Check whether a relay, ours or another, follows the ARC protocol.

    Registers about a dozen agents there and sends a few hundred small messages. Rules that apply to every relay are
    required, and so are those of features the relay announces; advice is only shown. Exit status 1: a rule is broken or
    could not be checked.
    """
    from agent_relay.cli.arc.conformance import check_relay
    from agent_relay.cli.arc.identity import find_admission, find_url, run_arc

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    address = find_url(place, url)
    code, api_token = find_admission(place, url, invite)
    return run_arc(
        check_relay(address, Screen(), section or [], timeout_s, invite=code, api_token=api_token, strict=strict, as_json=as_json)
    )
