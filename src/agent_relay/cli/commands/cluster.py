"""`cluster`: what an operator does for the log that the hosts of a project share, and for a host that leaves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.failures import FAILED, USAGE, Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place, inherit
from agent_relay.cli.output.formats import count, format_bytes
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from agent_relay.daemon.cluster.repair import RepairPlan

cluster = typer.Typer(rich_markup_mode=None, add_completion=False, subcommand_metavar="repair|leave")


@cluster.callback()
def root(context: typer.Context, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> None:
    """Mend the log that a project's hosts share, or leave the cluster."""
    context.obj = (socket, state_dir, as_json)


@cluster.command("repair", epilog="\b\nExamples:\n  agent-relay cluster repair\n  agent-relay cluster repair --yes")
def repair(
    context: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it; without this, only show what would be done.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Append confirmed records that NATS has lost to the cluster's log again, from those that this host has kept.

    Run it at the host that has copied most, when `status` says log_regressed. Nothing is changed unless every record fits into
    its place exactly. Needs AGENT_RELAY_CLUSTER_TOKEN if the daemon did.
    """
    import asyncio

    from agent_relay.cli.project.cluster_settings import read_cluster_settings

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    config = read_cluster_settings(find_place(socket, state_dir))
    if config is None:
        raise Failure("This project has no cluster; see docs/cluster.md.", USAGE)
    from agent_relay.daemon.cluster.client import ClusterUnreachable
    from agent_relay.daemon.cluster.repair import repair_log

    screen = Screen(sys.stderr)
    status = screen.console.status("looking at the log") if screen.is_terminal and not as_json else None

    def show(done: int, total: int) -> None:
        if status is not None:
            status.update(f"appending records: {done:,} of {total:,}")

    if status is not None:
        status.start()
    try:
        plan = asyncio.run(repair_log(config, is_dry=not yes, progress=show))
    except ClusterUnreachable as error:
        raise Failure(f"NATS cannot be reached: {error}") from None
    finally:
        if status is not None:
            status.stop()
    _report(plan, as_json=as_json)
    return FAILED if plan.refusal else 0


@cluster.command("leave", epilog="\b\nExamples:\n  agent-relay cluster leave\n  agent-relay cluster leave --yes")
def leave(
    context: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it; without this, only show what would be done.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Take this host out of its cluster for good: its copy becomes a store of its own, for a daemon alone.

    Messages, agents and channels stay; budgets, ARC tokens and the list of excluded hosts belong to the cluster. There is no way
    back with this database: to join again, move it away and start with --cluster. The daemon must be stopped first.
    """
    import sqlite3

    from agent_relay.cli.project.cluster_settings import read_cluster_settings
    from agent_relay.daemon.directories import PlaceUnusable
    from agent_relay.daemon.store_at_rest import find_copied, leave_cluster

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    config = read_cluster_settings(find_place(socket, state_dir))
    position = 0 if config is None else find_copied(config.storage_path)
    if config is None or not position:
        raise Failure("This project's database is no copy of a cluster: there is nothing to leave.", USAGE)
    if yes:
        try:
            leave_cluster(config)
        except PlaceUnusable as error:
            raise Failure(f"{error} Stop it first: agent-relay down") from None
        except (OSError, sqlite3.Error) as error:
            raise Failure(f"{config.storage_path} cannot be written: {error}.") from None
    screen = Screen()
    if as_json:
        screen.json({"database": config.storage_path, "position": position, "has_left": yes})
    elif yes:
        screen.line(("left", "bold green"), f"  {config.storage_path} is a store of its own now. To use it: agent-relay up")
    else:
        screen.line(f"{config.storage_path} would follow its cluster no more; it has everything up to record {position:,}.")
        screen.line("To do it: ", ("agent-relay cluster leave --yes", "bold"))
    return 0


def _report(plan: RepairPlan, *, as_json: bool) -> None:
    from msgspec import to_builtins

    screen = Screen()
    if as_json:
        screen.json(to_builtins(plan))
        return
    end = f"ends at record {plan.log_last:,}" if plan.log_last else "is empty or gone"
    kept = f"has kept records {plan.kept_first:,} to {plan.kept_last:,}"
    copied = f"has copied {plan.kept_last:,} records, and kept none"
    screen.line(f"The log {end}; this host {kept if plan.kept_first <= plan.kept_last else copied}.")
    records = f"{count(plan.missing, 'record')} ({format_bytes(plan.missing_bytes)})"
    if plan.refusal:
        screen.line(("Nothing can be repaired here: ", "bold red"), clean_line(plan.refusal))
    elif plan.is_done:
        screen.line(("repaired", "bold green"), f"  {records} appended; a host takes the seat within seconds")
    elif plan.missing or plan.creates:
        made = "The log would be made anew, and " if plan.creates else ""
        screen.line(f"{made}{records} would be appended. To do it: ", ("agent-relay cluster repair --yes", "bold"))
    else:
        screen.line(("Nothing is missing.", "bold green"))
