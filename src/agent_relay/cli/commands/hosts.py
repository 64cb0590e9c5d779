"""`hosts`: the hosts of the cluster, as this one sees them."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from agent_relay.cli.failures import Failure, not_running
from agent_relay.cli.options import Json, Socket, StateDir, find_place, inherit
from agent_relay.cli.output.formats import format_span, now_ms
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Column, Part, Screen
from agent_relay.cli.project.cluster_file import read_cluster
from agent_relay.protocol.hosts import HostFacts, HostRole

_COLUMNS = (
    Column("host"), Column("role"), Column("agents", right=True), Column("load", right=True, optional=True),
    Column("behind", right=True), Column("clock", right=True, optional=True), Column("heard"),
    Column("version", optional=True), Column("starts", optional=True),
)  # fmt: skip
_STYLES = {HostRole.SEAT: "bold green", HostRole.EDGE: "green", HostRole.LOST: "red"}
_CLOCK_MS = 1_000  # below that, nobody notices
_NOW_MS = 10_000


hosts = typer.Typer(rich_markup_mode=None, add_completion=False, subcommand_metavar="[exclude|include]")
Host = Annotated[
    str, typer.Argument(metavar="HOST", help="The host's name, as `agent-relay hosts` shows it.", show_default=False)
]


@hosts.callback(invoke_without_command=True)
def root(context: typer.Context, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """List the hosts of the cluster: which has the seat, how each is doing, and when it was last heard.

    `behind` counts records of the log that a host has not copied yet; `clock` is how far its clock is ahead of this host's.
    Works also while this host is cut off.
    """
    if context.invoked_subcommand is not None:
        context.obj = (socket, state_dir, as_json)
        return 0
    from agent_relay.cli.project.daemon_process import is_held

    place = find_place(socket, state_dir)
    if not is_held(place.state_dir):
        raise not_running(place.socket)
    found = read_cluster(place.state_dir)
    if found is None:
        raise Failure("This daemon is not part of a cluster; docs/cluster.md shows how to start one.")
    screen = Screen()
    if as_json:
        screen.json(msgspec.to_builtins(found))
        return 0
    now = now_ms()
    screen.table(_COLUMNS, [_row(host, now) for host in found.hosts])
    if found.trouble:
        screen.line((clean_line(found.trouble), "yellow"))
    return 0


@hosts.command("exclude", epilog="\b\nExample:\n  agent-relay hosts exclude laptop")
def exclude(
    context: typer.Context, host: Host, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None
) -> int:  # fmt: skip
    """Exclude a host: its clients are not served, and it never has the seat.

    Run it on the host that has the seat, or on one that the seat's cluster_control lists. Whoever still has credentials for
    NATS can read the log: revoke those of that host there, too.
    """
    return _change(context, host, "exclude_host", "excluded", as_json, socket, state_dir)


@hosts.command("include", epilog="\b\nExample:\n  agent-relay hosts include laptop")
def include(
    context: typer.Context, host: Host, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None
) -> int:  # fmt: skip
    """Let an excluded host take part again."""
    return _change(context, host, "include_host", "included", as_json, socket, state_dir)


def _change(
    context: typer.Context, host: str, command: str, done: str, as_json: bool, socket: str | None, state_dir: str | None
) -> int:  # fmt: skip
    from agent_relay.cli.project.link import observe, run

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)

    async def order() -> None:
        async with observe(place) as relay:
            await relay.change_host(host, command)

    run(order())
    screen = Screen()
    if as_json:
        screen.json({"host": host, "excluded": command == "exclude_host"})
    else:
        screen.line((f"{clean_line(host)} is {done}", "bold green"))
    return 0


def _row(host: HostFacts, now: int) -> list[Part]:
    is_lost = host.role is HostRole.LOST
    silence = max(0, now - host.heard_at)
    clock = f"{'+' if host.clock_ms > 0 else '-'}{format_span(abs(host.clock_ms))}" if abs(host.clock_ms) >= _CLOCK_MS else "0"
    return [
        (clean_line(host.host) + (" (here)" if host.is_self else ""), "bold"),
        ("excluded", "red") if host.is_excluded else (host.role.value, _STYLES[host.role]),
        f"{host.agents:,}",
        f"{host.load:.2f}",
        (f"{host.behind:,}", "yellow" if host.behind and not is_lost else "dim"),
        (clock, "yellow" if clock != "0" else "dim"),
        ("now" if silence < _NOW_MS else f"{format_span(silence)} ago", "red" if is_lost else "dim"),
        clean_line(host.version),
        (clean_line(" ".join(host.starts)) or "-", "dim"),
    ]
