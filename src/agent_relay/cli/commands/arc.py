"""`arc`: identities at ARC relays, talking as them, and checking a relay. The work is done in `cli.arc`."""

from __future__ import annotations

from typing import Annotated

import typer

from agent_relay.cli.arc.identity import As, Invite, TokenSource, Url
from agent_relay.cli.options import Json, Socket, StateDir, find_place, inherit, read_duration_ms
from agent_relay.cli.output.screen import Screen

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
    from agent_relay.cli.arc.registry import list_agents

    return list_agents(find_place(socket, state_dir), None, as_json=as_json)


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
    from agent_relay.cli.arc.registry import register_agent

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    return register_agent(find_place(socket, state_dir), url, agent_id, invite, as_json=as_json)


@arc.command("tokens", epilog="\b\nExamples:\n  agent-relay arc tokens\n  agent-relay arc tokens --json")
def tokens(
    context: typer.Context, url: Url = None, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None
) -> int:
    """List the agents registered at the project's daemon, and whose tokens are saved here. Shows no tokens."""
    from agent_relay.cli.arc.registry import list_agents

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    return list_agents(find_place(socket, state_dir), url, as_json=as_json)


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
    from agent_relay.cli.arc.registry import revoke_agent

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    return revoke_agent(find_place(socket, state_dir), url, agent_id, as_json=as_json)


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
    from agent_relay.cli.arc.registry import free_agent

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    return free_agent(find_place(socket, state_dir), agent_id, as_json=as_json)


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
    from agent_relay.cli.arc.registry import make_invitation

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    return make_invitation(place, agent_id, uses, read_duration_ms(expires, "--expires"), as_json=as_json)


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
    from agent_relay.cli.arc.registry import list_invitations, withdraw_invitation

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    if withdraw is not None:
        return withdraw_invitation(place, withdraw, as_json=as_json)
    return list_invitations(place, as_json=as_json)


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
