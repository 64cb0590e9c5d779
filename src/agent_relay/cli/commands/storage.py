"""`storage`: moving a project's history from one kind of store to another."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.failures import FAILED, USAGE, Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place, inherit
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from agent_relay.daemon.store_copy import Totals

storage = typer.Typer(rich_markup_mode=None, add_completion=False, subcommand_metavar="copy")


@storage.callback()
def root(context: typer.Context, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> None:
    """Copy a project's messages from one kind of store to another."""
    context.obj = (socket, state_dir, as_json)


@storage.command("copy", epilog="\b\nExample:\n  agent-relay storage copy --from sqlite --to postgres")
def copy(
    context: typer.Context,
    source: Annotated[str, typer.Option("--from", metavar="KIND", help="sqlite or postgres.")],
    target: Annotated[str, typer.Option("--to", metavar="KIND", help="postgres or sqlite.")],
    storage_path: Annotated[
        str | None, typer.Option("--storage-path", metavar="VALUE", help="The SQLite file, as in `up`.", show_default=False)
    ] = None,
    storage_url: Annotated[
        str | None, typer.Option("--storage-url", metavar="VALUE", help="The database, as in `up`.", show_default=False)
    ] = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Copy the project's messages, agents and queues into another store, and verify the copy.

    The daemon must be stopped. An interrupted copy continues where it was when you run it again. The source stays as it is.
    """
    from agent_relay.cli.commands.down import find_daemon
    from agent_relay.cli.foreground import daemon_arguments
    from agent_relay.daemon.config import ConfigError
    from agent_relay.daemon.main import parse
    from agent_relay.daemon.store_copy import KINDS, CopyFailed, copy_project

    if {source, target} != set(KINDS):
        raise Failure("--from and --to must be sqlite and postgres, in either order.", USAGE)
    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    pid = find_daemon(place)
    if pid is not None:
        raise Failure(f"The daemon is running (pid {pid}). Stop it first: agent-relay down")
    given = {name: value for name, value in (("storage_path", storage_path), ("storage_url", storage_url)) if value is not None}
    try:
        config = parse(daemon_arguments(place.socket, place.state_dir, place.root, given))
    except ConfigError as error:
        raise Failure(str(error), USAGE) from None
    watch = _Progress()
    try:
        totals = copy_project(source, target, config, watch.show, watch.check)
    except CopyFailed as error:
        raise Failure(str(error)) from None
    finally:
        watch.end()
    wrong = [name for name, (here, there) in totals.items() if here != there]
    _report(totals, wrong, _spell_start(target, given), as_json=as_json)
    return FAILED if wrong else 0


class _Progress:
    """A line that changes, where somebody watches."""

    def __init__(self) -> None:
        screen = Screen(sys.stderr)
        self._status = screen.console.status("copying") if screen.is_terminal else None
        if self._status is not None:
            self._status.start()

    def show(self, table: str, done: int, total: int) -> None:
        if self._status is not None:
            self._status.update(f"copying {table}: {done:,} of {total:,}")

    def check(self) -> None:
        if self._status is not None:
            self._status.update("verifying the copy")

    def end(self) -> None:
        if self._status is not None:
            self._status.stop()


def _spell_start(target: str, given: dict[str, str]) -> str:
    """The command that uses the copy: with the place that was given here, which no file of settings may know."""
    name, flag = ("storage_url", "--storage-url") if target == "postgres" else ("storage_path", "--storage-path")
    where = f" {flag} {shlex.quote(given[name])}" if name in given else ""
    return f"agent-relay up --storage {target}{where}"


def _report(totals: dict[str, tuple[Totals, Totals]], wrong: list[str], start: str, *, as_json: bool) -> None:
    from msgspec import to_builtins

    screen = Screen()
    if as_json:
        tables = {name: {"source": to_builtins(here), "target": to_builtins(there)} for name, (here, there) in totals.items()}
        screen.json({"verified": not wrong, "tables": tables, "wrong": wrong})
        return
    for name, (here, there) in totals.items():
        word, style = ("differs", "bold red") if name in wrong else ("verified", "green")
        screen.line(f"{name:<14}", f"{here.rows:>12,}  ", (word, style), f"  {there.rows:,} in the copy" if name in wrong else "")
    if wrong:
        advice = f"The copy is not whole ({', '.join(wrong)}), and no daemon will use it. Remove it and copy again."
        screen.line((clean_line(advice), "bold red"))
    else:
        screen.line(("copied", "bold green"), f"  start the daemon with it: {clean_line(start)}")
