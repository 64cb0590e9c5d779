"""`init`: sets a CLI up for the relay's tools, and takes that back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.failures import FAILED, OK, USAGE, Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.formats import count, join_names
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from agent_relay.cli.init.files import Shelf
    from agent_relay.cli.init.plan import Plan
    from agent_relay.sdk.locate import Place

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def complete_clis(incomplete: str) -> list[str]:
    from agent_relay.cli.init.targets import CLIS

    return [cli for cli in sorted(CLIS) if cli.startswith(incomplete.lower())]


def init(
    clis: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CLI]...",
            help="claude, codex, gemini, opencode, goose, aider, copilot, qwen, kilo, continue or vibe; by default those that "
            "are installed or used here.",
            autocompletion=complete_clis,
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take out again what init has written.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Set CLIs up for the relay: an MCP entry in their configuration, and a short section in their instruction file.

    Shows the difference and asks first. Nothing that you wrote is changed; --remove restores each file byte for byte if you did
    not change it since, and otherwise takes out only what is ours. `agent-relay wrap` works without this.
    """
    from agent_relay.cli.init.files import Shelf
    from agent_relay.cli.init.plan import make_plan
    from agent_relay.cli.init.targets import CLIS, LEFT_OUT, find_present

    place = find_place(socket, state_dir)
    wanted = list(dict.fromkeys(clis or (CLIS if remove else find_present(place.root))))
    unknown = [cli for cli in wanted if cli not in CLIS]
    if unknown and unknown[0] in LEFT_OUT:
        hint = "Run it under `agent-relay` without this: its agent is told how to write to others."
        raise Failure(f"{LEFT_OUT[unknown[0]]} {hint}", USAGE)
    if unknown:
        raise Failure(f"init does not know {clean_line(unknown[0])}; it knows {join_names(list(CLIS), 'and')}.", USAGE)
    if not wanted:
        raise Failure(f"None of {join_names(list(CLIS), 'and')} is installed; name the one you will use.", USAGE)
    shelf = Shelf(place.home)
    plan = make_plan(wanted, place.root, shelf, remove=remove)
    if as_json:
        return _run_for_programs(plan, shelf, place, dry_run=dry_run, yes=yes)
    screen = Screen()
    for step in plan.changes:
        for line in step.diff(place.root):
            screen.line((clean_line(line), _STYLES.get(line[:1], "")))
        screen.line()
    for problem in plan.problems:
        screen.line(("left alone  ", "yellow"), clean_line(problem))
    if not plan.changes:
        _settle(plan, shelf, dry_run=dry_run)
        what = "Nothing of agent-relay is in" if remove else "Nothing to do for"
        screen.line(f"{what} {join_names(wanted, 'and')}." if not plan.problems else "Nothing was changed.")
        return FAILED if plan.problems else OK
    if dry_run:
        return FAILED if plan.problems else OK
    screen.flush()
    if not yes:
        _ask(plan)
    failed = _carry_out(plan, shelf)
    for sentence in failed:
        screen.line(("left alone  ", "yellow"), clean_line(sentence))
    done = len(plan.changes) - len(failed)
    screen.line((f"{count(done, 'file')} changed", "bold green"), "" if remove else "; to undo it: agent-relay init --remove")
    return FAILED if failed or plan.problems else OK


def _ask(plan: Plan) -> None:
    changed = count(len(plan.changes), "file")
    if not sys.stdin.isatty():
        raise Failure(f"Nothing was changed: nobody can be asked here. To change {changed}, add --yes.", USAGE)
    if not typer.confirm(f"Change {changed}?"):
        raise Failure("Nothing was changed.")


def _settle(plan: Plan, shelf: Shelf, *, dry_run: bool) -> None:
    """Keeps the records right where no file changes."""
    if not dry_run:
        _carry_out(plan, shelf)


def _carry_out(plan: Plan, shelf: Shelf) -> list[str]:
    from agent_relay.cli.init.editing import CannotEdit
    from agent_relay.cli.init.plan import carry_out

    failed = []
    for step in plan.steps:
        try:
            carry_out(step, shelf)
        except (CannotEdit, OSError) as error:
            failed.append(f"{step.state.path}: {error}")
    return failed


def _run_for_programs(plan: Plan, shelf: Shelf, place: Place, *, dry_run: bool, yes: bool) -> int:
    if plan.changes and not (dry_run or yes):
        raise Failure("With --json nobody is asked: add --yes to change the files, or --dry-run to look.", USAGE)
    failed = [] if dry_run else _carry_out(plan, shelf)
    shown = [
        {"path": step.state.path, "for": step.owners, "removed": step.after is None, "diff": step.diff(place.root)}
        for step in plan.changes
    ]
    Screen().json({"changed": [] if dry_run else shown, "would_change": shown if dry_run else [],
                   "left_alone": [*plan.problems, *failed]})  # fmt: skip
    return FAILED if failed or plan.problems else OK
